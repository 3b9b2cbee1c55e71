//! What the documented policies let through, by an evaluator of IAM's: what acts can stop, start and tag what it stopped, release addresses that have the tag for it, end machines of groups that have it, terminate jobs that have it, and nothing by which somebody could run code, take a
//! protection away or read; who may take its role; and that what reads only reads, by AWS's own classification.

use crate::policies::{allowed, blocks, named};
use lab::iam::simulated;
use serde_json::{Value, json};

const MACHINE: &str = "arn:aws:ec2:eu-central-1:123456789012:instance/i-00000000000000001";
const ROLE: &str = "arn:aws:iam::123456789012:role/cloud-sweeper-act";
/// Whether somebody has exempted what the request is about.
const EXEMPT: &str = "aws:ResourceTag/cloud-sweeper:exempt";
const SWEEPER: &str = "arn:aws:sts::123456789012:assumed-role/cloud-sweeper/replica";

/// Holds each request to whether it is let through.
fn assert_said(cases: &[(bool, Value)]) {
    let requests: Vec<Value> = cases.iter().map(|(_, request)| request.clone()).collect();
    for ((is_allowed, request), said) in cases.iter().zip(simulated(&requests)) {
        // What is exempt is refused whatever else somebody allows the role.
        let denied = if request["context"][EXEMPT].is_null() { "ImplicitlyDenied" } else { "ExplicitlyDenied" };
        let expected = if *is_allowed { "Allowed" } else { denied };
        assert_eq!(said, expected, "{} {} {}", request["principal"], request["action"], request["context"]);
    }
}

#[test]
fn what_acts_may_stop_start_and_tag_what_it_did_and_nothing_else() {
    let policy = &blocks("docs/approvals.md")[0];
    let request = |action: &str, resource: &str, context: Value| {
        let principal = "arn:aws:sts::123456789012:assumed-role/cloud-sweeper-act/cloud-sweeper-act";
        json!({ "policy": policy, "principal": principal, "action": action, "resource": resource, "context": context })
    };
    let tags = |resource: &str, keys: &[&str]| {
        let context = if keys.is_empty() { json!({}) } else { json!({ "aws:TagKeys": keys }) };
        request("ec2:CreateTags", resource, context)
    };
    let other = |kind: &str| format!("arn:aws:ec2:eu-central-1:123456789012:{kind}/x-00000000000000001");
    let stopped =
        ["stopped-by", "stopped-at", "stopped-because", "stopped-by-plan"].map(|key| format!("cloud-sweeper:{key}"));
    let stopped: Vec<&str> = stopped.iter().map(String::as_str).collect();
    let mut cases = vec![
        (true, request("ec2:StopInstances", MACHINE, json!({}))),
        (true, request("ec2:StartInstances", MACHINE, json!({}))),
        (true, tags(MACHINE, &stopped)),
        (false, tags(MACHINE, &[])),
        (false, tags(MACHINE, &[guards::EXEMPTION_TAG])),
        (false, tags(MACHINE, &["Name"])),
        (false, tags(MACHINE, &["cloud-sweeper:stopped-by", "owner"])),
        (false, tags(MACHINE, &["Cloud-Sweeper:stopped-by"])),
        (false, tags(&other("volume"), &stopped)),
        (false, tags(&other("security-group"), &stopped)),
    ];
    let address = other("elastic-ip");
    let allowing = |value: &str| json!({ "aws:ResourceTag/cloud-sweeper:act": value });
    cases.push((true, request("ec2:ReleaseAddress", &address, allowing("allow"))));
    cases.push((false, request("ec2:ReleaseAddress", &address, allowing("deny"))));
    for action in ["AllocateAddress", "AssociateAddress", "DisassociateAddress", "EnableAddressTransfer"] {
        cases.push((false, request(&format!("ec2:{action}"), &address, allowing("allow"))));
    }
    let volume = other("volume");
    for action in ["ec2:DeleteVolume", "ec2:CreateSnapshot"] {
        cases.push((true, request(action, &volume, allowing("allow"))));
        cases.push((false, request(action, &volume, allowing("deny"))));
    }
    let copy = "arn:aws:ec2:eu-central-1::snapshot/snap-00000000000000001";
    let plan = json!({ "aws:TagKeys": ["cloud-sweeper:plan"], "aws:RequestTag/cloud-sweeper:plan": "5d" });
    cases.push((true, request("ec2:CreateSnapshot", copy, plan.clone())));
    cases.push((false, request("ec2:CreateSnapshot", copy, json!({}))));
    cases.push((true, request("ec2:CreateTags", copy, json!({ "ec2:CreateAction": "CreateSnapshot" }))));
    cases.push((false, request("ec2:CreateTags", copy, plan)));
    cases.push((false, request("ec2:DeleteSnapshot", copy, allowing("allow"))));
    let group = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:0:autoScalingGroupName/workers";
    let end = "autoscaling:TerminateInstanceInAutoScalingGroup";
    cases.push((true, request(end, group, allowing("allow"))));
    cases.push((false, request(end, group, allowing("deny"))));
    cases.push((false, request(end, group, json!({}))));
    cases.push((true, request("autoscaling:DescribeTerminationPolicyTypes", "*", json!({}))));
    for action in ["SetDesiredCapacity", "UpdateAutoScalingGroup", "DetachInstances", "SetInstanceProtection"] {
        cases.push((false, request(&format!("autoscaling:{action}"), group, allowing("allow"))));
    }
    cases.push((false, request("autoscaling:DescribeAutoScalingGroups", "*", json!({}))));
    let job = "arn:aws:batch:eu-central-1:123456789012:job/5f0c5c6e-0000-4000-8000-000000000001";
    for action in ["batch:TerminateJob", "batch:ListTagsForResource"] {
        cases.push((true, request(action, job, allowing("allow"))));
        cases.push((false, request(action, job, allowing("deny"))));
        cases.push((false, request(action, job, json!({}))));
    }
    let exempt = |value: &str| json!({ "aws:ResourceTag/cloud-sweeper:act": "allow", EXEMPT: value });
    cases.push((false, request("batch:TerminateJob", job, exempt("the deadline"))));
    cases.push((false, request("batch:TerminateJob", job, exempt(""))));
    cases.push((true, request("batch:TerminateJob", job, exempt("False"))));
    let elsewhere = job.replace("123456789012", "999988887777");
    cases.push((false, request("batch:TerminateJob", &elsewhere, allowing("allow"))));
    for action in ["CancelJob", "TagResource", "UntagResource", "SubmitJob"] {
        cases.push((false, request(&format!("batch:{action}"), job, allowing("allow"))));
    }
    for action in ["DescribeJobs", "ListJobs"] {
        cases.push((false, request(&format!("batch:{action}"), "*", json!({}))));
    }
    // Each by which code could be run, a protection taken away, or something lost.
    for action in [
        "TerminateInstances",
        "RebootInstances",
        "ModifyInstanceAttribute",
        "AssociateIamInstanceProfile",
        "ReplaceIamInstanceProfileAssociation",
        "DeleteTags",
        "SendDiagnosticInterrupt",
        "AttachVolume",
        "DetachVolume",
        "MonitorInstances",
        "GetPasswordData",
        "GetConsoleOutput",
    ] {
        cases.push((false, request(&format!("ec2:{action}"), MACHINE, json!({}))));
    }
    for (action, resource) in [
        ("ec2:DescribeInstances", "*"),
        ("ec2:DeleteVolume", &*other("volume")),
        ("ec2:ReleaseAddress", &*other("elastic-ip")),
        ("iam:PassRole", ROLE),
        ("sts:AssumeRole", ROLE),
        ("ssm:SendCommand", MACHINE),
        ("ec2-instance-connect:SendSSHPublicKey", MACHINE),
    ] {
        cases.push((false, request(action, resource, json!({}))));
    }
    assert_said(&cases);
}

#[test]
fn its_role_is_the_sweepers_alone_by_the_external_id_and_in_somebodys_name() {
    let trust = &blocks("docs/approvals.md")[1];
    let request = |principal: &str, action: &str, context: Value| json!({ "trust": trust, "principal": principal, "action": action, "resource": ROLE, "context": context });
    let id = json!({ "sts:ExternalId": "an-id-of-your-own" });
    let somebody = json!({ "sts:SourceIdentity": "ada" });
    let other = "arn:aws:sts::123456789012:assumed-role/somebody/session";
    assert_said(&[
        (true, request(SWEEPER, "sts:AssumeRole", id.clone())),
        (false, request(SWEEPER, "sts:AssumeRole", json!({ "sts:ExternalId": "another" }))),
        (false, request(SWEEPER, "sts:AssumeRole", json!({}))),
        (false, request(other, "sts:AssumeRole", id.clone())),
        (false, request("arn:aws:iam::999988887777:role/cloud-sweeper", "sts:AssumeRole", id.clone())),
        (true, request(SWEEPER, "sts:SetSourceIdentity", somebody.clone())),
        (false, request(SWEEPER, "sts:SetSourceIdentity", json!({}))),
        (false, request(other, "sts:SetSourceIdentity", somebody)),
        (false, request(SWEEPER, "sts:TagSession", json!({}))),
    ]);
    // The role that reads is another account's.
    let trust = &blocks("docs/operations.md")[0];
    let reads = "arn:aws:iam::123456789012:role/cloud-sweeper";
    let request = |context: Value| {
        let principal = "arn:aws:sts::999988887777:assumed-role/sweeper/replica";
        let policy = &blocks("docs/operations.md")[2];
        json!({ "trust": trust, "policy": policy, "principal": principal, "action": "sts:AssumeRole", "resource": reads, "context": context })
    };
    assert_said(&[
        (true, request(id)),
        (false, request(json!({}))),
        (false, request(json!({ "sts:ExternalId": "x" }))),
    ]);
}

#[test]
fn what_reads_only_reads_and_lists() {
    let mut all = allowed(&blocks("README.md")[0]);
    all.extend(allowed(&blocks("docs/operations.md")[1]));
    all.extend(named("docs/approvals.md", "What reads needs beside"));
    assert!(all.len() > 20, "{all:?}");
    let all: Vec<String> = all.into_iter().collect();
    let levels = simulated(&all.iter().map(|action| json!({ "action": action })).collect::<Vec<_>>());
    for (action, level) in all.iter().zip(levels) {
        assert!(["Read", "List"].contains(&level.as_str()), "{action}: {level}");
    }
}
