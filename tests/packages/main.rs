//! The packages on a whole Debian 12 in a micro-VM, from their installation to their removal: `make packages-test`.
//!
//! `packages-test OLD NEW PACKAGE…`: two folders with the packages of an older and a newer version, and which of them are tried (`node-agent.deb`, `node-agent.rpm`,
//! `sweeper.deb`, `sweeper.rpm`), each on a machine of its own. What is tried of the sweeper needs the agent's packages, too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "what is done is read while it goes on: it takes minutes")]

mod agent;
mod machine;
mod service;

use jiff::Timestamp;
use machine::Format;
use std::path::Path;

fn step(what: &str) {
    eprintln!("{} {what}", Timestamp::now().strftime("%T"));
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [old, new, packages @ ..] = arguments.as_slice() else { panic!("usage: packages-test OLD NEW PACKAGE…") };
    let versions = [Path::new(old), Path::new(new)];
    assert!(!packages.is_empty(), "no package is named");
    for package in packages {
        step(&format!("{package}:"));
        match package.as_str() {
            "node-agent.deb" => agent::try_package(Format::Deb, versions).await,
            "node-agent.rpm" => agent::try_package(Format::Rpm, versions).await,
            "sweeper.deb" => service::try_package(Format::Deb, versions).await,
            "sweeper.rpm" => service::try_package(Format::Rpm, versions).await,
            _ => panic!("there is no package {package}"),
        }
    }
    step("done");
}
