"""Renders the agent's Helm chart by Go's own template engine, and holds it to packaging/kubernetes/daemonset.yaml and to Kubernetes' own schema.

Usage: chart.py NODE      NODE: a folder with the node_modules of tests/lab/node

Not shown, because Helm itself is not packaged where this runs: `helm lint`, and an installation.
"""

import copy
import glob
import json
import os
import subprocess
import sys

import jsonschema
import kubernetes_validate
import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
CHART = os.path.join(ROOT, "deploy/helm/node-agent")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def merged(values, over):
    values = copy.deepcopy(values)
    for key, value in over.items():
        values[key] = merged(values[key], value) if isinstance(value, dict) else value
    return values


def rendered(node, **over):
    """The objects that the chart comes to, each valid by Kubernetes' schema."""
    values = merged(yaml.safe_load(text(f"{CHART}/values.yaml")), over)
    jsonschema.validate(values, json.loads(text(f"{CHART}/values.schema.json")))
    templates = [text(path) for path in sorted(glob.glob(f"{CHART}/templates/*.yaml"))]
    request = {"templates": templates, "values": {"Values": values, "Release": {"Name": "node-agent", "Namespace": "cloud-sweeper"}}}
    command = ["node", f"{ROOT}/tests/lab/node/go_template.mjs", os.path.abspath(node)]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    objects = [one for page in json.loads(done.stdout) for one in yaml.safe_load_all(page) if one]
    for one in objects:
        kubernetes_validate.validate(one, "1.33", strict=True)
    return objects


def main():
    [node] = sys.argv[1:]
    packaged = yaml.safe_load(text(f"{ROOT}/packaging/kubernetes/daemonset.yaml"))
    plain = rendered(node, sweeperUrl="https://sweeper.example.com")
    assert plain == [packaged], f"the chart is not packaging/kubernetes/daemonset.yaml:\n{yaml.dump(plain)}"

    digest = "sha256:" + "0" * 64
    full = rendered(node, sweeperUrl="https://sweeper.example.com", containers=True, authorityConfigMap="authority", image={"digest": digest})
    assert [one["kind"] for one in full] == ["DaemonSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"], full
    pod = full[0]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["image"].endswith(f"@{digest}") and pod["serviceAccountName"] == "node-agent"
    assert {"NODE_AGENT_KUBELET_URL", "SSL_CERT_FILE"} <= {one["name"] for one in container["env"]}
    assert full[2]["rules"] == [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}]

    for wrong in ({}, {"sweeperUrl": "https://x/path"}, {"sweeperUrl": "https://x", "image": {"digest": "latest"}}, {"sweeperUrl": 'https://x"\nprivileged: true'}):
        try:
            rendered(node, **wrong)
        except jsonschema.ValidationError:
            continue
        sys.exit(f"chart.py: values that should be refused are taken: {wrong}")
    print("the chart comes to packaging/kubernetes/daemonset.yaml, and is valid with everything switched on")


if __name__ == "__main__":
    main()
