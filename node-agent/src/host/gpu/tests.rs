#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::model::Moment;
use std::{fs, os::unix::fs::PermissionsExt as _};

/// A bus with this many GPUs of a maker, and a helper that is this shell script.
fn host(vendor: &str, count: usize, script: &str) -> (tempfile::TempDir, Options) {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..count {
        let device = folder.path().join(format!("pci/0000:00:{index:02x}.0"));
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("vendor"), vendor).unwrap();
        fs::write(device.join("class"), "0x030200").unwrap();
        fs::write(device.join("device"), "0x1111").unwrap();
    }
    let helper = folder.path().join("helper");
    fs::write(&helper, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let options =
        Options { helper: Some(helper), pci_devices: folder.path().join("pci"), class: folder.path().join("class") };
    (folder, options)
}

fn sample(options: &Options) -> (Vec<wire::Gpu>, wire::Capability) {
    let mut capabilities = Capabilities::default();
    let gpus = Gpus::start(options).read(Moment::now().boottime_ns, &mut capabilities);
    (gpus, capabilities.to_wire().into_iter().find(|capability| capability.name == "gpu").unwrap())
}

/// What the capability `accelerators` says.
fn accelerators(options: &Options) -> (Option<Status>, String) {
    let mut capabilities = Capabilities::default();
    Gpus::start(options).read(Moment::now().boottime_ns, &mut capabilities);
    let reason =
        capabilities.to_wire().into_iter().find(|capability| capability.name == "accelerators").unwrap().reason;
    (capabilities.status("accelerators"), reason)
}

fn read(device: &str) -> String {
    format!("echo '{{\"read\":{{\"devices\":[{device}],\"lost\":[]}}}}'; exec sleep 60")
}

const DEVICE: &str = r#"{"uuid":"GPU-1","model":"X","utilization_percent":7,"busy_us":0,"gap":"from here on","unreadable":[],"memory_used_bytes":null,
"memory_total_bytes":null,"power_mw":null,"energy_mj":null,"processes":[1],"process_count":1}"#;

#[test]
fn a_host_without_a_gpu_starts_nothing() {
    let (folder, options) = host("0x1d0f", 1, "exit 1");
    // An EC2 instance's emulated display.
    fs::write(folder.path().join("pci/0000:00:00.0/class"), "0x030000").unwrap();
    let gpus = Gpus::start(&options);
    assert!(gpus.shared.is_none() && !gpus.bus().any_gpu());
    assert_eq!(accelerators(&options).0, Some(Status::NotApplicable));
    assert_eq!(sample(&options).1.status, i32::from(wire::CapabilityStatus::NotApplicable));
}

#[test]
fn a_gpu_of_amd_is_said_to_be_unsupported() {
    let (gpus, capability) = sample(&host("0x1002", 1, "exit 1").1);
    assert!(gpus.is_empty());
    assert_eq!(capability.status, i32::from(wire::CapabilityStatus::Unsupported));
    assert!(capability.reason.contains("AMD"), "{capability:?}");
    let (status, reason) = accelerators(&host("0x1002", 2, "exit 1").1);
    assert_eq!(status, Some(Status::Unsupported));
    assert_eq!(reason, "nobody reads what these accelerators do: 2 of AMD 1002:1111");
}

#[test]
fn an_accelerator_of_another_maker_is_something_that_nobody_reads() {
    let (_folder, options) = host("0x8086", 1, "exit 1");
    let (gpus, capability) = sample(&options);
    assert!(gpus.is_empty() && !Gpus::start(&options).bus().any_gpu());
    assert_eq!(
        capability.status,
        i32::from(wire::CapabilityStatus::NotApplicable),
        "it is no GPU that this version knows"
    );
    let (status, reason) = accelerators(&options);
    assert_eq!(status, Some(Status::Unsupported));
    assert!(reason.contains("1 of Intel 8086:1111"), "{reason}");
}

#[test]
fn a_bus_that_cannot_be_read_is_broken_and_may_hold_a_gpu() {
    let (folder, options) = host("0x1d0f", 1, "exit 1");
    fs::remove_file(folder.path().join("pci/0000:00:00.0/class")).unwrap();
    let (gpus, capability) = sample(&options);
    assert!(gpus.is_empty() && Gpus::start(&options).bus().any_gpu());
    assert_eq!(capability.status, i32::from(wire::CapabilityStatus::Broken));
    assert!(capability.reason.contains("there may be a GPU"), "{capability:?}");
}

#[test]
fn what_the_helper_reads_is_there_at_the_first_sample() {
    let (gpus, capability) = sample(&host("0x10de", 1, &read(&DEVICE.replace('\n', ""))).1);
    assert_eq!(capability.status, i32::from(wire::CapabilityStatus::Ok), "{capability:?}");
    assert_eq!((gpus.len(), gpus[0].utilization_percent, gpus[0].processes), (1, Some(7), Some(1)));
    assert!(!gpus[0].workloads.is_empty(), "process 1 belongs to some cgroup");
    let (_folder, options) = host("0x10de", 1, &read(&DEVICE.replace('\n', "")));
    assert_eq!(accelerators(&options), (Some(Status::Ok), String::new()));
}

#[test]
fn a_helper_that_cannot_read_says_so() {
    for (script, expected) in [
        ("exit 0", "ended"),
        ("echo '{\"failed\":{\"reason\":\"no driver\"}}'", "no driver"),
        ("echo hello", "another language"),
        ("head -c 600000 /dev/zero; exec sleep 60", "does not end its line"),
    ] {
        let (gpus, capability) = sample(&host("0x10de", 1, script).1);
        assert!(gpus.is_empty(), "{script}");
        assert_eq!(capability.status, i32::from(wire::CapabilityStatus::Broken), "{script}");
        assert!(capability.reason.contains(expected), "{script}: {capability:?}");
    }
    let (_folder, mut options) = host("0x10de", 1, "exit 0");
    options.helper = Some("/nonexistent/helper".into());
    let (_, capability) = sample(&options);
    assert!(capability.reason.contains("/nonexistent/helper cannot be started"), "{capability:?}");
}

#[test]
fn one_gpu_of_two_is_not_all() {
    let (gpus, capability) = sample(&host("0x10de", 2, &read(&DEVICE.replace('\n', ""))).1);
    assert_eq!(gpus.len(), 1);
    assert!(capability.reason.contains("of 2 GPUs on the bus 1"), "{capability:?}");
}
