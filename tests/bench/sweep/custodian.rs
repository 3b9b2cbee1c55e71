//! Cloud Custodian 0.9, asked the nearest questions that it answers: which machines, volumes and compute environments are there. Of jobs it
//! knows nothing.

use crate::REGION;
use lab::{
    aws::Moto,
    binaries,
    timed::{self, Run},
};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

const POLICY: &str = "\
policies:
  - name: machines
    resource: aws.ec2
  - name: volumes
    resource: aws.ebs
  - name: environments
    resource: aws.batch-compute
";

/// Lists all of them, without its cache.
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
    for policy in ["machines", "volumes"] {
        let found = output.join(policy).join("resources.json");
        let found = fs::read_to_string(found).expect("Custodian writes what it found");
        let found: Vec<Value> = serde_json::from_str(&found).expect("a list");
        assert_eq!(found.len(), instances, "Custodian did not see all {policy}");
    }
    run
}
