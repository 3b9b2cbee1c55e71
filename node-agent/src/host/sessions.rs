//! Who sits at a terminal: sessions that have one, and when a terminal last took input. Nothing that is typed or shown is read.
//!
//! A session is counted if and only if its first process lives, has a controlling terminal, and is no login prompt (a
//! `getty` that process 1 started for root waits for people; it is none). The age of the last input is the access time of
//! the terminal's device node, which the kernel sets when a program reads input from it, in steps of 8 s, so that nobody can
//! tell keystrokes apart (`tty_update_time` in <https://github.com/torvalds/linux/blob/v6.12/drivers/tty/tty_io.c>). `w`
//! reads its column IDLE there. A new terminal begins with the time at which it was made: who opens one counts as present.
//!
//! What follows from that:
//! - A detached `tmux` or `screen` keeps its terminals and their sessions. They are counted, and their last input stays that of
//!   the person who left: it ages, and holds no machine for ever.
//! - A person without a terminal (`ssh host command`, `scp`, a session manager's plain shell, a notebook in a browser) is not seen here;
//!   what they start is workload.
//! - A program that types into a terminal (`expect`, a test) cannot be told from a person.
//! - Each container may have terminals of its own with the same numbers, so a session's terminal is looked up as its first
//!   process sees it (`/proc/PID/root/dev`), which needs `CAP_SYS_PTRACE` for processes of others. Without that right, the agent's own
//!   `/dev` is asked for processes outside containers; what stays unreadable is named by the capability.
//! - In a container without the host's process ids, the agent sees its own container's sessions and nobody else's.
//!
//! Cost: one file for each process, at most [`MAX_CHECKED`] of them in one sample (9 µs each: 18 ms). Beyond, processes take turns,
//! so that on a host with 50,000 processes a new session is found within 25 samples; known ones are looked at each time.

use crate::{
    coverage::{Capabilities, Status},
    procfs::{process, stat::Stat},
};
use heartbeat::wire;
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// Most processes that one sample looks at, known sessions not counted in.
pub const MAX_CHECKED: usize = 2_000;
/// Sessions that are remembered, at most: who opens more terminals than that is no person.
const MAX_SESSIONS: usize = 4_096;
/// What waits for somebody to log in.
const LOGIN_PROMPTS: [&str; 6] = ["agetty", "getty", "mingetty", "mgetty", "fgetty", "login"];
/// `UNIX98_PTY_SLAVE_MAJOR`: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/major.h>
const PTY_MAJOR: u32 = 136;

/// Finds interactive sessions; remembers where it looked.
#[derive(Debug)]
pub struct SessionSampler {
    root: PathBuf,
    max_checked: usize,
    /// Session leaders with a terminal at the last sample.
    leaders: BTreeSet<u32>,
    /// Where the next sample begins; `None` until every process has been looked at once.
    next: Option<u32>,
}

impl Default for SessionSampler {
    fn default() -> Self {
        Self { root: PathBuf::from("/"), max_checked: MAX_CHECKED, leaders: BTreeSet::new(), next: None }
    }
}

impl SessionSampler {
    /// Looks once; absent if processes cannot be listed.
    pub fn read(&mut self, now_unix_ms: i64, capabilities: &mut Capabilities) -> Option<wire::InteractiveSessions> {
        let pids = match process::list(&self.root.join("proc")) {
            Ok(pids) => pids,
            Err(error) => {
                capabilities.set(
                    "interactive_sessions",
                    Status::of_io(&error),
                    format!("/proc cannot be listed: {error}"),
                );
                return None;
            }
        };
        let (sessions, hidden) = self.sessions(pids);
        let mut last_input_unix_ms = None;
        let mut unreadable = None;
        for (pid, terminal) in &sessions {
            match last_input(&self.root, *pid, *terminal) {
                // A clock that was set back must not make input lie in the future.
                Ok(at_unix_ms) => last_input_unix_ms = last_input_unix_ms.max(Some(at_unix_ms.min(now_unix_ms))),
                Err(error) => unreadable = Some(error),
            }
        }
        match (unreadable, hidden) {
            (None, false) => capabilities.ok("interactive_sessions"),
            (None, true) => capabilities.set(
                "interactive_sessions",
                Status::Denied,
                "/proc hides the processes of other users (hidepid)",
            ),
            (Some(error), _) => capabilities.set(
                "interactive_sessions",
                Status::Denied,
                format!(
                    "a session's terminal cannot be read: {error}; without CAP_SYS_PTRACE those of containers cannot"
                ),
            ),
        }
        let terminal_sessions = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
        Some(wire::InteractiveSessions { terminal_sessions, last_input_unix_ms })
    }

    /// First process and terminal of each session that has one, and whether any process is hidden.
    fn sessions(&mut self, mut pids: Vec<u32>) -> (Vec<(u32, u32)>, bool) {
        pids.sort_unstable();
        let proc = self.root.join("proc");
        // The first sample looks at everybody: its answer holds from the beginning.
        let checked = if self.next.is_some() { self.max_checked } else { usize::MAX };
        let turn = pids.partition_point(|pid| *pid < self.next.unwrap_or(0));
        let (later, sooner) = pids.split_at(turn);
        let in_turn: Vec<u32> = sooner.iter().chain(later).copied().take(checked).collect();
        self.next = Some(in_turn.last().map_or(0, |last| last.saturating_add(1)));
        let mut sessions = Vec::new();
        // Whoever cannot even see process 1 is kept from seeing others, too (hidepid=2).
        let mut hidden = pids.first() != Some(&1);
        let candidates: BTreeSet<u32> = in_turn.into_iter().chain(self.leaders.iter().copied()).collect();
        for pid in candidates {
            match Stat::read(&proc, pid) {
                Ok(stat) if stat.session() == Some(pid) && sessions.len() < MAX_SESSIONS => {
                    let uid = fs::metadata(proc.join(pid.to_string())).map_or(u32::MAX, |meta| meta.uid());
                    if let Some(terminal) = stat.terminal().filter(|terminal| *terminal != 0)
                        && !is_login_prompt(&stat, uid)
                    {
                        sessions.push((pid, terminal));
                    }
                }
                // Who ends while we look is no error.
                Ok(_) => {}
                Err(error) => hidden |= error.kind() == io::ErrorKind::PermissionDenied,
            }
        }
        self.leaders = sessions.iter().map(|(pid, _)| *pid).collect();
        (sessions, hidden)
    }
}

/// Anybody can call a program `getty`; only root's, started by process 1, is one.
fn is_login_prompt(stat: &Stat, uid: u32) -> bool {
    LOGIN_PROMPTS.contains(&stat.visible_name().as_str()) && stat.parent() == Some(1) && uid == 0
}

/// `new_decode_dev`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/kdev_t.h>
fn major_minor(device: u32) -> (u32, u32) {
    ((device & 0xfff00) >> 8, (device & 0xff) | ((device >> 12) & 0xfff00))
}

/// The terminal's name below `/dev`.
fn name_of(root: &Path, terminal: u32) -> Option<PathBuf> {
    let (major, minor) = major_minor(terminal);
    if major == PTY_MAJOR {
        return Some(PathBuf::from("pts").join(minor.to_string()));
    }
    let uevent = fs::read_to_string(root.join("sys/dev/char").join(format!("{major}:{minor}")).join("uevent")).ok()?;
    let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    // A name from sysfs is the kernel's own; it still never leads out of /dev.
    (!name.starts_with('/') && !name.split('/').any(|part| part == "..")).then(|| PathBuf::from(name))
}

/// When the terminal of this process last took input, in milliseconds since 1970-01-01 UTC.
fn last_input(root: &Path, pid: u32, terminal: u32) -> io::Result<i64> {
    let name = name_of(root, terminal).ok_or_else(|| {
        let (major, minor) = major_minor(terminal);
        io::Error::new(io::ErrorKind::NotFound, format!("device {major}:{minor} has no name"))
    })?;
    let as_seen_by_it = root.join("proc").join(pid.to_string()).join("root/dev").join(&name);
    access_time(&as_seen_by_it, terminal).or_else(|error| {
        if error.kind() == io::ErrorKind::PermissionDenied && !is_in_a_pid_namespace(root, pid) {
            access_time(&root.join("dev").join(&name), terminal)
        } else {
            Err(error)
        }
    })
}

/// A process of a container has more than one process id: <https://man7.org/linux/man-pages/man5/proc_pid_status.5.html>
fn is_in_a_pid_namespace(root: &Path, pid: u32) -> bool {
    let status = fs::read_to_string(root.join("proc").join(pid.to_string()).join("status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.is_none_or(|ids| ids.split_ascii_whitespace().count() > 1)
}

/// The device must be the one that the kernel named: what else lies there is somebody's file.
fn access_time(path: &Path, terminal: u32) -> io::Result<i64> {
    let meta = fs::symlink_metadata(path)?;
    let device = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if !meta.file_type().is_char_device() || device != major_minor(terminal) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "another file lies where the terminal should be"));
    }
    Ok(meta.atime().saturating_mul(1000).saturating_add(meta.atime_nsec() / 1_000_000))
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
