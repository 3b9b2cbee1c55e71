//! A child process that a test started, and that never outlives it.

use crate::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long an ended process may take to close its files before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A line of a process's `/proc/PID/status` that is a size, in bytes, as long as the kernel tells it.
#[must_use]
pub fn memory_bytes(pid: Pid, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// A running child. Dropping it ends it: by SIGTERM, and by SIGKILL after five seconds.
///
/// Its output goes to a file, so that it never blocks on a full pipe; a failing test prints the end of that file.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    output: PathBuf,
}

impl Running {
    /// Starts `command` with its output in `folder`/`name`.log, after whatever that file held before.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(name: &str, command: &mut Command, folder: &Path) -> Self {
        let output = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&output).expect("the log can be written");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle of the log"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}: {command:?}"));
        Self { name: name.into(), child, output }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// A line of its `/proc/PID/status` that is a size, in bytes: `VmHWM` is the most that was ever resident.
    ///
    /// # Panics
    ///
    /// When it has ended, or the kernel does not tell that.
    #[must_use]
    pub fn memory_bytes(&self, name: &str) -> u64 {
        memory_bytes(self.pid(), name).unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }

    /// What it has written so far, on both streams.
    ///
    /// # Panics
    ///
    /// When the log has been taken away.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).expect("the log can be read")).into_owned()
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Panics
    ///
    /// When the kernel does not know the child.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child can be asked for")
    }

    /// Waits until it has written a line that contains `text`, and returns that line.
    ///
    /// # Panics
    ///
    /// When it ends without having done so, or after `timeout`.
    pub async fn line_with(&mut self, text: &str, timeout: Duration) -> String {
        let what = format!("`{text}` from {}", self.name);
        wait::until(&what, timeout, || {
            // Asked before the output is read: what an ended process wrote is complete.
            let ended = self.ended();
            let found = self.output().lines().find(|line| line.contains(text)).map(str::to_owned);
            assert!(found.is_some() || ended.is_none(), "{} ended ({ended:?}) without `{text}`", self.name);
            async { found }
        })
        .await
    }

    /// Waits until it has ended of its own accord.
    ///
    /// # Panics
    ///
    /// After `timeout`.
    pub async fn end(&mut self, timeout: Duration) -> ExitStatus {
        let what = format!("the end of {}", self.name);
        wait::until(&what, timeout, || {
            let ended = self.ended();
            async move { ended }
        })
        .await
    }

    /// Asks it to end (SIGTERM) and waits for that.
    ///
    /// # Panics
    ///
    /// When it does not end within `timeout`.
    pub async fn terminate(&mut self, timeout: Duration) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end(timeout).await
    }

    /// Ends it the hard way, as a power cut would (SIGKILL).
    ///
    /// # Panics
    ///
    /// When the kernel refuses.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("a killed child can be waited for");
    }

    /// Sends a signal, unless it has ended already.
    ///
    /// # Panics
    ///
    /// When the kernel refuses.
    pub fn signal(&mut self, signal: Signal) {
        // Until the child has been waited for, its process id cannot name another process.
        if self.ended().is_none() {
            kill_process(self.pid(), signal).expect("a child can be signalled");
        }
    }
}

/// Shows the end of a log, for the person who reads why a test failed.
#[expect(clippy::print_stderr, reason = "the test harness shows the standard error of a failed test")]
pub fn tell_last_lines(name: &str, log: &Path) {
    let output = fs::read(log).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let lines: Vec<_> = output.lines().collect();
    eprintln!("--- {name}, last lines:");
    for line in &lines[lines.len().saturating_sub(40)..] {
        eprintln!("{line}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            tell_last_lines(&self.name, &self.output);
        }
        // A drop must not panic: whatever fails here, the child has ended already.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(self.pid(), Signal::TERM);
            let deadline = Instant::now() + GRACE;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
