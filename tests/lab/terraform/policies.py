"""Holds every policy that the modules render to the documentation, to parliament and to an evaluator of IAM's.

Usage: policies.py STATES NODE      STATES: a folder with NAME.json of `terraform show -json`; NODE: a folder with the node_modules of tests/lab/node

The documentation is held to the calls that the sweeper makes (tests/scenarios/actions/policies.rs), so that what equals it is neither too much nor too little.
"""

import json
import os
import re
import subprocess
import sys

from parliament import analyze_policy_string, enhance_finding

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
MACHINE = "arn:aws:ec2:eu-central-1:123456789012:instance/i-00000000000000001"
VOLUME = "arn:aws:ec2:eu-central-1:123456789012:volume/vol-00000000000000001"
COPY = "arn:aws:ec2:eu-central-1::snapshot/snap-00000000000000001"
GROUP = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:00000000-0000-4000-8000-000000000000:autoScalingGroupName/workers"
JOB = "arn:aws:batch:eu-central-1:123456789012:job/5f0c5c6e-0000-4000-8000-000000000001"
ADDRESS = "arn:aws:ec2:eu-central-1:123456789012:elastic-ip/eipalloc-00000000000000001"
SWEEPER = "arn:aws:sts::123456789012:assumed-role/cloud-sweeper-sweeper/session"
ACTING = "arn:aws:sts::123456789012:assumed-role/cloud-sweeper-act/session"
ALLOWED = {"aws:ResourceTag/cloud-sweeper:act": "allow"}
STATUS = [f"cloud-sweeper:stopped-{what}" for what in ("by", "at", "because", "by-plan")]

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def documented(name):
    """The policies of a page, in their order."""
    blocks = [block.split("```")[0] for block in page(name).split("```json")[1:]]
    return [json.loads(block) for block in blocks]


def named(name, begins):
    """The actions that a page names in the paragraph that begins so."""
    [line] = [line for line in page(name).splitlines() if line.strip().startswith(begins)]
    return {part for part in line.split("`")[1::2] if re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", part)}


def several(value):
    return value if isinstance(value, list) else [value]


def actions(policy):
    return {action for statement in policy["Statement"] if statement["Effect"] == "Allow" for action in several(statement["Action"])}


def plain(policy, without):
    """Statements that allow, in a form that can be compared."""
    def of(statement):
        kept = {key: sorted(several(value)) if key in ("Action", "Resource") else value for key, value in statement.items() if key not in without}
        return json.dumps(kept, sort_keys=True)

    return sorted(of(statement) for statement in policy["Statement"] if statement["Effect"] == "Allow")


def resources(module):
    yield from module.get("resources", [])
    for child in module.get("child_modules", []):
        yield from resources(child)


def rendered(states):
    """Each policy that was applied, by where it stands."""
    found = {}
    for name, state in states.items():
        for resource in resources(state["values"]["root_module"]):
            for key, value in resource["values"].items():
                if isinstance(value, str) and value.startswith("{") and '"Statement"' in value:
                    of_it = json.loads(value)
                    if "Statement" in of_it:
                        found[f"{name}: {resource['address']}.{key}"] = of_it
                    for inner, made in of_it.get("Resources", {}).items():
                        properties = made["Properties"]
                        documents = {k: properties[k] for k in ("PolicyDocument", "AssumeRolePolicyDocument") if k in properties}
                        documents.update({policy["PolicyName"]: policy["PolicyDocument"] for policy in properties.get("Policies", [])})
                        for what, document in documents.items():
                            found[f"{name}: {resource['address']}.{inner}.{what}"] = document
    return found


def same(what, is_, should):
    expect(is_ == should, f"{what}: too much {sorted(is_ - should)}, missing {sorted(should - is_)}")


def held_to_the_documentation(states, found):
    checked = states["everything"]["values"]["outputs"]["checked"]["value"]
    readme = actions(documented("README.md")[0])
    read_trust, member, own = documented("docs/operations.md")
    act, act_trust = documented("docs/approvals.md")
    before_acting = named("docs/approvals.md", "What reads needs beside")
    switched_off = named("docs/operations.md", "What is switched off by default")
    expect(len(before_acting) == 7 and len(switched_off) == 2, "docs: the paragraphs that name single actions were not understood")

    widest = {name: json.loads(text) for name, text in checked["widest"].items()}
    same("read role with everything on", actions(widest["read"]), actions(member) | before_acting | switched_off)
    alone = found["organisation: module.organisation[\"production\"].aws_cloudformation_stack_set.roles.ReadRole.read"]
    same("read role where nothing is acted on", actions(alone), actions(member))
    same("act role", actions(widest["act"]), actions(act))
    same("act role's boundary", actions(widest["act_boundary"]), actions(act))
    same("read role's boundary", actions(widest["read_boundary"]), actions(widest["read"]))
    rendered_act, documented_act = plain(widest["act"], {"Sid"}), plain(act, {"Sid"})
    expect(rendered_act == documented_act, f"act role without a tag: {rendered_act} is not what docs/approvals.md has: {documented_act}")
    expect(plain(widest["act_trust"], {"Sid", "Principal"}) == plain(act_trust, {"Sid", "Principal"}), "act role's trust is not that of docs/approvals.md")
    expect(plain(widest["read_trust"], {"Sid", "Principal"}) == plain(read_trust, {"Sid", "Principal"}), "read role's trust is not that of docs/operations.md")
    same("the sweeper with everything on", actions(json.loads(checked["sweeper"])), readme | before_acting | switched_off | actions(own) | actions(act_trust))
    small = found["small: module.sweeper.aws_iam_role_policy.sweeper.policy"]
    same("the sweeper that reads its own account", actions(small), readme)

    block = page("docs/operations.md").split("or a role with exactly these permissions:")[1].split("```")[1]
    same("the role that reads Google Cloud", set(checked["google"]["read"]), set(block.split()))
    for what, begins in (("before_acting", "What reads in Google Cloud needs beside"), ("act", "Who acts in Google Cloud needs")):
        [line] = [line for line in page("docs/approvals.md").splitlines() if line.startswith(begins)]
        documented_there = {part for part in line.split("`")[1::2] if part.startswith("compute.")}
        same(f"Google Cloud, {what}", set(checked["google"][what]), documented_there)


def as_an_identitys(where, policy):
    """parliament knows policies of identities: who may use a resource is put as which resource is used."""
    if any("Principal" in statement for statement in policy["Statement"]):
        resource = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-4000-8000-000000000000" if ".aws_kms_key." in where else "arn:aws:iam::123456789012:role/r"
        changed = [{**{key: value for key, value in statement.items() if key != "Principal"}, "Resource": resource} for statement in policy["Statement"]]
        # The account's own policies say who may use its keys: AWS's default, and nothing to judge.
        changed = [statement for statement in changed if statement["Sid"] != "AccountByItsPolicies"]
        return {**policy, "Statement": changed}
    return policy


def is_in_another_statement(finding, policy):
    """parliament asks each statement for every kind of resource that a call takes. A copy of a volume takes two, under conditions that differ: a statement has one each, and the policy both."""
    if finding.issue != "RESOURCE_MISMATCH" or any(mismatch["action"] != "ec2:CreateSnapshot" for mismatch in finding.detail):
        return False
    allowing = [statement for statement in policy["Statement"] if statement["Effect"] == "Allow" and "ec2:CreateSnapshot" in several(statement["Action"])]
    resources = [resource for statement in allowing for resource in several(statement["Resource"])]
    return all(any(kind in resource for resource in resources) for kind in (":volume/", "::snapshot/"))


def judged_by_parliament(found):
    for where, policy in found.items():
        for finding in analyze_policy_string(json.dumps(as_an_identitys(where, policy))).findings:
            finding = enhance_finding(finding)
            if is_in_another_statement(finding, policy):
                continue
            expect(False, f"{where}: parliament: {finding.issue} {finding.title} {finding.detail} {json.dumps(finding.location, default=str)[:200]}")


def simulated(cases, node):
    requests = [request for _, request in cases]
    command = ["node", os.path.join(ROOT, "tests/lab/node/iam_simulate.mjs"), node]
    answers = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=False)
    if answers.returncode != 0:
        sys.exit(f"policies.py: iam_simulate.mjs failed: {answers.stderr}")
    for (should, request), said in zip(cases, json.loads(answers.stdout), strict=True):
        expect(said == should, f"{request['action']} on {request['resource']} with {request['context']}: {said}, not {should}")


def acting(states):
    checked = states["everything"]["values"]["outputs"]["checked"]["value"]["member"]
    act, trust, boundary = (json.loads(checked[name]) for name in ("act", "act_trust", "act_boundary"))

    def on(policy, action, resource=MACHINE, **context):
        return {"policy": policy, "principal": ACTING, "action": action, "resource": resource, "context": {key: value for key, value in context.get("context", {}).items()}}

    def may(action, context=None, resource=MACHINE):
        return ("Allowed", on(act, action, resource, context=context or {}))

    def may_not(action, context=None, resource=MACHINE, said="ImplicitlyDenied"):
        return (said, on(act, action, resource, context=context or {}))

    exempt = "aws:ResourceTag/cloud-sweeper:exempt"
    keys = {"aws:TagKeys": STATUS}
    cases = [
        # Stop and start: an instance with the allowing tag, and no other.
        may("ec2:StopInstances", ALLOWED),
        may("ec2:StartInstances", ALLOWED),
        may_not("ec2:StopInstances"),
        may_not("ec2:StartInstances"),
        may_not("ec2:StopInstances", {"aws:ResourceTag/cloud-sweeper:act": "deny"}),
        may_not("ec2:StopInstances", {"aws:ResourceTag/Cloud-Sweeper:act2": "allow"}),
        may_not("ec2:StopInstances", {"aws:RequestTag/cloud-sweeper:act": "allow"}),
        # An exempt one never, though undoing a stop stays possible.
        may_not("ec2:StopInstances", {**ALLOWED, exempt: "true"}, said="ExplicitlyDenied"),
        may_not("ec2:StopInstances", {**ALLOWED, exempt: ""}, said="ExplicitlyDenied"),
        may("ec2:StopInstances", {**ALLOWED, exempt: "False"}),
        may("ec2:StartInstances", {**ALLOWED, exempt: "true"}),
        # Status tags, on such an instance alone; never the tags that allow or exempt.
        may("ec2:CreateTags", {**ALLOWED, **keys}),
        may_not("ec2:CreateTags", keys),
        may_not("ec2:CreateTags", ALLOWED),
        may_not("ec2:CreateTags", {**ALLOWED, "aws:TagKeys": ["cloud-sweeper:act"]}),
        may_not("ec2:CreateTags", {**ALLOWED, "aws:TagKeys": ["cloud-sweeper:exempt"]}),
        may_not("ec2:CreateTags", {**ALLOWED, "aws:TagKeys": [STATUS[0], "Name"]}),
        may_not("ec2:CreateTags", {**ALLOWED, **keys}, resource=MACHINE.replace("instance/i-", "volume/vol-")),
    ]
    # By each of these code could be run, a protection taken away, or something lost.
    for action in ["TerminateInstances", "RebootInstances", "ModifyInstanceAttribute", "AssociateIamInstanceProfile", "DeleteTags", "AttachVolume", "GetPasswordData"]:
        cases.append(may_not(f"ec2:{action}", ALLOWED))
    cases.append(may_not("ec2:DescribeInstances", resource="*"))
    cases.append(may_not("iam:PassRole", resource="arn:aws:iam::123456789012:role/cloud-sweeper-act"))
    cases.append(may_not("ssm:SendCommand", ALLOWED))
    # An address is released where that was asked for and the address has the tag, whatever instances need; an exempt one never.
    cases.append(may_not("ec2:ReleaseAddress", ALLOWED, resource=ADDRESS))
    cases.append(may_not("ec2:DeleteVolume", ALLOWED, resource=VOLUME))
    cases.append(may_not("ec2:CreateSnapshot", ALLOWED, resource=VOLUME))
    cases.append(may_not("autoscaling:TerminateInstanceInAutoScalingGroup", ALLOWED, resource=GROUP))
    cases.append(may_not("autoscaling:DescribeTerminationPolicyTypes", resource="*"))
    for action in ["TerminateJob", "ListTagsForResource"]:
        cases.append(may_not(f"batch:{action}", ALLOWED, resource=JOB))
    widest, widest_boundary = (json.loads(states["everything"]["values"]["outputs"]["checked"]["value"]["widest"][name]) for name in ("act", "act_boundary"))
    for policy in (widest, widest_boundary):
        cases.append(("Allowed", on(policy, "ec2:ReleaseAddress", ADDRESS, context=ALLOWED)))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:ReleaseAddress", ADDRESS)))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:ReleaseAddress", ADDRESS, context={"aws:ResourceTag/cloud-sweeper:act": "deny"})))
        cases.append(("ExplicitlyDenied", on(policy, "ec2:ReleaseAddress", ADDRESS, context={**ALLOWED, exempt: "true"})))
        for action in ["DisassociateAddress", "AssociateAddress", "AllocateAddress", "EnableAddressTransfer", "ModifyAddressAttribute"]:
            cases.append(("ImplicitlyDenied", on(policy, f"ec2:{action}", ADDRESS, context=ALLOWED)))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:CreateTags", ADDRESS, context={**ALLOWED, **keys})))
        # A volume is deleted, and copied, where it has the tag; a copy can be tagged as it is made, and neither later nor be deleted.
        for action in ["DeleteVolume", "CreateSnapshot"]:
            cases.append(("Allowed", on(policy, f"ec2:{action}", VOLUME, context=ALLOWED)))
            cases.append(("ImplicitlyDenied", on(policy, f"ec2:{action}", VOLUME)))
        cases.append(("ExplicitlyDenied", on(policy, "ec2:DeleteVolume", VOLUME, context={**ALLOWED, exempt: "true"})))
        marked = {"aws:TagKeys": ["cloud-sweeper:plan"], "aws:RequestTag/cloud-sweeper:plan": "5d"}
        cases.append(("Allowed", on(policy, "ec2:CreateSnapshot", COPY, context=marked)))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:CreateSnapshot", COPY)))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:CreateSnapshot", COPY, context={**marked, "aws:TagKeys": ["cloud-sweeper:plan", "owner"]})))
        cases.append(("Allowed", on(policy, "ec2:CreateTags", COPY, context={"ec2:CreateAction": "CreateSnapshot"})))
        cases.append(("ImplicitlyDenied", on(policy, "ec2:CreateTags", COPY, context=marked)))
        for action in ["DeleteSnapshot", "ModifySnapshotAttribute", "ResetSnapshotAttribute"]:
            cases.append(("ImplicitlyDenied", on(policy, f"ec2:{action}", COPY, context=ALLOWED)))
        for action in ["AttachVolume", "DetachVolume", "ModifyVolume", "CreateVolume"]:
            cases.append(("ImplicitlyDenied", on(policy, f"ec2:{action}", VOLUME, context=ALLOWED)))
        # A machine of a group is ended where the group has the tag, and nothing else is done to a group.
        end = "autoscaling:TerminateInstanceInAutoScalingGroup"
        cases.append(("Allowed", on(policy, end, GROUP, context=ALLOWED)))
        cases.append(("ImplicitlyDenied", on(policy, end, GROUP)))
        cases.append(("ImplicitlyDenied", on(policy, end, GROUP, context={"aws:ResourceTag/cloud-sweeper:act": "deny"})))
        cases.append(("ExplicitlyDenied", on(policy, end, GROUP, context={**ALLOWED, exempt: "true"})))
        cases.append(("Allowed", on(policy, "autoscaling:DescribeTerminationPolicyTypes", "*")))
        for action in ["SetDesiredCapacity", "UpdateAutoScalingGroup", "DeleteAutoScalingGroup", "DetachInstances", "SetInstanceProtection", "SuspendProcesses", "CreateOrUpdateTags"]:
            cases.append(("ImplicitlyDenied", on(policy, f"autoscaling:{action}", GROUP, context=ALLOWED)))
        cases.append(("ImplicitlyDenied", on(policy, "autoscaling:DescribeAutoScalingGroups", "*")))
        # A job is terminated where it has the tag, and nothing else is done to a job.
        for action in ["TerminateJob", "ListTagsForResource"]:
            cases.append(("Allowed", on(policy, f"batch:{action}", JOB, context=ALLOWED)))
            cases.append(("ImplicitlyDenied", on(policy, f"batch:{action}", JOB)))
            cases.append(("ImplicitlyDenied", on(policy, f"batch:{action}", JOB, context={"aws:ResourceTag/cloud-sweeper:act": "deny"})))
        cases.append(("ExplicitlyDenied", on(policy, "batch:TerminateJob", JOB, context={**ALLOWED, exempt: "true"})))
        for action in ["CancelJob", "TagResource", "UntagResource", "SubmitJob"]:
            cases.append(("ImplicitlyDenied", on(policy, f"batch:{action}", JOB, context=ALLOWED)))
    # The boundary holds where somebody attaches more: what it does not allow, no policy allows.
    for action in ["TerminateInstances", "ModifyInstanceAttribute", "DeleteTags", "RunInstances"]:
        cases.append(("ImplicitlyDenied", on(boundary, f"ec2:{action}", context=ALLOWED)))
    cases.append(("ImplicitlyDenied", on(boundary, "iam:CreateUser", "arn:aws:iam::123456789012:user/x")))
    cases.append(("ImplicitlyDenied", on(boundary, "ec2:CreateTags", context={"aws:TagKeys": ["cloud-sweeper:act"]})))
    cases.append(("ExplicitlyDenied", on(boundary, "ec2:StopInstances", context={exempt: "true"})))
    cases.append(("Allowed", on(boundary, "ec2:StopInstances", context=ALLOWED)))

    def assumes(principal, action, context):
        role = "arn:aws:iam::123456789012:role/cloud-sweeper-act"
        return {"trust": trust, "principal": principal, "action": action, "resource": role, "context": context}

    external = {"sts:ExternalId": "an-id-of-your-own"}
    other = "arn:aws:sts::123456789012:assumed-role/somebody/session"
    cases += [
        ("Allowed", assumes(SWEEPER, "sts:AssumeRole", external)),
        ("ImplicitlyDenied", assumes(SWEEPER, "sts:AssumeRole", {})),
        ("ImplicitlyDenied", assumes(SWEEPER, "sts:AssumeRole", {"sts:ExternalId": "another"})),
        ("ImplicitlyDenied", assumes(other, "sts:AssumeRole", external)),
        ("Allowed", assumes(SWEEPER, "sts:SetSourceIdentity", {"sts:SourceIdentity": "ada"})),
        ("ImplicitlyDenied", assumes(SWEEPER, "sts:SetSourceIdentity", {})),
        ("ImplicitlyDenied", assumes(SWEEPER, "sts:TagSession", external)),
    ]
    return cases


def reading(found):
    """The role that reads: AWS's own access level of each of its actions."""
    policy = found["everything: module.widest.aws_iam_role_policy.read.policy"]
    names = sorted(actions(policy))
    return names, [{"action": name} for name in names]


def main():
    folder, node = sys.argv[1], os.path.abspath(sys.argv[2])
    states = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            states[name.removesuffix(".json")] = json.load(file)
    found = rendered(states)
    held_to_the_documentation(states, found)
    judged_by_parliament(found)
    cases = acting(states)
    simulated(cases, node)

    names, requests = reading(found)
    command = ["node", os.path.join(ROOT, "tests/lab/node/iam_simulate.mjs"), node]
    levels = json.loads(subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=True).stdout)
    for name, level in zip(names, levels, strict=True):
        expect(level in ("Read", "List"), f"the read role: {name} is {level}")

    for failure in failures:
        print(f"policies.py: {failure}", file=sys.stderr)
    if failures:
        sys.exit(f"policies.py: {len(failures)} faults. Change terraform/modules/policies or the documentation, so that both say what the code calls.")
    print(f"{len(found)} policies equal the documentation and pass parliament; {len(cases) + len(names)} requests answered as they should")


if __name__ == "__main__":
    main()
