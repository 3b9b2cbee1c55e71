"""Holds what the modules write (configuration, scripts, units, task definitions, a CloudFormation template, alarms) to the programs that read it.

Usage: files.py STATES      STATES: a folder with NAME.json of `terraform show -json`
"""

import base64
import email
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import botocore.session
from botocore.validate import ParamValidator

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
MODULES = os.path.join(ROOT, "terraform/modules")
# Amazon's limit, before base64.
USER_DATA = 16 * 1024
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def resources(module):
    yield from module.get("resources", [])
    for child in module.get("child_modules", []):
        yield from resources(child)


def of_type(states, kind):
    for name, state in states.items():
        for resource in resources(state["values"]["root_module"]):
            if resource["type"] == kind and resource["mode"] == "managed":
                yield f"{name}: {resource['address']}", resource["values"]


def configurations(states):
    """Each sweeper.toml, by where it comes from: user data of an instance, or a variable of a task."""
    for where, values in of_type(states, "aws_instance"):
        [encoded] = re.findall(r"base64 -d >/etc/cloud-sweeper/sweeper\.toml <<'EOF'\n(\S+)\nEOF", values["user_data"])
        yield where, base64.b64decode(encoded).decode()
    for where, values in of_type(states, "aws_ecs_task_definition"):
        for container in json.loads(values["container_definitions"]):
            for variable in container.get("environment", []):
                if variable["name"] == "PLAIN_SWEEPER_TOML":
                    yield where, base64.b64decode(variable["value"]).decode()


def settings_are_ones_that_the_sweeper_has(states):
    known, section, teams = set(), "", []
    for line in text(os.path.join(ROOT, "sweeper/sweeper.example.toml")).splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = found[1] + "."
        elif found := re.match(r"#?(\w+) = ", line):
            known.add(section + found[1])
    count = 0
    for where, configuration in configurations(states):
        count += 1
        parsed = tomllib.loads(configuration)
        keys = {f"{name}.{key}" for name, value in parsed.items() if isinstance(value, dict) for key in value}
        keys |= {name for name, value in parsed.items() if not isinstance(value, dict)}
        expect(keys <= known, f"{where}: sweeper.example.toml has no {', '.join(sorted(keys - known))}")
        expect(not re.search(r"xox[bp]-|password = ", configuration), f"{where}: a secret stands in the configuration")
        teams += parsed.get("slack", {}).get("teams", [])
    expect(count >= 5, f"only {count} configurations were found")
    # Keys of a team stand in the code alone.
    struct = text(os.path.join(ROOT, "sweeper/src/config/teams.rs")).split("pub struct SlackTeam {")[1].split("\n}")[0]
    keys, written = set(re.findall(r"pub (\w+):", struct)), {key for team in teams for key in team}
    expect(keys == written, f"teams are written with {sorted(written)}, and the sweeper knows {sorted(keys)}")


def parses(where, script, shell):
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        said = subprocess.run([shell, "-n", file.name], capture_output=True, text=True, check=False)
    expect(said.returncode == 0, f"{where}: {said.stderr}")


def scripts_parse(states):
    for where, values in of_type(states, "aws_instance"):
        script = values["user_data"]
        expect(len(script.encode()) < USER_DATA, f"{where}: user data has {len(script.encode())} bytes, and may have {USER_DATA}")
        parses(where, script, "bash")
        [inner] = re.findall(r"cloud-sweeper-secrets <<'EOF'\n(.*?)\nEOF\n", script, re.S)
        parses(f"{where} (its secrets)", inner, "bash")
    for where, values in of_type(states, "aws_ssm_document"):
        for step in json.loads(values["content"])["mainSteps"]:
            parses(where, "\n".join(step["inputs"]["runCommand"]), "sh")
    for where, values in of_type(states, "aws_launch_template"):
        data = base64.b64decode(values["user_data"]).decode()
        expect(len(data) < USER_DATA, f"{where}: user data has {len(data)} bytes, and may have {USER_DATA}")
        message = email.message_from_string(data)
        expect(message.is_multipart(), f"{where}: its user data is not MIME multi-part")
        for part in message.get_payload():
            expect(part.get_content_type() == "text/x-shellscript", f"{where}: cloud-init runs no {part.get_content_type()}")
            script = part.get_payload()
            parses(where, script, "sh")
            [encoded] = re.findall(r"node-agent-install <<'EOF'\n(\S+)\nEOF", script)
            parses(f"{where} (what it installs)", base64.b64decode(encoded).decode(), "sh")
    for where, values in of_type(states, "aws_ecs_task_definition"):
        for container in json.loads(values["container_definitions"]):
            if container["name"] == "files":
                parses(where, container["command"][2], "sh")
                given = {entry["name"] for entry in container["environment"] + container["secrets"]}
                used = set(re.findall(r"\$((?:PLAIN|SECRET)_\w+)", container["command"][2]))
                expect(given == used, f"{where}: variables given and used differ: {given ^ used}")


def units_are_well_formed():
    for name in ("node-agent.service", "node-agent.sysusers"):
        ours, packaged = (text(path) for path in (f"{MODULES}/node-agent/files/{name}", f"{ROOT}/packaging/systemd/{name}"))
        expect(ours == packaged, f"terraform/modules/node-agent/files/{name} is not packaging/systemd/{name}: copy it")
    if not shutil.which("systemd-analyze"):
        sys.exit("files.py: systemd-analyze is missing: tests/lab/setup.sh test installs it")
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, "sweeper.service")
        service = text(f"{MODULES}/sweeper/files/sweeper.service")
        for program in ("/usr/local/bin/sweeper", "/usr/local/sbin/cloud-sweeper-secrets"):
            service = service.replace(program, "/bin/true")
        with open(unit, "w", encoding="utf-8") as file:
            file.write(service.replace("User=cloud-sweeper", "User=daemon").replace("Group=cloud-sweeper", "Group=daemon"))
        said = subprocess.run(["systemd-analyze", "--no-pager", "verify", unit], capture_output=True, text=True, check=False)
        expect(said.returncode == 0 and not said.stderr, f"sweeper.service: {said.stderr}")
        command = ["systemd-analyze", "--no-pager", "security", "--offline=yes", "--threshold=25", unit]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        expect(said.returncode == 0, f"sweeper.service is wider than systemd-analyze calls OK: {said.stdout[-300:]}")


def task_definitions_are_what_ecs_takes(states):
    shape = botocore.session.get_session().get_service_model("ecs").operation_model("RegisterTaskDefinition").input_shape
    shape = shape.members["containerDefinitions"]
    for where, values in of_type(states, "aws_ecs_task_definition"):
        report = ParamValidator().validate(json.loads(values["container_definitions"]), shape)
        expect(not report.has_errors(), f"{where}: {report.generate_report()}")


def the_template_is_one(states):
    cfn_lint = os.path.join(os.path.dirname(sys.executable), "cfn-lint")
    for where, values in of_type(states, "aws_cloudformation_stack_set"):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(values["template_body"])
            file.flush()
            said = subprocess.run([cfn_lint, "--regions", "eu-central-1", "--", file.name], capture_output=True, text=True, check=False)
        expect(said.returncode == 0, f"{where}: {said.stdout}{said.stderr}")


def alarms_rest_on_what_is_logged(states):
    code = {path: text(path) for path in glob.glob(f"{ROOT}/sweeper/src/**/*.rs", recursive=True)}
    # A message and a field: the line `swept scope=aws …` is the message `swept`, whose first field is the scope, and so on.
    fields = {
        "swept scope=aws": r'info!\(\s*scope = %lease\.unit,[^;]*complete = report\.complete,[^;]*"swept"',
        "swept scope=": r'info!\(\s*scope = %lease\.unit,[^;]*"swept"',
        "complete=true": r"complete = report\.complete,",
        "complete=false": r"complete = report\.complete,",
    }
    phrases = set()
    for _, values in of_type(states, "aws_cloudwatch_log_metric_filter"):
        phrases.update(re.findall(r'"([^"]+)"', values["pattern"]))
    expect(len(phrases) > 10, f"only {len(phrases)} phrases were found")
    for phrase in sorted(phrases):
        found = any(re.search(fields.get(phrase, re.escape(phrase)), source) for source in code.values())
        expect(found, f"an alarm waits for a line that the sweeper does not log: {phrase}")


def suppressions_are_explained():
    for path in glob.glob(f"{ROOT}/terraform/**/*.tf", recursive=True):
        for line in text(path).splitlines():
            if "checkov:skip" in line:
                explained = re.search(r"checkov:skip=CKV\w+: \S.{8,}", line)
                expect(explained, f"{path}: a suppression without a reason: {line.strip()}")


def main():
    [folder] = sys.argv[1:]
    states = {}
    for name in sorted(os.listdir(folder)):
        states[name.removesuffix(".json")] = json.loads(text(os.path.join(folder, name)))
    settings_are_ones_that_the_sweeper_has(states)
    scripts_parse(states)
    units_are_well_formed()
    task_definitions_are_what_ecs_takes(states)
    the_template_is_one(states)
    alarms_rest_on_what_is_logged(states)
    suppressions_are_explained()
    for failure in failures:
        print(f"files.py: {failure}", file=sys.stderr)
    if failures:
        sys.exit(f"files.py: {len(failures)} faults")
    print("settings, scripts, units, task definitions, template and alarms are what their readers take")


if __name__ == "__main__":
    main()
