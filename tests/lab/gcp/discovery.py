"""Google's published description of its own APIs, and whether a request or an answer is one of them.

The documents are those of google-api-python-client 2.201.0 (recorded.txt): the same version of Compute Engine's API
(2026-09-01) as the client's that the product is built with. What a document does not tell, because it says so in prose or not at
all, is written down here: the system parameters that every client sends, and that an aggregated list has at most 500 items.
"""

import base64
import json
import re

# https://cloud.google.com/apis/docs/system-parameters; `$apiVersion` and `$alt` stand in no document.
SYSTEM = {"$alt": re.compile(r"json(;enum-encoding=(int|string))?"), "$apiVersion": re.compile(r"\d{4}-\d{2}-\d{2}")}
INTEGER = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}
DURATION = re.compile(r"-?\d+(\.\d{1,9})?s")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class Wrong(Exception):
    """Not of the document."""


class Document:
    """One API."""

    def __init__(self, path):
        self.document = json.loads(path.read_text())
        self.schemas = self.document["schemas"]
        self.methods = [(self.pattern(method), method) for method in self.walk(self.document["resources"])]

    def walk(self, resources):
        for resource in resources.values():
            yield from resource.get("methods", {}).values()
            yield from self.walk(resource.get("resources", {}))

    def pattern(self, method):
        path = "/" + self.document["servicePath"] + method.get("flatPath", method["path"])
        parts = re.split(r"\{(\w+)\}", path)
        # Every other part is a name.
        return re.compile("".join(f"(?P<{part}>[^/]+)" if n % 2 else re.escape(part) for n, part in enumerate(parts)))

    def find(self, verb, path):
        """The method of a request and what its path says."""
        for pattern, method in self.methods:
            match = pattern.fullmatch(path)
            if match and method["httpMethod"] == verb:
                return method, match.groupdict()
        return None, {}

    def check_request(self, method, in_path, query):
        """Faults of a request: query is a list of (name, value)."""
        known = method.get("parameters", {}) | self.document["parameters"]
        for name, value in query:
            if name in SYSTEM:
                if not SYSTEM[name].fullmatch(value):
                    yield f"{name} is {value!r}"
            elif name not in known or known[name].get("location") == "path":
                yield f"{method['id']} has no parameter {name}"
            else:
                yield from parameter(known[name], name, value)
        names = [name for name, _ in query]
        for name in set(names):
            if names.count(name) > 1 and not (name in known and known[name].get("repeated")):
                yield f"{name} is given more than once"
        for name, shape in known.items():
            if shape.get("required") and name not in names and shape.get("location") != "path":
                yield f"{name} is missing"
            if shape.get("location") == "path" and name in in_path:
                yield from parameter(shape, name, in_path[name])

    def check_body(self, method, body):
        """Faults of what a request carries: bytes."""
        if "request" not in method:
            return [f"{method['id']} takes no body"] if body else []
        try:
            return list(self.faults({"$ref": method["request"]["$ref"]}, json.loads(body), "its body"))
        except ValueError:
            return [f"{method['id']} takes JSON"]

    def check_answer(self, method, answer):
        """Faults of an answer."""
        return list(self.faults({"$ref": method["response"]["$ref"]}, answer, "it"))

    def faults(self, shape, value, path):
        if "$ref" in shape:
            shape = self.schemas[shape["$ref"]]
        kind = shape.get("type")
        if kind == "object":
            if not isinstance(value, dict):
                yield f"{path} is no object"
                return
            for name, inner in value.items():
                if name in shape.get("properties", {}):
                    yield from self.faults(shape["properties"][name], inner, f"{path}.{name}")
                elif "additionalProperties" in shape:
                    yield from self.faults(shape["additionalProperties"], inner, f"{path}[{name}]")
                else:
                    yield f"{path} has no member {name}"
        elif kind == "array":
            if not isinstance(value, list):
                yield f"{path} is no list"
                return
            for n, inner in enumerate(value):
                yield from self.faults(shape["items"], inner, f"{path}[{n}]")
        elif kind != "any":
            fault = scalar(shape, value)
            if fault:
                yield f"{path} is {value!r}: {fault}"


def parameter(shape, name, value):
    """A parameter is always text."""
    kind = shape["type"]
    if kind in ("integer", "number"):
        try:
            value = int(value) if kind == "integer" else float(value)
        except ValueError:
            yield f"{name} is {value!r}, no {kind}"
            return
        if "minimum" in shape and value < float(shape["minimum"]) or "maximum" in shape and value > float(shape["maximum"]):
            yield f"{name} is {value}, out of bounds"
        if name == "maxResults" and value > 500:
            yield f"{name} is {value}, more than 500"
        if shape.get("format") in INTEGER and not INTEGER[shape["format"]][0] <= value <= INTEGER[shape["format"]][1]:
            yield f"{name} is {value}, no {shape['format']}"
    elif kind == "boolean":
        if value not in ("true", "false"):
            yield f"{name} is {value!r}, no boolean"
    else:
        # A monitoring client writes words as the numbers of their enumeration, which the document does not tell.
        number = value.isdigit() and "enum" in shape
        fault = None if number else scalar(shape, value)
        if fault:
            yield f"{name} is {value!r}: {fault}"


def scalar(shape, value):
    """What is wrong with a value that holds no others; none if nothing is."""
    kind, form = shape["type"], shape.get("format")
    if kind == "boolean":
        return None if isinstance(value, bool) else "no boolean"
    if kind == "integer":
        low, high = INTEGER[form]
        return None if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else f"no {form}"
    if kind == "number":
        return None if isinstance(value, (int, float)) and not isinstance(value, bool) else "no number"
    if not isinstance(value, str):
        return "no text" if form is None else f"no text that holds a {form}"
    if form in INTEGER:
        low, high = INTEGER[form]
        return None if re.fullmatch(r"-?\d+", value) and low <= int(value) <= high else f"no {form}"
    if form == "byte":
        try:
            base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except ValueError:
            return "no base64"
    if form == "google-duration" and not DURATION.fullmatch(value):
        return "no duration"
    if form in ("google-datetime", "date-time") and not MOMENT.fullmatch(value):
        return "no moment"
    if "enum" in shape and value not in shape["enum"]:
        return f"not one of {', '.join(shape['enum'])}"
    if "pattern" in shape and not re.fullmatch(shape["pattern"], value):
        return f"not of the form {shape['pattern']}"
    return None
