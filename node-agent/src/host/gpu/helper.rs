//! Keeps the helper process running and reads its lines.
//!
//! One thread that sleeps in `poll`. A helper that ends, writes what it should not, or says nothing for [`MOST_SILENCE`]
//! (a call that hangs in the driver) is ended and started again, after 1 s at first and 5 min at most. One that not even
//! SIGKILL ends is stuck inside the kernel: no second one is started beside it.

use super::meter::Meter;
use crate::model::Moment;
use node_agent_gpu::{MAX_LINE_BYTES, Report};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

const MOST_SILENCE: Duration = Duration::from_secs(10);
const LEAST_WAIT: Duration = Duration::from_secs(1);
const MOST_WAIT: Duration = Duration::from_secs(300);
/// Whoever ran so long before it failed is started again at once.
const WELL: Duration = Duration::from_secs(60);
/// How often the thread looks whether it should end.
const STEP: Duration = Duration::from_secs(1);
/// What the helper sees of the agent's environment: where a container keeps the driver's library.
const PASSED_ON: [&str; 1] = ["LD_LIBRARY_PATH"];

/// What the thread and the sampler share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    meter: Mutex<Meter>,
    heard: Condvar,
    stop: AtomicBool,
    /// Process id of the helper; 0 while there is none.
    pid: AtomicU32,
}

impl Shared {
    pub(super) fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first word of the helper, but not longer than this.
    pub(super) fn wait_for_news(&self, longest: Duration) {
        let meter = self.meter();
        drop(self.heard.wait_timeout_while(meter, longest, |meter| !meter.has_heard()));
    }

    fn feed(&self, report: Report) {
        self.meter().feed(report, Moment::now().boottime_ns);
        self.heard.notify_all();
    }

    fn fail(&self, reason: String) {
        tracing::debug!(reason, "the GPU helper failed");
        self.meter().fail(reason);
        self.heard.notify_all();
    }

    /// The helper's process id, while it is there.
    pub(super) fn helper(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the thread, also while it waits.
    pub(super) fn end(&self) {
        // Under the lock: whoever has just looked and not begun to wait yet would miss the call.
        let meter = self.meter();
        self.stop.store(true, Ordering::Relaxed);
        drop(meter);
        self.heard.notify_all();
    }

    /// Waits so long, or until the end.
    fn wait_or_end(&self, time: Duration) {
        drop(self.heard.wait_timeout_while(self.meter(), time, |_| !self.is_stopped()));
    }
}

/// Runs until `shared.stop`.
pub(super) fn keep_running(program: &Path, shared: &Shared) {
    let mut wait = LEAST_WAIT;
    while !shared.is_stopped() {
        let started = Instant::now();
        match start(program) {
            Ok((mut child, out)) => {
                shared.pid.store(child.id(), Ordering::Relaxed);
                if let Some(reason) = listen(out, shared) {
                    shared.fail(reason);
                }
                let _ = child.kill();
                shared.pid.store(0, Ordering::Relaxed);
                reap(&mut child, shared);
            }
            Err(error) => shared.fail(format!("{} cannot be started: {error}", program.display())),
        }
        if started.elapsed() >= WELL {
            wait = LEAST_WAIT;
        }
        shared.wait_or_end(wait);
        wait = (wait * 2).min(MOST_WAIT);
    }
}

fn start(program: &Path) -> std::io::Result<(Child, ChildStdout)> {
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut child = Command::new(program)
        .env_clear()
        .envs(passed_on)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let out = child.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
    Ok((child, out))
}

/// Reads lines until something is wrong with them, and says what; `None` if the helper has said so itself, or the agent ends.
fn listen(mut out: ChildStdout, shared: &Shared) -> Option<String> {
    let mut waiting = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut last = Instant::now();
    while !shared.is_stopped() {
        let step = Timespec { tv_sec: i64::try_from(STEP.as_secs()).unwrap_or(1), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&out, PollFlags::IN)], Some(&step));
        if !matches!(ready, Ok(1..)) {
            if last.elapsed() > MOST_SILENCE {
                return Some(format!("the driver has not answered for {} s", MOST_SILENCE.as_secs()));
            }
            continue;
        }
        let received = match out.read(&mut buffer) {
            Ok(0) if shared.meter().has_failed() => return None,
            Ok(0) => return Some("the GPU helper ended".to_owned()),
            Ok(received) => received,
            Err(error) => return Some(format!("the GPU helper cannot be read: {error}")),
        };
        last = Instant::now();
        waiting.extend_from_slice(buffer.get(..received).unwrap_or_default());
        while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = waiting.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(report) => shared.feed(report),
                Err(error) => return Some(format!("the GPU helper speaks another language: {error}")),
            }
        }
        if waiting.len() > MAX_LINE_BYTES {
            return Some("the GPU helper does not end its line".to_owned());
        }
    }
    None
}

/// Waits until the kernel has let go of it. A kernel before 5.3 gives no descriptor of a process: there this thread, which nobody
/// waits for, waits without an end.
fn reap(child: &mut Child, shared: &Shared) {
    let Ok(pid) = i32::try_from(child.id()) else { return };
    let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some(handle) = handle else { return drop(child.wait()) };
    let step = Timespec { tv_sec: i64::try_from(STEP.as_secs()).unwrap_or(1), tv_nsec: 0 };
    while matches!(child.try_wait(), Ok(None)) && !shared.is_stopped() {
        // A process's descriptor can be read once the process has ended.
        if matches!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&step)), Ok(0)) {
            shared.meter().fail("the GPU helper is stuck inside the driver".to_owned());
        }
    }
}

/// The program beside this one.
pub(super) fn beside_this_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or_else(|| Path::new("/usr/bin")).join("node-agent-gpu")
}
