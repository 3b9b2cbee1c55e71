//! Cloud Custodian 0.9, asked the nearest question that it answers: which machines are there.

use crate::{
    REGION,
    timed::{self, Run},
};
use lab::{aws::Moto, binaries};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

const POLICY: &str = "policies:\n  - name: machines\n    resource: aws.ec2\n";

/// Lists all machines, without its cache.
pub(crate) fn list(moto: &Moto, folder: &Path, instances: usize) -> Run {
    fs::create_dir_all(folder).expect("a folder for its output");
    let policy = folder.join("policy.yml");
    fs::write(&policy, POLICY).expect("the policy can be written");
    let program = binaries::installed(&binaries::checkout().join(".setup/custodian/bin/custodian"));
    let output = folder.join("output");
    let mut command = Command::new(program);
    command
        .args(["run", "--cache-period", "0", "--region", REGION, "--output-dir"])
        .arg(&output)
        .arg(&policy)
        .envs(moto.environment())
        .env("AWS_DEFAULT_REGION", REGION);
    let (run, _) = timed::run(&mut command, folder);
    let found = fs::read_to_string(output.join("machines/resources.json")).expect("Custodian writes what it found");
    let found: Vec<Value> = serde_json::from_str(&found).expect("a list of machines");
    assert_eq!(found.len(), instances, "Custodian did not see everything");
    run
}
