//! A host with GPUs, as the real agent and its real helper see it through a library whose answers are made up here: what was
//! read is told, and what was not read is told as well. What a real one says is in docs/journal/2026-11-27-a-real-gpu.md.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    nvml::{DRIVER_NOT_LOADED, GPU_IS_LOST, GpuHost, LIB_RM_VERSION_MISMATCH, NOT_SUPPORTED},
    process::Running,
    wait,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{fs, path::Path, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(60);
const READ: &str = "CAPABILITY_STATUS_OK";
const BROKEN: &str = "CAPABILITY_STATUS_BROKEN";
const UNSUPPORTED: &str = "CAPABILITY_STATUS_UNSUPPORTED";

struct Once(Running);

impl Once {
    /// Starts `node-agent once`, and returns once it has its baseline.
    async fn measuring(folder: &Path, host: &GpuHost, interval: &str) -> Self {
        let library = host.library_folder();
        let agent = Agent::prepare(folder, &host.configuration(), &[("LD_LIBRARY_PATH", library.to_str().unwrap())]);
        let mut running = Running::start("once", agent.command().args(["once", "--interval", interval]), folder);
        running.line_with("measuring from here on", TIMEOUT).await;
        Self(running)
    }

    /// The helper that this agent started.
    async fn helper(&self) -> Pid {
        let agent = self.0.pid().as_raw_nonzero().get();
        let children = format!("/proc/{agent}/task");
        wait::until("the helper", TIMEOUT, || {
            // A child belongs to the thread that started it.
            let threads = fs::read_dir(&children).unwrap().filter_map(Result::ok);
            let found = threads
                .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
                .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
                .find(|pid| {
                    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "node-agent-gpu")
                });
            async move { found.and_then(Pid::from_raw) }
        })
        .await
    }

    async fn heartbeat(mut self) -> Heartbeat {
        let status = self.0.end(TIMEOUT).await;
        let output = self.0.output();
        assert!(status.success(), "{status}: {output}");
        Heartbeat(serde_json::from_str(&output[output.find("\n{\n").unwrap()..]).unwrap())
    }
}

struct Heartbeat(Value);

impl Heartbeat {
    fn gpu_capability(&self) -> (&str, &str) {
        self.capability("gpu")
    }

    fn capability(&self, name: &str) -> (&str, &str) {
        let capabilities = self.0["coverage"]["capabilities"].as_array().unwrap();
        let capability = capabilities.iter().find(|capability| capability["name"] == name).unwrap();
        (capability["status"].as_str().unwrap(), capability["reason"].as_str().unwrap())
    }

    fn gpus(&self) -> &[Value] {
        self.0["gpus"].as_array().unwrap()
    }

    fn assert_unread(&self, status: &str, reason: &str) {
        assert_eq!(self.0["host"]["gpu_present"], true);
        assert_eq!(self.gpu_capability().0, status, "{:?}", self.gpu_capability());
        assert!(self.gpu_capability().1.contains(reason), "{:?} does not say `{reason}`", self.gpu_capability());
    }
}

async fn heartbeat(gpus: u32, answers: &[(&str, u32)]) -> Heartbeat {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), gpus);
    host.answers(answers);
    Once::measuring(folder.path(), &host, "200ms").await.heartbeat().await
}

#[tokio::test]
async fn two_gpus_are_read_and_the_busy_one_is_told_from_the_idle_one() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 2);
    host.answers(&[("count", 2), ("busy0", 80), ("pid0", std::process::id())]);
    let once = Once::measuring(folder.path(), &host, "5s").await;

    let helper = once.helper().await;
    let status = fs::read_to_string(format!("/proc/{}/status", helper.as_raw_nonzero())).unwrap();
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line} is not in {status}");
    }

    let heartbeat = once.heartbeat().await;
    assert_eq!(heartbeat.gpu_capability(), (READ, ""));
    assert_eq!(heartbeat.capability("accelerators"), (READ, ""), "nothing else computes");
    let [busy, idle] = heartbeat.gpus() else { panic!("{:?}", heartbeat.gpus()) };
    let busy_ns = busy["busy_ns"].as_u64().unwrap();
    // 80 % of what lies between the first and the last of the samples that fell into the interval, each 1 s after the other: up to 1 s more or less than its
    // length, which is more than was asked for where the host is busy.
    let at = |end: &str| heartbeat.0["interval"][end].as_u64().unwrap();
    let length_ns = at("end_boottime_ns") - at("start_boottime_ns");
    let least = (length_ns - 1_000_000_000) / 10 * 8 - 200_000_000;
    assert!((least..=least + 2_000_000_000).contains(&busy_ns), "{busy_ns} ns of {length_ns}");
    assert_eq!([&busy["utilization_percent"], &busy["processes"]], [80, 1]);
    assert_eq!(busy["model"], "NVIDIA Stand-in 80GB");
    assert_eq!([&busy["memory_used_bytes"], &busy["memory_total_bytes"]], [1_000_000_000_u64, 80_000_000_000]);
    assert_eq!([&busy["power_mw"], &busy["energy_mj"]], [70_000, 123_456_789]);
    // The process on it is this test: its workload is one that the same heartbeat has a row of.
    let keys: Vec<_> = heartbeat.0["workloads"].as_array().unwrap().iter().map(|row| &row["key"]).collect();
    assert!(keys.contains(&&busy["workloads"][0]), "{busy} {keys:?}");
    assert_eq!([&idle["busy_ns"], &idle["utilization_percent"], &idle["processes"]], [0, 0, 0]);
    assert_ne!(idle["uuid"], busy["uuid"]);

    wait::until("the end of the helper", TIMEOUT, || {
        let gone = !Path::new(&format!("/proc/{}", helper.as_raw_nonzero())).exists();
        async move { gone.then_some(()) }
    })
    .await;
}

#[tokio::test]
async fn work_of_which_the_present_utilisation_shows_nothing_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    // As an H100's driver tells of kernels that run for 100 ms in each second: in four of five samples there are none, and the present one is whichever of them.
    host.answers(&[("count", 1), ("burst0", 50)]);
    let heartbeat = Once::measuring(folder.path(), &host, "10s").await.heartbeat().await;
    assert_eq!(heartbeat.gpu_capability(), (READ, ""));
    let gpu = &heartbeat.gpus()[0];
    assert_eq!(gpu["utilization_percent"], 0);
    // 100 ms for each whole second; what came within the last one is told of with the next heartbeat.
    let busy_ms = gpu["busy_ns"].as_u64().unwrap() / 1_000_000;
    assert!((800..=1_100).contains(&busy_ms), "{busy_ms}");
}

#[tokio::test]
async fn a_driver_without_samples_is_not_idle() {
    let unsupported = heartbeat(1, &[("count", 1), ("samples_error0", NOT_SUPPORTED)]).await;
    unsupported.assert_unread(UNSUPPORTED, "samples");
    assert_eq!(
        unsupported.gpus()[0]["busy_ns"],
        Value::Null,
        "the present utilisation of 0 % says nothing about the time before"
    );

    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    let once = Once::measuring(folder.path(), &host, "8s").await;
    host.answers(&[("count", 1), ("samples_stopped0", 1)]);
    once.heartbeat().await.assert_unread(BROKEN, "the driver took no sample for");
}

#[tokio::test]
async fn an_accelerator_beside_the_gpus_is_one_that_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    host.with_device("0000:10:00.0", "0x8086", "0x0bda", "0x038000");
    host.with_device("0000:11:00.0", "0x1d0f", "0x7164", "0x088000");
    host.with_device("0000:12:00.0", "0x1a03", "0x2000", "0x030000");
    let heartbeat = Once::measuring(folder.path(), &host, "200ms").await.heartbeat().await;
    assert_eq!(heartbeat.gpu_capability(), (READ, ""), "the GPU is read all the same");
    let reason = "nobody reads what these accelerators do: 1 of Amazon 1d0f:7164, 1 of Intel 8086:0bda";
    assert_eq!(heartbeat.capability("accelerators"), (UNSUPPORTED, reason));
}

#[tokio::test]
async fn a_gpu_in_parts_has_no_utilisation_and_says_so() {
    let heartbeat =
        heartbeat(1, &[("count", 1), ("busy_error0", NOT_SUPPORTED), ("processes_error0", NOT_SUPPORTED)]).await;
    heartbeat.assert_unread(UNSUPPORTED, "utilization");
    let [gpu] = heartbeat.gpus() else { panic!("{:?}", heartbeat.gpus()) };
    assert_eq!([&gpu["busy_ns"], &gpu["utilization_percent"], &gpu["processes"]], [&Value::Null; 3]);
    assert_eq!(gpu["memory_total_bytes"], 80_000_000_000_u64, "what can be read is");
}

#[tokio::test]
async fn a_missing_list_of_processes_costs_only_that() {
    let heartbeat = heartbeat(1, &[("count", 1), ("processes_error0", NOT_SUPPORTED)]).await;
    assert_eq!(heartbeat.gpu_capability(), (READ, ""));
    assert_eq!([&heartbeat.gpus()[0]["busy_ns"], &heartbeat.gpus()[0]["processes"]], [&Value::from(0), &Value::Null]);
}

#[tokio::test]
async fn a_driver_that_is_not_there_or_does_not_fit_is_named() {
    for (error, reason) in [(DRIVER_NOT_LOADED, "driver"), (LIB_RM_VERSION_MISMATCH, "version")] {
        let heartbeat = heartbeat(1, &[("init", error)]).await;
        heartbeat.assert_unread(BROKEN, "NVML does not start");
        assert!(heartbeat.gpu_capability().1.contains(reason), "{:?}", heartbeat.gpu_capability());
        assert!(heartbeat.gpus().is_empty());
    }
}

#[tokio::test]
async fn a_gpu_that_is_lost_is_not_taken_for_the_others() {
    let heartbeat = heartbeat(2, &[("count", 2), ("handle_error1", GPU_IS_LOST)]).await;
    heartbeat.assert_unread(BROKEN, "device 1");
    assert_eq!(heartbeat.gpus().len(), 1);
}

#[tokio::test]
async fn a_gpu_that_the_driver_does_not_know_is_missed() {
    heartbeat(2, &[("count", 1)]).await.assert_unread(BROKEN, "of 2 GPUs on the bus 1 can be read");
}

#[tokio::test]
async fn without_the_library_the_host_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    fs::remove_file(host.library()).unwrap();
    let heartbeat = Once::measuring(folder.path(), &host, "200ms").await.heartbeat().await;
    heartbeat.assert_unread(BROKEN, "libnvidia-ml.so.1");
}

#[tokio::test]
async fn a_driver_that_hangs_makes_the_gpus_unread_and_the_agent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    let once = Once::measuring(folder.path(), &host, "8s").await;
    host.answers(&[("count", 1), ("hang", 1)]);
    let heartbeat = once.heartbeat().await;
    heartbeat.assert_unread(BROKEN, "no sample for more than 5 s");
    assert!(heartbeat.gpus().is_empty(), "what is old says nothing about now");
    assert!(heartbeat.0["counters"]["cpu_busy_ns"].is_u64());
}

#[tokio::test]
async fn a_driver_that_hangs_from_the_beginning_keeps_the_agent_from_nothing() {
    heartbeat(1, &[("hang", 1)]).await.assert_unread(BROKEN, "no sample");
}

#[tokio::test]
async fn a_helper_that_dies_is_started_again_and_the_interval_is_not_wholly_read() {
    let folder = tempfile::tempdir().unwrap();
    let host = GpuHost::with(folder.path(), 1);
    let once = Once::measuring(folder.path(), &host, "6s").await;
    let first = once.helper().await;
    kill_process(first, Signal::KILL).unwrap();
    let second = wait::until("another helper", TIMEOUT, || async {
        let now = once.helper().await;
        (now != first).then_some(now)
    })
    .await;
    assert_ne!(first, second);
    let heartbeat = once.heartbeat().await;
    heartbeat.assert_unread(BROKEN, "ended");
    assert_eq!(heartbeat.gpus().len(), 1, "it reads again");
}
