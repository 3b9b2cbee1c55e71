"""Rebuilds the schema of a Terraform provider from the npm package that cdktf generates of it.

Usage: schema.py PACKAGE OUT      PACKAGE: node_modules/@cdktf/provider-aws, say; OUT: a JSON file

The publisher's generator writes one JavaScript class for each resource, data source and nested block. A class has a getter for each attribute, a setter where a configuration may give
it, and a method `reset…` where it may leave it out; `synthesizeHclAttributes` says which of them are blocks. That is the schema, but for four things: which attributes are sensitive or
write-only, which ones a provider fills in by itself (FILLED_IN), how many nested blocks of a kind there may be (only *one* and *any number* are told apart), and what a provider checks by itself.
"""

import json
import os
import re
import sys

CLASS = re.compile(r"^class (\w+) extends cdktf\.(\w+) \{\n(.*?)^\}", re.M | re.S)
TO_HCL = re.compile(r"^function (\w+)ToHclTerraform\(struct\) \{\n(.*?)^\}", re.M | re.S)
GETTER = re.compile(r"^    get (\w+)\(\) \{\n(.*?)^    \}", re.M | re.S)
HCL = re.compile(
    r'^ {8,12}"?(\w+)"?: \{\n\s+value: .*\n\s+isBlock: (\w+),\n\s+type: "(\w+)",\n\s+storageClassType: "(\w+)"', re.M
)
BY_CALL = re.compile(r"\.(get\w+Attribute)\('(\w+)'\)")
SYNTHESIZED = re.compile(r"synthesizeHclAttributes\(\) \{\n(.*?)^    \}", re.M | re.S)

# What a getter answers, by the method of cdktf's that it calls.
CALLS = {
    "getStringAttribute": "string",
    "getNumberAttribute": "number",
    "getBooleanAttribute": "bool",
    "getListAttribute": ["list", "string"],
    "getNumberListAttribute": ["list", "number"],
    "getStringMapAttribute": ["map", "string"],
    "getNumberMapAttribute": ["map", "number"],
    "getBooleanMapAttribute": ["map", "bool"],
    "getAnyMapAttribute": ["map", "string"],
}
# What cdktf's own classes of values hold.
VALUES = {
    "StringMap": ["map", "string"],
    "BooleanMap": ["map", "bool"],
    "NumberMap": ["map", "number"],
    "AnyMap": ["map", "string"],
    "StringMapList": ["list", ["map", "string"]],
    "NumberMapList": ["list", ["map", "number"]],
    "BooleanMapList": ["list", ["map", "bool"]],
}
STORED = {
    "string": "string",
    "number": "number",
    "boolean": "bool",
    "stringList": ["list", "string"],
    "numberList": ["list", "number"],
    "booleanList": ["list", "bool"],
    "stringMap": ["map", "string"],
    "numberMap": ["map", "number"],
    "booleanMap": ["map", "bool"],
    "anyMap": ["map", "string"],
    "any": "dynamic",
}
# A provider fills these in by itself where a configuration leaves them out; the classes do not show it. There are more, which the modules do not read.
FILLED_IN = {"id", "region", "tags_all", "arn", "name", "name_prefix", "private_ip", "availability_zone"}
KINDS = {"TerraformResource": "resources", "TerraformDataSource": "data"}


def capital(text):
    return text[0].upper() + text[1:]


def small(text):
    return text[0].lower() + text[1:]


class File:
    """The classes of one folder of the package: one resource with its nested blocks."""

    def __init__(self, text):
        self.classes = {name: (base, body) for name, base, body in CLASS.findall(text)}
        self.to_hcl = dict(TO_HCL.findall(text))

    def block(self, name, hcl_text):
        body = self.classes[name][1]
        hcl = {key: (is_block == "true", kind, stored) for key, is_block, kind, stored in HCL.findall(hcl_text or "")}
        attributes, blocks = {}, {}
        for property_name, getter in GETTER.findall(body):
            if property_name == "internalValue" or (property_name.endswith("Input") and "Attribute(" not in getter):
                continue
            called = BY_CALL.search(getter)
            held = None if called else self.held(body, getter)
            if not called and not held:
                continue
            key = called[2] if called else held[1]
            settable = re.search(rf"^    (set {property_name}\(|put{capital(property_name)}\()", body, re.M) is not None
            required = settable and not re.search(rf"^    reset{capital(property_name)}\(", body, re.M)
            is_block, kind, stored = hcl.get(key, (None, None, None))
            if held and held[0] not in VALUES:
                inner = self.inner(held[0])
                if is_block and inner:
                    blocks[key] = nested(held[0], kind, required, inner)
                    continue
                value = self.object(held, kind, is_block, inner)
            elif held:
                value = VALUES[held[0]]
            else:
                value = CALLS.get(called[1], "string")
                if isinstance(value, list) and value[0] == "list" and ("Fn.tolist" in getter or kind == "set"):
                    value = ["set", value[1]]
            attributes[key] = attribute(value, required, settable and not required, not settable)
            if key in FILLED_IN and not required:
                attributes[key]["computed"] = True
        return {"attributes": attributes, "blocks": blocks}

    @staticmethod
    def held(body, getter):
        """The class, the key and whether it is a set, of an attribute that the getter keeps in a field of its own."""
        field = re.search(r"return this\.(_\w+);", getter)
        if not field:
            return None
        made = re.search(rf'this\.{field[1]} = new (?:cdktf\.)?(\w+)\(this, "(\w+)"(?:, (\w+))?', body)
        return (made[1], made[2], made[3] == "true") if made else None

    def inner(self, holder):
        base = re.sub(r"(OutputReference|List|Map)$", "", holder)
        reference = base + "OutputReference"
        return self.block(reference, self.to_hcl.get(small(base))) if reference in self.classes else None

    @staticmethod
    def object(held, kind, is_block, inner):
        """The type of an attribute (no block) that is made of others."""
        if inner is None:
            return "dynamic"
        members = {key: value["type"] for key, value in inner["attributes"].items()}
        for key, value in inner["blocks"].items():
            members[key] = ["list", ["object", {k: v["type"] for k, v in value["block"]["attributes"].items()}]]
        if held[0].endswith("OutputReference") and kind in (None, "struct") and is_block is False:
            return ["object", members]
        return ["set" if held[2] or kind == "set" else "list", ["object", members]]

    def configuration(self, hcl_text):
        """A block that is known by `toHcl` alone: the provider's own."""
        attributes, blocks = {}, {}
        for key, is_block, kind, stored in HCL.findall(hcl_text):
            if stored in STORED:
                value = STORED[stored]
                if kind == "set" and isinstance(value, list):
                    value = ["set", value[1]]
                attributes[key] = attribute(value, False, True, False)
            else:
                inner = self.configuration(self.to_hcl.get(small(re.sub(r"List$", "", stored)), ""))
                blocks[key] = {"nesting": "SINGLE" if kind == "struct" else kind.upper(), "min": 0, "max": 0, "block": inner}
        return {"attributes": attributes, "blocks": blocks}


def attribute(value, required, optional, computed):
    return {"type": value, "required": bool(required), "optional": bool(optional), "computed": bool(computed)}


def nested(holder, kind, required, inner):
    nesting = {"struct": "SINGLE", "set": "SET"}.get(kind, "LIST")
    is_one = holder.endswith("OutputReference") and nesting != "SINGLE"
    return {"nesting": nesting, "min": int(required and nesting != "SINGLE"), "max": int(is_one), "block": inner}


def read(package):
    schema = {"version": None, "provider": None, "resources": {}, "data": {}}
    library = os.path.join(package, "lib")
    for folder in sorted(os.listdir(library)):
        folder = os.path.join(library, folder)
        if not os.path.isdir(folder):
            continue
        names = sorted(name for name in os.listdir(folder) if name.endswith(".js"))
        text = "".join(open(os.path.join(folder, name), encoding="utf-8").read() for name in names)
        file = File(text)
        for name, (base, body) in file.classes.items():
            synthesized = SYNTHESIZED.search(body)
            hcl_text = synthesized[1] if synthesized else ""
            if base == "TerraformProvider":
                schema["provider"] = file.configuration(hcl_text)
                schema["version"] = re.search(r"providerVersion: '([\d.]+)'", body)[1]
            elif base in KINDS:
                of = re.search(r"terraformResourceType: '(\w+)'", body)[1]
                schema[KINDS[base]][of] = file.block(name, hcl_text)
    return schema


def main():
    package, out = sys.argv[1:]
    schema = read(package)
    # Far fewer mean that the generator writes otherwise now: nothing of it would be checked.
    if schema["provider"] is None or len(schema["resources"]) < 500:
        sys.exit(f"schema.py: {package} is not written as it used to be: {len(schema['resources'])} resources found")
    with open(out + ".part", "w", encoding="utf-8") as file:
        json.dump(schema, file)
    os.replace(out + ".part", out)
    print(f"{schema['version']}: {len(schema['resources'])} resources, {len(schema['data'])} data sources")


if __name__ == "__main__":
    main()
