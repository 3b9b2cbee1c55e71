"""An AWS API server for the scenarios: moto 5.2.5 in server mode, with what the scenarios need and moto lacks.

    python tests/lab/aws/server.py [--port 0] [--prices price_list.jsonl] [--forks]

Prints `listening on 127.0.0.1:PORT` once it answers; with port 0 the kernel chooses one. With `--forks` it serves nothing
itself, and starts servers when it is told to (forks.py). Loopback only. Beside the AWS
APIs there is an admin interface, all JSON (the Rust driver `lab::aws::Moto` is its only user):

    POST   /_lab/instances   {"account", "region", "instances": [{"type", "count", "tags", "launched_at", ...}]} -> {"ids": [...]}
    POST   /_lab/volumes     {"region", "volumes": [...]} -> {"ids": [...]}; so too addresses, snapshots, groups (leftovers.py)
    POST   /_lab/refreshes   {"region", "group", "states": [...]}          replacements of a group's instances, the newest first
    POST   /_lab/metrics     {"account", "region", "machines": [...], "points"}  what CloudWatch has measured (cloudwatch.py)
    POST   /_lab/launches    {"account", "region", "launches": [...]}       what CloudTrail has seen (cloudtrail.py)
    POST   /_lab/batch       {"account", "region", "put": {...}}           jobs, and where they run (see batch.py)
    POST   /_lab/mutate      {"change": {"service", "action", "path", "how"}}      answers of a later day; /_lab/places (mutate.py)
    POST   /_lab/spot        {"account", "region", "changes": [{"zone", "type", "product", "at", "price"}]}  Spot prices (spot.py)
    POST   /_lab/offer       {"region", "zone", "type", "is_offered"}       whether a zone offers a type
    POST   /_lab/change      {"account", "region", "id", "set": {...}}     change what EC2 says of an instance (see ec2.py)
    POST   /_lab/faults      {"faults": [{"service", "action", "account", "region", "parameters", "status", "code", "message",
                                          "delay_s", "expire", "after", "times"}]}
    POST   /_lab/roles       {"roles": [{"arn", "external_id", "account"}]}  the only ones that may be assumed (see accounts.py)
    POST   /_lab/paging      {"page_size", "repeat_token"}
    POST   /_lab/estate      as instances, for tens of thousands of them (scale.py), and "jobs": on so many of them runs one of Batch;
                             "metrics": what CloudWatch measured of each -> {"started"}
    POST   /_lab/record      {"on"}                                        keep requests as they came, from now on or no more
    GET    /_lab/requests    what was kept, to be sent again: [{"service", "action", "method", "path", "headers", "body"}]
    GET    /_lab/calls       every AWS call so far; DELETE forgets them
"""

import argparse
import base64
import io
import json
import logging
import pathlib
import re
import threading
import time

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

import accounts
import batch
import cloudtrail
import cloudwatch
import ec2
import forks
import leftovers
import mutate
import prices
import scale
import spot
import standin
import wire

CREDENTIAL = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/")


class Faults:
    """What goes wrong on purpose. One that `acts` does what it was asked before it goes wrong. A fault without `code` only delays; one without `times` stays; one with `after` lets so
    many calls pass first. One that says `expire` is the last moment of the credentials that the call was made with."""

    def __init__(self):
        self.faults, self.lock = [], threading.Lock()

    def set(self, faults):
        with self.lock:
            self.faults = [dict(fault) for fault in faults]

    def take(self, parameters, **call):
        with self.lock:
            for fault in self.faults:
                if any(fault.get(name) not in (None, value) for name, value in call.items()):
                    continue
                if any(parameters.get(name) != value for name, value in (fault.get("parameters") or {}).items()):
                    continue
                if fault.get("after"):
                    fault["after"] -= 1
                    continue
                if fault.get("times") is not None:
                    if fault["times"] <= 0:
                        continue
                    fault["times"] -= 1
                return fault
        return None


def raw(call, environ, body):
    """A request that can be sent again as it came."""
    names = ("HTTP_AUTHORIZATION", "HTTP_X_AMZ_TARGET", "HTTP_SMITHY_PROTOCOL", "HTTP_ACCEPT", "CONTENT_TYPE")
    headers = {name.removeprefix("HTTP_").replace("_", "-").lower(): environ[name] for name in names if environ.get(name)}
    path, query = environ["PATH_INFO"], environ.get("QUERY_STRING")
    return {
        "service": call.service,
        "action": call.action,
        "method": environ["REQUEST_METHOD"],
        "path": f"{path}?{query}" if query else path,
        "headers": headers,
        "body": base64.b64encode(body).decode(),
    }


class Lab:
    """Looks at every request first, then hands it to moto."""

    def __init__(self, price_list):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.standins = standin.StandIns()
        self.standins.add("pricing", "GetProducts", prices.PriceList(price_list).get_products)
        self.metrics, self.trail = cloudwatch.Metrics(), cloudtrail.Trail()
        self.standins.add("cloudtrail", "LookupEvents", self.trail.lookup_events)
        self.standins.add("cloudwatch", "GetMetricData", self.metrics.get_metric_data)
        batch.register(self.standins)
        self.mutations = mutate.Mutations()
        self.faults, self.accounts, self.calls = Faults(), accounts.Accounts(), []
        self.recording, self.requests = False, []

    def __call__(self, environ, start_response):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)

        def answer(status, headers, body):
            headers = [*headers, ("content-length", str(len(body)))]
            start_response(f"{status} {'OK' if status < 400 else 'Refused'}", headers)
            return [body]

        if environ["PATH_INFO"].startswith("/_lab/"):
            result = self.admin(environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix("/_lab/"), body)
            return answer(200, [("content-type", "application/json")], json.dumps(result, default=str).encode())
        signed = CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        if not signed:
            return self.moto(environ, start_response)

        access_key, region, signed_as = signed.groups()
        asked = wire.read(signed_as, environ, body)
        service, action, wanted = asked.service, asked.action, asked.parameters
        account = self.accounts.of(access_key)
        call = {"service": service, "action": action, "account": account, "region": region}
        self.calls.append(call | {"at": time.time(), "access_key": access_key, "parameters": wanted})

        if self.recording:
            self.requests.append(raw(asked, environ, body))
        fault = self.faults.take(wanted, **call)
        if fault and fault.get("expire"):
            self.accounts.expire(access_key)
        refusal = self.accounts.refusal(access_key, service, action, wanted)
        if refusal:
            status, code, message = refusal
            return answer(status, *wire.error(asked, code, message))
        if service == "sts":
            body = self.accounts.redirected(body, action, wanted)
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        if fault:
            if fault.get("acts"):
                # What it does is done, and the answer is about something else.
                if self.standins.has(asked):
                    self.standins.answer(asked, account, region)
                else:
                    list(self.moto(environ, lambda *_, **__: None))
            time.sleep(fault.get("delay_s") or 0)
            if fault.get("code"):
                told = wire.error(asked, fault["code"], fault.get("message") or "injected by the laboratory")
                return answer(fault.get("status") or 400, *told)
        if self.standins.has(asked):
            try:
                told = wire.answer(asked, self.standins.answer(asked, account, region))
                return answer(200, *self.mutations.apply(asked, *told))
            except standin.Refused as refused:
                return answer(refused.status, *wire.error(asked, refused.code, str(refused)))
        return self.moto(environ, start_response)

    def admin(self, method, what, body):
        asked = json.loads(body) if body else {}
        match method, what:
            case "POST", "instances":
                return {"ids": ec2.seed(asked["account"], asked["region"], asked["instances"])}
            case "POST", "estate":
                account, region = asked["account"], asked["region"]
                ids = scale.seed(account, region, asked["instances"])
                fleet = {"environment": "workers", "instances": ids[: asked["jobs"]]}
                batch.seed(account, region, {"fleets": [fleet]} if asked["jobs"] else {})
                if asked.get("metrics"):
                    self.metrics.seed(account, region, [asked["metrics"] | {"ids": ids}])
                return {"started": len(ids)}
            case "POST", "volumes" | "addresses" | "snapshots" | "groups":
                return {"ids": getattr(leftovers, what)(asked["region"], asked[what])}
            case "POST", "refreshes":
                return {"ids": leftovers.refreshes(asked["region"], asked["group"], asked["states"])}
            case "POST", "metrics":
                self.metrics.points = asked.get("points") or self.metrics.points
                return self.metrics.seed(asked["account"], asked["region"], asked["machines"])
            case "POST", "mutate":
                return self.mutations.set(asked["change"])
            case "POST", "places":
                return self.mutations.paths(asked["service"], asked["action"])
            case "POST", "launches":
                return self.trail.seed(asked["account"], asked["region"], asked["launches"])
            case "POST", "batch":
                return batch.seed(asked["account"], asked["region"], asked["put"])
            case "POST", "change":
                return ec2.change(asked["account"], asked["region"], asked["id"], asked["set"])
            case "POST", "offer":
                return ec2.offer(asked["region"], asked["zone"], asked["type"], asked["is_offered"])
            case "POST", "spot":
                return spot.seed(asked["account"], asked["region"], asked["changes"])
            case "POST", "faults":
                return self.faults.set(asked["faults"])
            case "POST", "roles":
                return self.accounts.set_roles(asked["roles"])
            case "POST", "paging":
                return ec2.set_paging(asked.get("page_size"), asked.get("repeat_token", False))
            case "POST", "record":
                self.recording, self.requests = asked["on"], []
                return {}
            case "GET", "requests":
                return list(self.requests)
            case "GET", "calls":
                return list(self.calls)
            case "DELETE", "calls":
                return self.calls.clear()
        raise ValueError(f"no such admin call: {method} {what}")


def server_of(lab, port=0, fd=None):
    return make_server("127.0.0.1", port, lab, threaded=True, request_handler=MotoRequestHandler, fd=fd)


def main():
    here = pathlib.Path(__file__).parent
    arguments = argparse.ArgumentParser(description="An AWS API server for the scenarios, on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--prices", type=pathlib.Path, default=here / "price_list.jsonl")
    arguments.add_argument("--forks", action="store_true")
    chosen = arguments.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    lab = Lab(chosen.prices)
    if chosen.forks:
        return forks.obey(lab, lambda listening: server_of(lab, fd=listening.fileno()).serve_forever())
    server = server_of(lab, port=chosen.port)
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    return server.serve_forever()


if __name__ == "__main__":
    main()
