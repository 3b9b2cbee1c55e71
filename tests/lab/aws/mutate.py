"""Answers of a later day: what a stand-in answered, changed in one place after it was held to AWS's model of today.

    remove   the member or element is left out
    word     a text, or whatever stands there, is a word that nobody knows
    extra    a structure has one more member that nobody knows
"""

import json

import cbor2

READ = {"cbor": cbor2.loads, "json": json.loads}
WRITTEN = {"cbor": lambda told: cbor2.dumps(told, datetime_as_timestamp=True), "json": lambda told: json.dumps(told).encode()}


class Mutations:
    def __init__(self):
        self.last, self.change = {}, None

    def set(self, change):
        self.change = change

    def paths(self, service, action):
        """The paths to all that the last whole answer to this call held, and whether each holds a text or a structure."""
        return list(paths(self.last[service, action], []))

    def apply(self, call, headers, body):
        if call.form not in READ:
            return headers, body
        told = READ[call.form](body)
        change = self.change
        if not change or (change["service"], change["action"]) != (call.service, call.action):
            self.last[call.service, call.action] = told
            return headers, body
        return headers, WRITTEN[call.form](changed(told, change["path"], change["how"]))


def paths(value, at):
    yield {"path": at, "holds": "text" if isinstance(value, str) else "structure" if isinstance(value, dict) else "other"}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, value in inner:
        yield from paths(value, [*at, key])


def changed(told, path, how):
    if how == "extra":
        place = told
        for key in path:
            place = place[key]
        place["BrandNew"] = {"Items": [1, "two"]}
        return told
    place = told
    for key in path[:-1]:
        place = place[key]
    if how == "remove":
        del place[path[-1]]
    else:
        place[path[-1]] = "brand-new"
    return told
