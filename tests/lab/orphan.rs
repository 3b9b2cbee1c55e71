//! Commands that do not descend from the test.
//!
//! Whoever runs the tests from a script has them all in that script's run, and what they start would be that run's tasks. An orphan descends from
//! the machine's first process alone, as what a person starts does.

use crate::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Waits for the word, runs what it is given, and says which process that is and how it ended.
const LAUNCHER: &str = r#"read -r _ <"$0/begin" || exit 1
"$@" >"$0/log" 2>&1 </dev/null & echo $! >"$0/pid.part"; mv "$0/pid.part" "$0/pid"
wait $!; echo $? >"$0/status.part"; mv "$0/status.part" "$0/status""#;
const READY: Duration = Duration::from_secs(30);

/// A command that waits for its beginning, or runs; it ends with this value.
#[derive(Debug)]
pub struct Orphan {
    folder: PathBuf,
}

impl Orphan {
    /// Readies it; it belongs to nobody when this returns. `folder` is its own.
    ///
    /// # Panics
    ///
    /// When the folder cannot be made, or `setsid` does not start.
    #[must_use]
    pub fn new(command: &Command, folder: PathBuf) -> Self {
        fs::create_dir(&folder).expect("a folder can be made");
        let made = Command::new("mkfifo").arg(folder.join("begin")).status().expect("mkfifo starts");
        assert!(made.success(), "mkfifo: {made}");
        let mut launcher = Command::new("setsid");
        launcher
            .args(["--fork", "sh", "-c", LAUNCHER])
            .arg(&folder)
            .arg(command.get_program())
            .args(command.get_args());
        launcher.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(at) = command.get_current_dir() {
            launcher.current_dir(at);
        }
        launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It ends as soon as it has forked.
        let forked = launcher.status().expect("setsid starts");
        assert!(forked.success(), "setsid: {forked}");
        Self { folder }
    }

    /// Lets it begin; its process id.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub async fn begin(&self) -> i32 {
        fs::write(self.folder.join("begin"), "now\n").expect("the launcher reads");
        number(&self.folder.join("pid"), READY).await
    }

    /// Waits until it has ended of its own accord; its exit code, and what it wrote.
    ///
    /// # Panics
    ///
    /// After `timeout`.
    pub async fn end(&self, timeout: Duration) -> (i32, String) {
        let status = number(&self.folder.join("status"), timeout).await;
        (status, fs::read_to_string(self.folder.join("log")).unwrap_or_default())
    }
}

async fn number(file: &Path, timeout: Duration) -> i32 {
    wait::until(&file.display().to_string(), timeout, || {
        let text = fs::read_to_string(file).ok();
        async move { text?.trim().parse().ok() }
    })
    .await
}

impl Drop for Orphan {
    fn drop(&mut self) {
        // One that waits reads the end, and ends.
        let _ = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(self.folder.join("begin"));
        if self.folder.join("status").exists() {
            return;
        }
        let pid =
            fs::read_to_string(self.folder.join("pid")).ok().and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
