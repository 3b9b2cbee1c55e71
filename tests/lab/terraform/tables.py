"""Writes the README of each module, from its own variables and outputs, or says which of them are out of date.

Usage: tables.py [--check]
"""

import glob
import json
import os
import re
import sys

import hcl2

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
MODULES = os.path.join(ROOT, "terraform/modules")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declared(module, kind):
    """Names and bodies of what a module declares, in the order of its files."""
    for path in sorted(glob.glob(f"{module}/*.tf"), key=lambda path: (os.path.basename(path) not in ("variables.tf", "outputs.tf"), path)):
        for block in hcl2.loads(text(path)).get(kind, []):
            [(name, body)] = block.items()
            # This parser puts each value into a list.
            yield name, {key: value[0] for key, value in body.items() if isinstance(value, list)}


def cell(value):
    return " ".join(str(value).replace('\\"', '"').split()).replace("|", "\\|")


def default(body):
    if "default" not in body:
        return "**needed**"
    return f"`{cell(json.dumps(body['default']))}`"


def kind(body):
    # What it is made of stands in variables.tf.
    return re.match(r"\$\{(\w+)", body["type"])[1]


def page(module):
    name = os.path.basename(module)
    comment = []
    for line in text(f"{module}/main.tf").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    lines = [f"# {name}", "", *comment, "", "tests/lab/terraform/tables.py wrote this page from variables.tf and outputs.tf. [How to use it](../../README.md).", "", "## Inputs", ""]
    lines += ["| input | type | default | |", "| --- | --- | --- | --- |"]
    lines += [f"| `{variable}` | {kind(body)} | {default(body)} | {cell(body['description'])} |" for variable, body in declared(module, "variable")]
    lines += ["", "## Outputs", "", "| output | |", "| --- | --- |"]
    lines += [f"| `{output}` | {cell(body['description'])} |" for output, body in declared(module, "output")]
    return "\n".join(lines) + "\n"


def main():
    stale = []
    for module in sorted(glob.glob(f"{MODULES}/*")):
        path = f"{module}/README.md"
        wanted = page(module)
        if not os.path.exists(path) or text(path) != wanted:
            stale.append(os.path.relpath(path, ROOT))
            if "--check" not in sys.argv:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(wanted)
    if stale and "--check" in sys.argv:
        sys.exit(f"tables.py: out of date: {', '.join(stale)}. Run .setup/terraform/venv/bin/python tests/lab/terraform/tables.py")


if __name__ == "__main__":
    main()
