//! Keeps the helper process running, asks it, and takes its answers.
//!
//! One thread that sleeps until somebody meets a container that nobody knows, for [`EVERY`] at most. A helper that ends, does not answer within
//! [`MOST_SILENCE`] or writes what it should not is ended, and started again after a while. The first one is started by whoever has the rights to
//! open a runtime's socket; what is started afterwards has none but those of its user.

use super::{
    Options,
    report::{Answer, Failure, MAX_LINE_BYTES, Source},
    serve,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{self, Read as _, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Pods come and go; one that is not known yet is asked for at once.
const EVERY: Duration = Duration::from_secs(60);
/// How soon its end is noticed between two questions.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// Questions are not asked more often than this.
const LEAST_PAUSE: Duration = Duration::from_secs(2);
/// Longer than the helper itself waits for a source.
const MOST_SILENCE: Duration = Duration::from_secs(12);
const LEAST_WAIT: Duration = Duration::from_secs(1);
const MOST_WAIT: Duration = Duration::from_secs(300);
/// How often the thread looks whether it should end.
const STEP: Duration = Duration::from_millis(500);

/// What the thread and the sampler share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// What the helper said last; replaced as a whole.
    answers: Option<Vec<Answer>>,
    /// Somebody met a container that nobody knows.
    is_asked: bool,
    has_heard: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came since the last call.
    pub(super) fn take(&self) -> Option<Vec<Answer>> {
        self.state().answers.take()
    }

    /// Asks the helper soon.
    pub(super) fn ask(&self) {
        self.state().is_asked = true;
        self.changed.notify_all();
    }

    /// Waits for the first answer, but not longer than this.
    pub(super) fn wait_for_news(&self, longest: Duration) {
        drop(self.changed.wait_timeout_while(self.state(), longest, |state| !state.has_heard));
    }

    /// Ends the thread, also while it waits.
    pub(super) fn end(&self) {
        let state = self.state();
        self.stop.store(true, Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
    }

    fn tell(&self, answers: Vec<Answer>) {
        let mut state = self.state();
        state.answers = Some(answers);
        state.has_heard = true;
        drop(state);
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits so long, or until somebody asks, or until the end; whether somebody asked.
    fn wait(&self, longest: Duration) -> bool {
        let idle = |state: &mut State| !state.is_asked && !self.is_stopped();
        drop(self.changed.wait_timeout_while(self.state(), longest, idle));
        std::mem::take(&mut self.state().is_asked)
    }

    /// Waits so long, or until the end.
    fn pause(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.state(), time, |_| !self.is_stopped()));
    }
}

/// Starts the helper: this very program, whichever file lies at its path by now.
pub(super) fn start(options: &Options) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(serve::COMMAND)
        .args(options.to_arguments())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Runs until `shared` ends, with a helper that was started already or why it could not be.
pub(super) fn keep_running(options: &Options, mut child: io::Result<Child>, shared: &Shared) {
    let mut wait = LEAST_WAIT;
    while !shared.is_stopped() {
        let why = match child {
            Ok(mut helper) => {
                let began = Instant::now();
                let why = converse(&mut helper, shared);
                let _ = helper.kill();
                let _ = helper.wait();
                if began.elapsed() > EVERY {
                    wait = LEAST_WAIT;
                }
                why
            }
            Err(error) => format!("the helper cannot be started: {error}"),
        };
        if shared.is_stopped() {
            return;
        }
        tracing::debug!(why, "nobody asks the container runtime");
        let failed = |source| Answer { source, outcome: Err(Failure::Broken(why.clone())) };
        shared.tell(options.sources().map(failed).collect());
        shared.pause(wait);
        wait = (wait * 2).min(MOST_WAIT);
        child = start(options);
    }
}

/// Asks again and again, and says what went wrong at last.
fn converse(helper: &mut Child, shared: &Shared) -> String {
    let (Some(mut questions), Some(mut answers)) = (helper.stdin.take(), helper.stdout.take()) else {
        return "the helper has no pipes".to_owned();
    };
    let mut waiting = Vec::new();
    while !shared.is_stopped() {
        if let Err(error) = questions.write_all(b"\n") {
            return format!("the helper ended: {error}");
        }
        match line(&mut answers, &mut waiting, shared).map(|line| serde_json::from_slice::<Vec<Answer>>(&line)) {
            Ok(Ok(answers)) => shared.tell(answers),
            Ok(Err(error)) => return format!("the helper speaks another language: {error}"),
            Err(why) => return why,
        }
        shared.pause(LEAST_PAUSE);
        let since = Instant::now();
        while !shared.wait(ALIVE_EVERY) && since.elapsed() < EVERY && !shared.is_stopped() {
            if !matches!(helper.try_wait(), Ok(None)) {
                return "the helper ended".to_owned();
            }
        }
    }
    "the agent ends".to_owned()
}

/// The next line, or why there is none.
fn line(out: &mut ChildStdout, waiting: &mut Vec<u8>, shared: &Shared) -> Result<Vec<u8>, String> {
    let mut buffer = vec![0; 64 * 1024];
    let began = Instant::now();
    loop {
        if let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
            return Ok(waiting.drain(..=end).collect());
        }
        if waiting.len() > MAX_LINE_BYTES {
            return Err("the helper does not end its line".to_owned());
        }
        if began.elapsed() > MOST_SILENCE || shared.is_stopped() {
            return Err(format!("the helper has not answered for {} s", MOST_SILENCE.as_secs()));
        }
        let step = Timespec { tv_sec: 0, tv_nsec: i64::from(STEP.subsec_nanos()) };
        if !matches!(poll(&mut [PollFd::new(&*out, PollFlags::IN)], Some(&step)), Ok(1..)) {
            continue;
        }
        match out.read(&mut buffer) {
            Ok(0) => return Err("the helper ended".to_owned()),
            Ok(received) => waiting.extend_from_slice(buffer.get(..received).unwrap_or_default()),
            Err(error) => return Err(format!("the helper cannot be read: {error}")),
        }
    }
}

/// What is asked, in this order.
impl Options {
    /// Every source that is switched on.
    pub(super) fn sources(&self) -> impl Iterator<Item = Source> {
        let is_on = [
            (Source::Kubelet, self.kubelet_url.is_some()),
            (Source::Cri, self.cri_socket.is_some()),
            (Source::Ecs, self.ecs_url.is_some()),
            (Source::Docker, self.docker_socket.is_some()),
        ];
        is_on.into_iter().filter_map(|(source, is_on)| is_on.then_some(source))
    }
}
