//! What IAM would say of a request, by an evaluator of somebody else's that knows AWS's own list of actions, resources and condition keys.

use crate::binaries;
use serde_json::Value;
use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// Answers requests, one each, as `tests/lab/node/iam_simulate.mjs` says.
///
/// # Panics
///
/// When the evaluator is not installed, or does not understand a request.
#[must_use]
pub fn simulated(requests: &[Value]) -> Vec<String> {
    let packages = binaries::installed(&binaries::checkout().join(".setup/node"));
    let mut command = Command::new(binaries::system("node"));
    command.arg(binaries::checkout().join("tests/lab/node/iam_simulate.mjs")).arg(packages);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("node starts");
    let input = serde_json::to_vec(requests).expect("requests are JSON");
    process.stdin.take().expect("its input").write_all(&input).expect("it reads the requests");
    let output = process.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<String> = serde_json::from_slice(&output.stdout).expect("a list of answers");
    assert_eq!(answers.len(), requests.len());
    answers
}
