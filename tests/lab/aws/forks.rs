//! Servers of this process: forks of one that has read all there is to read.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{binaries, process};

/// Reading moto takes most of it, the first time: 4 s of CPU time, which was more than a minute beside a load of 27 on two CPUs.
const ANSWER_WITHIN: Timespec = Timespec { tv_sec: 300, tv_nsec: 0 };

static FORKS: Mutex<Option<Forks>> = Mutex::new(None);

/// The process that forks: it ends, and all servers with it, when its input does, so with this process.
struct Forks {
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: File,
    /// How many orders were given.
    given: u64,
    // Never waited for: it ends after this process.
    _process: Child,
}

impl Forks {
    fn start() -> Self {
        // Of what goes wrong before there is a server it is the only account. It has no name, and goes with this process.
        let log = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new(binaries::python("python"));
        command.arg(binaries::checkout().join("tests/lab/aws/server.py")).arg("--forks");
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(log.try_clone().expect("a second handle of the log"));
        let mut child = command.spawn().expect("Python starts");
        let orders = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Self { orders, answers, log, given: 0, _process: child }
    }

    /// The answer to one order; none if the process has ended, or does not answer in time.
    fn obey(&mut self, order: &str) -> Option<String> {
        self.given += 1;
        let number = format!("{} ", self.given);
        self.orders.write_all(format!("{number}{order}").as_bytes()).ok()?;
        loop {
            // An answer is one line, and the next one comes after the next order: there is none in the buffer, unless one was late.
            let mut waiting = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            if self.answers.buffer().is_empty() && poll(&mut waiting, Some(&ANSWER_WITHIN)).ok()? == 0 {
                return None;
            }
            let mut answer = String::new();
            self.answers.read_line(&mut answer).ok().filter(|length| *length > 0)?;
            // That to an order which nobody waits for any more is left out.
            if let Some(answer) = answer.strip_prefix(&number) {
                return answer.ends_with('\n').then(|| answer.trim_end().to_owned());
            }
        }
    }
}

/// One server; it ends with this value.
#[derive(Debug)]
pub(super) struct Fork {
    pid: u32,
    log: PathBuf,
}

impl Fork {
    /// Starts one whose log is `log`: it, and its port. Blocks for two seconds the first time.
    ///
    /// # Panics
    ///
    /// When it does not start; `make setup` installs what it needs.
    pub(super) fn start(log: &Path) -> (Self, u16) {
        let mut forks = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
        let forks = forks.get_or_insert_with(Forks::start);
        let answer = forks.obey(&format!("start {}\n", log.display()));
        let told = answer.as_deref().and_then(|answer| answer.split_once(' '));
        let known = told.and_then(|(pid, port)| Some((pid.parse().ok()?, port.parse().ok()?)));
        let Some((pid, port)) = known else {
            let mut said = [0; 4_096];
            let length = forks.log.read_at(&mut said, 0).unwrap_or_default();
            panic!("no server of AWS: {answer:?}\n{}", String::from_utf8_lossy(&said[..length]));
        };
        (Self { pid, log: log.to_owned() }, port)
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        if thread::panicking() {
            process::tell_last_lines("moto", &self.log);
        }
        let mut forks = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
        // A drop must not panic: where the process does not answer it has ended, and its servers with it.
        let _ = forks.as_mut().and_then(|forks| forks.obey(&format!("end {}\n", self.pid)));
    }
}
