use super::*;

const S: u64 = 1_000_000_000;

/// A device, and for how many milliseconds it was busy since the report before.
fn device(uuid: &str, busy_ms: Option<u64>) -> Device {
    let utilization_percent = busy_ms.map(|_| 0);
    let busy_us = busy_ms.map(|ms| ms * 1000);
    Device { uuid: uuid.into(), model: "H100\u{1b}[31m".into(), utilization_percent, busy_us, ..Device::default() }
}

fn read(devices: &[Device]) -> Report {
    Report::Read { devices: devices.to_vec(), lost: Vec::new() }
}

fn busy(gpus: &[(wire::Gpu, Vec<u32>)]) -> Vec<Option<u64>> {
    gpus.iter().map(|(gpu, _)| gpu.busy_ns).collect()
}

#[test]
fn what_ran_between_two_reports_adds_up() {
    let mut meter = Meter::default();
    assert!(!meter.has_heard());
    for (second, busy_ms) in [(10, 0), (11, 500), (13, 400), (14, 0)] {
        meter.feed(read(&[device("A", Some(busy_ms)), device("B", Some(0))]), second * S);
    }
    let (gpus, problem) = meter.take(15 * S, 2);
    assert_eq!(problem, None);
    assert_eq!(busy(&gpus), [Some(S / 2 + 2 * S / 5), Some(0)]);
    assert_eq!(gpus[0].0.model, "H100\\u{1b}[31m");
}

#[test]
fn a_gap_is_told_once() {
    let mut meter = Meter::default();
    meter.feed(read(&[device("A", Some(0))]), 10 * S);
    meter.feed(read(&[device("A", Some(0))]), 16 * S);
    assert!(matches!(meter.take(16 * S, 1).1, Some(Problem::Broken(reason)) if reason.contains("for a while")));
    meter.feed(read(&[device("A", Some(1000))]), 17 * S);
    let (gpus, problem) = meter.take(17 * S, 1);
    assert_eq!((busy(&gpus), problem), (vec![Some(S)], None));
}

#[test]
fn what_the_driver_did_not_sample_is_a_gap_but_before_the_first_report() {
    let mut meter = Meter::default();
    let begins = || Device { gap: Some("from here on".into()), ..device("A", Some(0)) };
    meter.feed(read(&[begins()]), 10 * S);
    assert_eq!(meter.take(10 * S, 1).1, None, "nobody asks what came before");
    // Another helper, or another clock.
    meter.feed(read(&[begins()]), 11 * S);
    let (gpus, problem) = meter.take(11 * S, 1);
    assert_eq!((busy(&gpus), problem), (vec![Some(0)], Some(Problem::Broken("A: from here on".into()))));
    meter.feed(read(&[device("A", Some(0))]), 12 * S);
    assert_eq!(meter.take(12 * S, 1).1, None);
}

#[test]
fn silence_is_no_sample() {
    let mut meter = Meter::default();
    meter.feed(read(&[device("A", Some(0))]), 10 * S);
    assert_eq!(meter.take(15 * S, 1).1, None);
    let (gpus, problem) = meter.take(15 * S + 1, 1);
    assert!(gpus.is_empty());
    assert!(matches!(problem, Some(Problem::Broken(reason)) if reason.contains("no sample")));
}

#[test]
fn a_helper_that_failed_within_the_interval_was_not_looking() {
    let mut meter = Meter::default();
    meter.feed(Report::Failed { reason: "no driver".into() }, S);
    assert!(meter.has_heard());
    assert_eq!(meter.take(2 * S, 1), (Vec::new(), Some(Problem::Broken("no driver".into()))));
    assert_eq!(meter.take(3 * S, 1).1, Some(Problem::Broken("no driver".into())), "until it reads");
    meter.feed(read(&[device("A", Some(0))]), 4 * S);
    assert_eq!(meter.take(4 * S, 1).1, None);
    meter.fail("it crashed".into());
    meter.feed(read(&[device("A", Some(0))]), 5 * S);
    let (gpus, problem) = meter.take(5 * S, 1);
    assert_eq!((gpus.len(), problem), (1, Some(Problem::Broken("it crashed".into()))));
}

#[test]
fn a_device_without_utilisation_is_absent_and_not_idle() {
    let mut meter = Meter::default();
    let mut mig = device("A", None);
    mig.unreadable = vec!["utilization: not available".into()];
    meter.feed(read(&[mig, device("B", Some(0))]), S);
    let (gpus, problem) = meter.take(S, 2);
    assert_eq!(busy(&gpus), [None, Some(0)]);
    assert!(
        matches!(problem, Some(Problem::Unsupported(reason)) if reason.starts_with("A: utilization: not available"))
    );
    assert!(meter.take(S + 1, 2).1.is_some(), "no newer sample says otherwise");
    meter.feed(read(&[device("A", Some(0)), device("B", Some(0))]), 2 * S);
    assert_eq!(meter.take(2 * S, 2).1, None);
    // The present utilisation alone is that of the last fifth of a second.
    let unsampled = Device { busy_us: None, unreadable: vec!["samples: not supported".into()], ..device("A", Some(0)) };
    meter.feed(read(&[unsampled, device("B", Some(0))]), 3 * S);
    let (gpus, problem) = meter.take(3 * S, 2);
    assert_eq!(busy(&gpus), [None, Some(0)]);
    assert!(matches!(problem, Some(Problem::Unsupported(reason)) if reason.starts_with("A: samples: not supported")));
}

#[test]
fn every_device_of_the_bus_must_be_read() {
    let mut meter = Meter::default();
    meter.feed(read(&[device("A", Some(0))]), S);
    assert_eq!(meter.take(S, 1).1, None);
    assert!(matches!(meter.take(S, 2).1, Some(Problem::Broken(reason)) if reason.contains("of 2 GPUs on the bus 1")));
    // One that falls off the bus while it is watched.
    meter.feed(read(&[]), 2 * S);
    assert!(matches!(meter.take(2 * S, 0).1, Some(Problem::Broken(reason)) if reason == "A is gone"));
    let lost = Report::Read { devices: vec![device("A", Some(0))], lost: vec!["device 1: lost".into()] };
    meter.feed(lost, 3 * S);
    assert!(matches!(meter.take(3 * S, 1).1, Some(Problem::Broken(reason)) if reason == "device 1: lost"));
}
