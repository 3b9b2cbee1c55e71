"""A stand-in for Compute Engine, Cloud Monitoring, the catalogue of Cloud Billing and Google's token server, held to Google's own description of its APIs.

    python tests/lab/gcp/server.py --documents .setup/recorded/google --wrong FILE [--port 0]

Prints `listening on 127.0.0.1:PORT` once it answers; with port 0 the kernel chooses one. Loopback only. Every request is checked
against the published discovery document, and so is every answer: a request that Google would not know is refused with 400, an answer
that Google could not give is never sent, and both are written to the file of what is wrong, at which a scenario fails. It is no Google: what it holds
is what it was told, filters are compared as text, and nothing happens to a machine by itself: one that is stopped or started is on its way until it is read once. Who acts has credentials of its own
(its refresh token is `acts`), and may do nothing but act; what reads may not act.

The admin interface, all JSON (the Rust driver `lab::gcp::Google` is its only user):

    POST /_lab/resources  {"project", "kind": "instances", "place": "zones/europe-west3-a", "resources": [{...}]}
    POST /_lab/types      {"project", "place": "zones/…", "types": [{"name", "guestCpus", ...}]}
    POST /_lab/skus       {"skus": [{"skuId", "description", ...}]}   the catalogue of Compute Engine, the same for all projects
    POST /_lab/series     {"project", "series": [{"metric", "zone", "instance", "points": [[end, value], ...]}]}
    POST /_lab/say        {"method": "compute.instances.aggregatedList", "answer": {...}}   this answer, unchecked; none: no more
    POST /_lab/unreachable {"places": [{"kind": "instances", "place": "zones/…", "how": "unreachables" | "warning"}]}
    POST /_lab/paging     {"page_size", "repeat_token"}
    POST /_lab/faults     {"faults": [{"method", "project", "token", "status", "reason", "message", "delay_s", "expire", "after", "times", "acted"}]}
    POST /_lab/change     {"project", "place", "number", "with": {...}}   members of one machine; null takes one away
    POST /_lab/referrers  {"number", "referrers": ["https://…"]}   what refers to a machine
    POST /_lab/machine    {"project", "place", "number"}   the machine, as it is now
    POST /_lab/full       {"times"}   so many starts from now on find no room
    POST /_lab/denied     {"permissions": [...]}   what who acts may not do
    POST /_lab/calls      every call since the last time that this was asked
"""

import argparse
import http.server
import json
import pathlib
import threading
import time
import urllib.parse

import discovery

KINDS = {
    "instances": "compute#instanceAggregatedList",
    "disks": "compute#diskAggregatedList",
    "addresses": "compute#addressAggregatedList",
    "instanceGroupManagers": "compute#instanceGroupManagerAggregatedList",
}
LISTS = {"routes": "compute#routeList", "targetPools": "compute#targetPoolList", "targetInstances": "compute#targetInstanceList",
         "networkEndpointGroups": "compute#networkEndpointGroupList"}
# What who acts may call, and who reads may not.
ACTS = {"compute.instances.stop", "compute.instances.start"}
FULL = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "The zone does not have enough resources available to fulfill the request."}
# Places that Google lists for each project, whether they hold anything or not.
PLACES = ["zones/europe-west3-a", "zones/europe-west3-b", "zones/us-east1-b", "regions/europe-west3", "regions/us-east1", "global"]
POINTS = 100_000
SKUS = 5_000
COMPUTE_ENGINE = "6F81-5844-456A"


class Refused(Exception):
    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status, self.reason = status, reason


class Lab:
    """What the stand-in holds, and how it answers."""

    def __init__(self, documents, wrong):
        self.apis = [discovery.Document(documents / name) for name in ("compute.v1.json", "monitoring.v3.json", "cloudbilling.v1.json")]
        self.lock = threading.Lock()
        self.resources, self.types, self.series, self.skus = {}, {}, {}, []
        self.said, self.unreachable = {}, []
        self.page_size, self.repeat_token = None, False
        self.faults, self.calls, self.wrong = [], [], wrong
        self.referrers, self.operations, self.denied, self.full = {}, {}, [], 0
        self.tokens, self.expired = 0, set()

    def is_wrong(self, what):
        with self.lock, self.wrong.open("a") as wrong:
            print(what, file=wrong)

    # What Google would do ---------------------------------------------------------------------------------------------

    def answer(self, verb, path, query, authorization, body, reason):
        """Status and answer of one call."""
        found = ((api, *api.find(verb, path)) for api in self.apis)
        api, method, in_path = next((match for match in found if match[1]), (None, None, None))
        if not method:
            self.is_wrong(f"{verb} {path} is no method")
            raise Refused(404, "notFound", f"{verb} {path}")
        faults = [*api.check_request(method, in_path, query), *api.check_body(method, body)]
        if faults:
            self.is_wrong(f"{verb} {path}: {'; '.join(faults)}")
            raise Refused(400, "badRequest", "; ".join(faults))
        query = dict(query)
        token = authorization.removeprefix("Bearer ") or f"nobody-{self.tokens}"
        project = in_path.get("project") or in_path.get("projectsId")
        call = {"method": method["id"], "project": project, "query": query, "access_token": token, "path": in_path, "reason": reason}
        with self.lock:
            self.calls.append(call)
        fault = self.fault(method["id"], project, query.get("pageToken") or "")
        if fault and fault.get("expire"):
            self.expired.add(token)
        # Nobody is a client inside a scenario: it has no token of its own, and a new name with each one that expires.
        if not token.startswith(("token-", "nobody-")) or token in self.expired:
            self.tokens += token.startswith("nobody-")
            raise Refused(401, "authError", "Request had invalid authentication credentials.")
        acts = token.startswith("token-acts-")
        if acts != (method["id"] in ACTS) and method["id"] != "compute.instances.testIamPermissions":
            raise Refused(403, "forbidden", f"Required '{method['id']}' permission")
        if fault:
            time.sleep(fault.get("delay_s") or 0)
            if fault.get("acted"):
                self.handle(method["id"], project, in_path, query, body)
            if fault.get("status"):
                raise Refused(fault["status"], fault.get("reason") or "injected", fault.get("message") or "injected by the laboratory")
        if method["id"] in self.said:
            return self.said[method["id"]]
        if method["id"] == "compute.instances.testIamPermissions":
            # Whoever asks must hold this one: https://cloud.google.com/compute/docs/reference/rest/v1/instances/testIamPermissions
            if "compute.instances.list" in self.denied:
                raise Refused(403, "forbidden", "Required 'compute.instances.list' permission")
            asked = json.loads(body)["permissions"]
            answer = {"permissions": [one for one in asked if acts and one in ACTS and one not in self.denied]}
        else:
            answer = self.handle(method["id"], project, in_path, query, body)
        faults = api.check_answer(method, answer)
        if faults:
            why = f"the stand-in for {method['id']} answers what Google cannot: {'; '.join(faults)}"
            self.is_wrong(why)
            raise Refused(500, "backendError", why)
        return answer

    def handle(self, method, project, in_path, query, body):
        service, kind, action = method.split(".", 2)
        place = f"zones/{in_path['zone']}" if "zone" in in_path else f"regions/{in_path['region']}" if "region" in in_path else "global"
        if service == "compute" and action == "list" and kind in LISTS:
            items = self.resources.get((project, kind), {}).get(place, [])
            return {"kind": LISTS[kind], "items": items} if items else {"kind": LISTS[kind]}
        if method == "compute.networkEndpointGroups.listNetworkEndpoints":
            held = self.resources.get((project, "networkEndpoints"), {}).get(f"{place}/{in_path['networkEndpointGroup']}", [])
            return {"kind": "compute#networkEndpointGroupsListNetworkEndpoints", "items": held}
        if method == "compute.instances.listReferrers":
            machine = self.machine(project, place, in_path["instance"])
            items = [{"kind": "compute#reference", "referenceType": "MEMBER_OF", "referrer": one} for one in self.referrers.get(machine["id"], [])]
            return {"kind": "compute#instanceListReferrers", "items": items}
        if method == "compute.instances.get":
            machine = self.machine(project, place, in_path["instance"])
            with self.lock:
                told = dict(machine)
                self.arrive(machine)
            return told
        if method in ACTS:
            return self.act(action, self.machine(project, place, in_path["instance"]), query, in_path["zone"])
        if method == "compute.zoneOperations.get":
            if in_path["operation"] not in self.operations:
                raise Refused(404, "notFound", f"The resource '{in_path['operation']}' was not found")
            return self.operations[in_path["operation"]]
        if service == "compute" and action == "aggregatedList" and kind in KINDS:
            return self.aggregated(project, kind, query)
        if method == "compute.machineTypes.get":
            types = self.types.get((project, f"zones/{in_path['zone']}"), {})
            if in_path["machineType"] not in types:
                raise Refused(404, "notFound", f"The resource '{in_path['machineType']}' was not found")
            return types[in_path["machineType"]]
        if method == "cloudbilling.services.skus.list":
            if in_path["servicesId"] != COMPUTE_ENGINE:
                raise Refused(404, "notFound", f"services/{in_path['servicesId']} was not found")
            return self.catalogue(query)
        if method == "monitoring.projects.timeSeries.list":
            return self.time_series(project, query)
        raise Refused(501, "notImplemented", f"the stand-in does not answer {method}")

    def machine(self, project, place, wanted):
        for one in self.resources.get((project, "instances"), {}).get(place, []):
            if wanted in (one["id"], one["name"]):
                return one
        raise Refused(404, "notFound", f"The resource '{wanted}' was not found")

    def arrive(self, machine):
        """What was on its way when it was last read is there."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        if machine["status"] == "STOPPING":
            machine.update(status="TERMINATED", lastStopTimestamp=now)
        if machine["status"] == "STAGING":
            machine.update(status="RUNNING", lastStartTimestamp=now)

    def act(self, verb, machine, query, zone):
        """A request that comes again with its id is the same one."""
        with self.lock:
            asked = query.get("requestId")
            for operation in self.operations.values():
                if asked and operation.get("clientOperationId") == asked:
                    return operation
            name = f"operation-{len(self.operations) + 1}"
            operation = {"kind": "compute#operation", "id": str(len(self.operations) + 1), "name": name, "operationType": verb, "zone": zone,
                         "targetId": machine["id"], "status": "RUNNING", "progress": 0, "user": "who-acts@omics-prod-1.iam.gserviceaccount.com"}
            if asked:
                operation["clientOperationId"] = asked
            self.operations[name] = operation
            told = dict(operation)
            if verb == "stop" and machine["status"] == "RUNNING":
                machine["status"] = "STOPPING"
            if verb == "start" and machine["status"] == "TERMINATED":
                if self.full:
                    self.full -= 1
                    operation["error"] = {"errors": [FULL]}
                else:
                    machine["status"] = "STAGING"
            operation.update(status="DONE", progress=100)
            return told

    def aggregated(self, project, kind, query):
        silent = {fault["place"]: fault["how"] for fault in self.unreachable if fault["kind"] == kind}
        held = self.resources.get((project, kind), {})
        everything = [(place, one) for place in sorted(held) if place not in silent for one in held[place]]
        size = min(int(query.get("maxResults", 500)) or 500, self.page_size or 500)
        start = self.start_of(query.get("pageToken"))
        page = everything[start : start + size]
        items = {}
        for place in sorted({*PLACES, *held}):
            here = [one for at, one in page if at == place]
            if place in silent:
                if silent[place] == "warning":
                    items[place] = {"warning": {"code": "UNREACHABLE", "message": "The zone did not answer."}}
            elif here:
                items[place] = {kind: here}
            else:
                told = {"key": "scope", "value": place}
                items[place] = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope '{place}' on this page.", "data": [told]}}
        answer = {"kind": KINDS[kind], "id": f"projects/{project}/aggregated/{kind}", "items": items,
                  "selfLink": f"https://www.googleapis.com/compute/v1/projects/{project}/aggregated/{kind}"}
        named = [f"projects/{project}/{place}" for place, how in silent.items() if how == "unreachables"]
        if named:
            answer["unreachables"] = named
        if start + size < len(everything):
            answer["nextPageToken"] = self.token_for(start + size)
        return answer

    def catalogue(self, query):
        if query.get("currencyCode", "USD") != "USD":
            raise Refused(501, "notImplemented", "the stand-in has no other currency than USD")
        start = self.start_of(query.get("pageToken"))
        size = min(int(query.get("pageSize", SKUS)) or SKUS, self.page_size or SKUS)
        more = start + size < len(self.skus)
        # The last page has a token that is empty.
        return {"skus": self.skus[start : start + size], "nextPageToken": self.token_for(start + size) if more else ""}

    def time_series(self, project, query):
        period = float(query["aggregation.alignmentPeriod"].removesuffix("s"))
        begin, end = (moment(query[f"interval.{name}Time"]) for name in ("start", "end"))
        if query.get("orderBy"):
            raise Refused(400, "badRequest", "orderBy is not supported")
        series = []
        for one in self.series.get(project, []):
            if f'"{one["metric"]}"' not in query["filter"]:
                continue
            labels = {"project_id": project, "zone": one["zone"], "instance_id": one["instance"]}
            points = [(at, value) for at, value in one["points"] if begin < at <= end]
            told = [{"interval": {"startTime": text(at - period), "endTime": text(at)}, "value": {"doubleValue": value}}
                    for at, value in sorted(points, reverse=True)]
            if told:
                series.append({"metric": {"type": one["metric"]}, "resource": {"type": "gce_instance", "labels": labels},
                               "metricKind": "GAUGE", "valueType": "DOUBLE", "points": told})
        start = self.start_of(query.get("pageToken"))
        size = self.page_size or POINTS
        answer = {"timeSeries": series[start : start + size], "unit": "1"}
        if start + size < len(series):
            answer["nextPageToken"] = self.token_for(start + size)
        return answer

    def token_for(self, start):
        return "page-again" if self.repeat_token else f"page-{start}"

    def start_of(self, token):
        if not token or token == "page-again":
            return 0
        number = token.removeprefix("page-")
        if not number.isdigit():
            raise Refused(400, "invalid", f"Invalid value for field 'pageToken': '{token}'.")
        return int(number)

    def fault(self, method, project, token):
        with self.lock:
            for fault in self.faults:
                wanted = {"method": method, "project": project, "token": token}
                if any(fault.get(name) not in (None, value) for name, value in wanted.items()):
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

    # What a scenario says ---------------------------------------------------------------------------------------------

    def admin(self, verb, what, asked):
        match verb, what:
            case "POST", "resources":
                held = self.resources.setdefault((asked["project"], asked["kind"]), {})
                held[asked["place"]] = asked["resources"]
            case "POST", "change":
                machine = self.machine(asked["project"], asked["place"], asked["number"])
                machine.update(asked["with"])
                for name in [name for name, value in asked["with"].items() if value is None]:
                    del machine[name]
            case "POST", "machine":
                return self.machine(asked["project"], asked["place"], asked["number"])
            case "POST", "referrers":
                self.referrers[asked["number"]] = asked["referrers"]
            case "POST", "full":
                self.full = asked["times"]
            case "POST", "denied":
                self.denied = asked["permissions"]
            case "POST", "types":
                held = self.types.setdefault((asked["project"], asked["place"]), {})
                held.update({one["name"]: one for one in asked["types"]})
            case "POST", "skus":
                self.skus = asked["skus"]
            case "POST", "series":
                self.series[asked["project"]] = asked["series"]
            case "POST", "say":
                self.said.pop(asked["method"], None)
                if asked.get("answer") is not None:
                    self.said[asked["method"]] = asked["answer"]
            case "POST", "unreachable":
                self.unreachable = asked["places"]
            case "POST", "paging":
                self.page_size, self.repeat_token = asked.get("page_size"), asked.get("repeat_token", False)
            case "POST", "faults":
                with self.lock:
                    self.faults = asked["faults"]
            case "POST", "calls":
                with self.lock:
                    calls, self.calls = self.calls, []
                return calls
            case _:
                raise ValueError(f"no such admin call: {verb} {what}")
        return None

    def access_token(self, asked):
        with self.lock:
            self.tokens += 1
            whose = "acts-" if b"acts" in asked else ""
            return {"access_token": f"token-{whose}{self.tokens}", "token_type": "Bearer", "expires_in": 3600}


def moment(told):
    return time.mktime(time.strptime(told.split(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S")) - time.timezone


def text(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def handler(lab):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer_one(self):
            url = urllib.parse.urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length) if length else b""
            status = 200
            if url.path.startswith("/_lab/"):
                told = lab.admin(self.command, url.path.removeprefix("/_lab/"), json.loads(body) if body else {})
            elif url.path == "/token":
                told = lab.access_token(body)
            else:
                query = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
                try:
                    told = lab.answer(self.command, url.path, query, self.headers.get("authorization") or "", body,
                                      self.headers.get("x-goog-request-reason"))
                except Exception as error:
                    if not isinstance(error, Refused):
                        lab.is_wrong(f"the stand-in failed at {self.path}: {error!r}")
                    status, reason = (error.status, error.reason) if isinstance(error, Refused) else (500, "backendError")
                    why = {"message": str(error), "domain": "global", "reason": reason}
                    told = {"error": {"code": status, "message": str(error), "errors": [why]}}
            payload = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json; charset=UTF-8")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer_one

        def log_message(self, *_):
            pass

    return Handler


def main():
    arguments = argparse.ArgumentParser(description="A stand-in for Google Cloud, on loopback.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--documents", type=pathlib.Path, required=True)
    arguments.add_argument("--wrong", type=pathlib.Path, required=True)
    chosen = arguments.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", chosen.port), handler(Lab(chosen.documents, chosen.wrong)))
    server.daemon_threads = True
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
