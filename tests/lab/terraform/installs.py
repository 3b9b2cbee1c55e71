"""Runs the scripts that the modules put on machines, in a folder that takes the place of the root, with stand-ins for AWS's command line and for systemd.

Usage: installs.py STATES      STATES: a folder with NAME.json of `terraform show -json`

What is shown: a binary with another SHA-256 than the given one is not installed and leaves the one of before alone; a second run changes and restarts nothing; a new binary restarts the agent;
user data returns before anything is installed; a task's files are written for nobody but the sweeper. Not shown: what Amazon's images have installed.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

# `aws s3 cp … s3://BUCKET/KEY FILE` copies what the test put there, `aws secretsmanager get-secret-value` prints a token.
AWS = """#!/bin/sh
case "$1 $2" in
"s3 cp") for last; do :; done; cp "$STORE" "$last" ;;
"secretsmanager get-secret-value") echo fleet-token ;;
*) echo "unexpected: aws $*" >&2; exit 1 ;;
esac
"""
SYSTEMCTL = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\n'


def script_of(states, kind, address):
    for name, state in states.items():
        stack = [state["values"]["root_module"]]
        while stack:
            module = stack.pop()
            stack += module.get("child_modules", [])
            for resource in module.get("resources", []):
                if resource["type"] == kind and address in f"{name}: {resource['address']}":
                    return resource["values"]
    sys.exit(f"installs.py: no {kind} {address} was applied")


class Machine:
    """A folder that takes the place of the root."""

    def __init__(self, root):
        self.root, self.calls, self.store = root, f"{root}/calls", f"{root}/store"
        for folder in ("bin", "usr/local/bin", "usr/local/sbin", "etc", "run/systemd/system", "etc/systemd/system", "etc/cloud-sweeper", "var/lib/cloud-sweeper", "run/cloud-sweeper-secrets"):
            os.makedirs(f"{root}/{folder}", exist_ok=True)
        for name, text in {"aws": AWS, "systemctl": SYSTEMCTL, "systemd-sysusers": SYSTEMCTL, "chown": SYSTEMCTL}.items():
            with open(f"{root}/bin/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(f"{root}/bin/{name}", 0o755)

    def run(self, script, **variables):
        """Runs it with its absolute paths below the root; its status, what it said, and what it asked systemd for."""
        script = re.sub(r"(?<![\w./])/(usr/local|etc|run|var/lib)/", rf"{self.root}/\1/", script)
        open(self.calls, "w", encoding="utf-8").close()
        environment = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "CALLS": self.calls, "STORE": self.store, **variables}
        done = subprocess.run(["sh"], input=script, env=environment, capture_output=True, text=True, check=False)
        with open(self.calls, encoding="utf-8") as file:
            return done.returncode, done.stderr, file.read()

    def read(self, path):
        with open(f"{self.root}/{path}", encoding="utf-8") as file:
            return file.read()

    def put(self, text):
        with open(self.store, "w", encoding="utf-8") as file:
            file.write(text)
        return hashlib.sha256(text.encode()).hexdigest()


def the_agent_is_installed_once(states, root):
    content = json.loads(script_of(states, "aws_ssm_document", "existing-vpc")["content"])
    script = "\n".join(content["mainSteps"][0]["inputs"]["runCommand"])
    machine = Machine(root)
    wanted = machine.put("the agent")
    # Both programs are the same here: the stand-in for S3 knows one.
    script = re.sub(r"\b(?:1{64}|2{64})\b", wanted, script)
    status, said, calls = machine.run(script)
    assert status == 0, said
    assert machine.read("usr/local/bin/node-agent") == "the agent"
    assert "systemctl restart node-agent.service" in calls, calls
    assert machine.read("etc/cloud-sweeper/join-token") == "fleet-token\n"
    assert oct(os.stat(f"{root}/etc/cloud-sweeper/join-token").st_mode & 0o777) == "0o600"
    assert 'sweeper_url = "http://' in machine.read("etc/cloud-sweeper/node-agent.toml")

    status, said, calls = machine.run(script)
    assert status == 0 and "restart" not in calls and "start node-agent.service" in calls, (said, calls)

    machine.put("somebody else's program")
    newer = script.replace(wanted, "3" * 64)
    status, said, calls = machine.run(newer)
    assert status == 1 and "SHA-256" in said and calls == "", (status, said, calls)
    assert machine.read("usr/local/bin/node-agent") == "the agent"
    assert sorted(os.listdir(f"{root}/usr/local/bin")) == ["node-agent", "node-agent-gpu"]

    status, said, calls = machine.run(script.replace(wanted, machine.put("a newer agent")))
    assert status == 0 and "systemctl restart node-agent.service" in calls, (said, calls)
    assert machine.read("usr/local/bin/node-agent") == "a newer agent"


def each_processor_gets_its_own(states, root):
    content = json.loads(script_of(states, "aws_ssm_document", "existing-vpc")["content"])
    script = "\n".join(content["mainSteps"][0]["inputs"]["runCommand"])
    machine = Machine(root)
    with open(f"{root}/bin/uname", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho $MACHINE\n")
    os.chmod(f"{root}/bin/uname", 0o755)
    of_arm = script.replace("4" * 64, machine.put("the agent of Arm"))
    status, said, _ = machine.run(of_arm, MACHINE="aarch64")
    assert status == 0 and os.listdir(f"{root}/usr/local/bin") == ["node-agent"], said
    assert machine.read("usr/local/bin/node-agent") == "the agent of Arm"
    status, said, calls = machine.run(of_arm, MACHINE="riscv64")
    assert status == 1 and "there is no agent for this machine (riscv64)" in said and calls == "", (said, calls)


def user_data_returns_before_anything_is_installed(states, root):
    data = base64.b64decode(script_of(states, "aws_launch_template", "everything")["user_data"]).decode()
    script = re.search(r"\n(#!/bin/sh\n.*?)\n--==", data, re.S)[1]
    machine = Machine(root)
    status, said, calls = machine.run(script)
    assert status == 0, said
    assert calls.splitlines() == ["systemctl daemon-reload", "systemctl start --no-block node-agent-install.service"], calls
    assert not os.path.exists(f"{root}/usr/local/bin/node-agent")
    assert "docker_socket" in machine.read("usr/local/sbin/node-agent-install")


def a_tasks_files_are_the_sweepers_alone(states, root):
    values = script_of(states, "aws_ecs_task_definition", "highly-available: module.sweeper.aws_ecs_task_definition.sweeper")
    [files] = [one for one in json.loads(values["container_definitions"]) if one["name"] == "files"]
    machine = Machine(root)
    variables = {entry["name"]: entry["value"] for entry in files["environment"]}
    variables |= {entry["name"]: f"value of {entry['name']}" for entry in files["secrets"]}
    status, said, calls = machine.run(files["command"][2], **variables)
    assert status == 0, said
    assert "[store]" in machine.read("etc/cloud-sweeper/sweeper.toml") and "[[rule]]" in machine.read("etc/cloud-sweeper/policy.toml")
    assert machine.read("run/cloud-sweeper-secrets/slack-token") == "value of SECRET_SLACK_TOKEN"
    for folder in ("etc/cloud-sweeper", "run/cloud-sweeper-secrets"):
        for name in os.listdir(f"{root}/{folder}"):
            assert os.stat(f"{root}/{folder}/{name}").st_mode & 0o077 == 0, name
    assert calls.startswith("chown -R 65532:65532 "), calls


def main():
    [folder] = sys.argv[1:]
    states = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            states[name.removesuffix(".json")] = json.load(file)
    for test in (the_agent_is_installed_once, each_processor_gets_its_own, user_data_returns_before_anything_is_installed, a_tasks_files_are_the_sweepers_alone):
        with tempfile.TemporaryDirectory() as root:
            test(states, root)
        print(f"{test.__name__}: ok")


if __name__ == "__main__":
    main()
