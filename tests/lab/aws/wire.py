"""How AWS's services are asked and how they answer: which call a request is, with what, and what an error looks like.

Query and JSON APIs name their action in the body or in a header, REST APIs by method and path, and those that speak CBOR by
the path. Services and actions are called what botocore calls them.
"""

import functools
import json
import re
import urllib.parse
from dataclasses import dataclass
from xml.sax.saxutils import escape

import cbor2
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

CBOR_PATH = re.compile(r"/service/[^/]+/operation/(\w+)")
# What a request is signed for, where that is not what the service is called.
SIGNED_AS = {"monitoring": "cloudwatch"}
BY_PATH = {"batch"}


@dataclass(frozen=True)
class Call:
    """One request: `form` is query, ec2, json, rest-json or cbor."""

    service: str
    action: str
    form: str
    parameters: dict


@functools.cache
def rest_actions(service):
    model = get_service_model(service)
    operations = (model.operation_model(name) for name in model.operation_names)
    return {(operation.http["method"], operation.http["requestUri"]): operation.name for operation in operations}


def rest_action(service, method, path):
    """(the call of that path, what the path itself names); a name in braces stands for the rest of it."""
    for (of, template), action in rest_actions(service).items():
        before, _, name = template.partition("{")
        if of == method and (path == template or (name and path.startswith(before))):
            return action, {name.rstrip("}"): urllib.parse.unquote(path.removeprefix(before))} if name else {}
    return None, {}


def read(signed_as, environ, body):
    """The call that a request is; its action is None if nothing names one."""
    service, path = SIGNED_AS.get(signed_as, signed_as), environ["PATH_INFO"]
    target, cbor = environ.get("HTTP_X_AMZ_TARGET"), CBOR_PATH.fullmatch(path)
    if cbor:
        return Call(service, cbor[1], "cbor", cbor2.loads(body) if body else {})
    if target:
        return Call(service, target.split(".")[-1], "json", json.loads(body or b"{}"))
    if service in BY_PATH:
        action, named = rest_action(service, environ["REQUEST_METHOD"], path)
        return Call(service, action, "rest-json", json.loads(body or b"{}") | named)
    parameters = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
    return Call(service, parameters.get("Action"), "ec2" if service == "ec2" else "query", parameters)


def answer(call, told):
    """(headers, body) of an answer, from what botocore would read out of it."""
    if call.form == "cbor":
        return [("smithy-protocol", "rpc-v2-cbor"), ("content-type", "application/cbor")], cbor2.dumps(told, datetime_as_timestamp=True)
    operation = get_service_model(call.service).operation_model(call.action)
    written = get_serializer_class(call.service, call.form)(operation_model=operation).serialize(told)
    body = written["body"]
    return list(written["headers"].items()), body.encode() if isinstance(body, str) else body


def error(call, code, message):
    """(headers, body) of a refusal."""
    if call.form == "cbor":
        body = cbor2.dumps({"__type": f"com.amazonaws.{call.service}#{code}", "message": message})
        return [("smithy-protocol", "rpc-v2-cbor"), ("content-type", "application/cbor")], body
    if call.form == "json":
        body = json.dumps({"__type": code, "message": message})
        return [("content-type", "application/x-amz-json-1.1")], body.encode()
    if call.form == "rest-json":
        headers = [("content-type", "application/json"), ("x-amzn-errortype", code)]
        return headers, json.dumps({"message": message}).encode()
    inner = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if call.form == "ec2":
        text = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>lab</RequestID></Response>"
    else:
        text = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error><RequestId>lab</RequestId></ErrorResponse>"
    return [("content-type", "text/xml")], f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()
