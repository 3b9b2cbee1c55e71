"""Prints the licences of everything that one program holds: licences.py PACKAGE TARGET.

The crates that Cargo links for that target, each with the files in which its authors say what may be done with it; equal texts once.
"""

import json
import pathlib
import subprocess
import sys

package, target = sys.argv[1:]
NAMES = ("licen", "copying", "notice", "copyright", "unlicense")


def packages():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    known = {one["id"]: one for one in metadata["packages"]}
    nodes = {one["id"]: one for one in metadata["resolve"]["nodes"]}
    waiting = [one["id"] for one in metadata["packages"] if one["name"] == package and one["source"] is None]
    seen = set()
    while waiting:
        identity = waiting.pop()
        if identity in seen:
            continue
        seen.add(identity)
        # A null kind is an ordinary dependency: build scripts and tests are in no program.
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return sorted((known[one] for one in seen if known[one]["source"]), key=lambda one: (one["name"], one["version"]))


def texts(crate):
    folder = pathlib.Path(crate["manifest_path"]).parent
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name.lower().startswith(NAMES):
            yield file.read_text(errors="replace").strip()


holders = {}
crates = packages()
for crate in crates:
    label = f"{crate['name']} {crate['version']}"
    found = list(texts(crate)) or [f"No file of its own; its manifest says: {crate['license']}. By {', '.join(crate['authors']) or 'its contributors'}."]
    for text in found:
        holders.setdefault(text, []).append(label)

print(f"{package} holds these libraries:\n")
for crate in crates:
    print(f"  {crate['name']} {crate['version']}: {crate['license'] or 'see below'}")
for text, labels in sorted(holders.items(), key=lambda item: item[1]):
    print(f"\n{'=' * 80}\n{', '.join(labels)}\n{'=' * 80}\n\n{text}")
