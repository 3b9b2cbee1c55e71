//! The kernel's record of each task that ends (taskstats), received by a thread that sleeps while nothing exits.
//!
//! The records wait in the socket's buffer and are taken from it every 100 ms while there are any: it holds 13,000 of them (measured: 1,629
//! in an eighth of it), so losses begin at about 130,000 exits a second. A loss is counted. Registering needs `CAP_NET_ADMIN` and the
//! first pid and user namespace; receiving needs nothing. <https://docs.kernel.org/accounting/taskstats.html>

use super::{
    exited::Exited,
    proc::place_of,
    record::{Record, scheduled_ns_of_process},
};
use crate::{
    coverage::Status,
    netlink::{Socket, attributes, messages},
};
use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

/// Longest that the record of one exit may take.
const TIMEOUT: Duration = Duration::from_secs(1);
const COMMAND_GET: u8 = 1;
const REGISTER_CPUS: u16 = 3;
const OF_A_TASK: u16 = 4;
const OF_A_PROCESS: u16 = 5;
const STATISTICS: u16 = 3;
const BUFFER_BYTES: i32 = 8 * 1024 * 1024;
const DRAIN_EVERY: Duration = Duration::from_millis(100);

/// Why there are no records.
#[derive(Debug, thiserror::Error)]
pub enum TaskstatsError {
    /// The kernel has no such family.
    #[error("the kernel needs CONFIG_TASKSTATS: {0}")]
    Unsupported(#[source] io::Error),
    /// The kernel refuses to register this process.
    #[error(
        "the kernel refuses to send records of exited tasks: {0}; that needs CAP_NET_ADMIN in the first user and pid namespace"
    )]
    Denied(#[source] io::Error),
    /// A record of an older kernel.
    #[error("taskstats before Linux 5.19 does not say which process a thread belonged to")]
    TooOld,
    /// Something else.
    #[error("taskstats cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl TaskstatsError {
    /// What it says about a capability.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Unsupported(_) | Self::TooOld => Status::Unsupported,
            Self::Denied(_) => Status::Denied,
            Self::Io(_) => Status::Broken,
        }
    }
}

/// The receiver; dropping it ends it.
#[derive(Debug)]
pub(super) struct Taskstats {
    socket: Arc<Socket>,
    exited: Arc<Mutex<Exited>>,
    /// Dropping it wakes the thread up for the last time.
    end: Option<io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Taskstats {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Taskstats {
    /// Registers for the exits on all CPUs; they count from here on.
    pub(super) fn start() -> Result<Self, TaskstatsError> {
        let socket = Socket::open(BUFFER_BYTES)?;
        let family = socket.family(b"TASKSTATS\0").map_err(TaskstatsError::Unsupported)?;
        let mut cpus = fs::read("/sys/devices/system/cpu/possible")?;
        cpus.retain(|byte| !byte.is_ascii_whitespace());
        cpus.push(0);
        socket.command(family, COMMAND_GET, REGISTER_CPUS, &cpus).map_err(|error| match error.raw_os_error() {
            // Outside the first namespaces the kernel answers with EINVAL.
            Some(libc::EPERM | libc::EINVAL) => TaskstatsError::Denied(error),
            _ => TaskstatsError::Io(error),
        })?;
        ask_for_one_exit(&socket)?;
        let (woken, end) = io::pipe()?;
        let (socket, exited) = (Arc::new(socket), Arc::new(Mutex::new(Exited::default())));
        let thread = std::thread::Builder::new().name("taskstats".to_owned()).spawn({
            let (socket, exited) = (Arc::clone(&socket), Arc::clone(&exited));
            move || {
                crate::privileges::drop_in_this_thread();
                let mut buffer = vec![0; 64 * 1024];
                while !readable(socket.as_fd(), woken.as_fd(), None) {
                    drain(&socket, &mut locked(&exited), &mut buffer);
                    if readable(woken.as_fd(), woken.as_fd(), Some(DRAIN_EVERY)) {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { socket, exited, end: Some(end), thread: Some(thread) })
    }

    /// The counters of exited tasks, with every record that the kernel has sent so far. No record is added while they are held.
    pub(super) fn up_to_now(&self) -> MutexGuard<'_, Exited> {
        let mut exited = locked(&self.exited);
        drain(&self.socket, &mut exited, &mut vec![0; 64 * 1024]);
        exited
    }
}

fn locked(exited: &Mutex<Exited>) -> MutexGuard<'_, Exited> {
    exited.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record tells its version by itself: one thread exits for it.
fn ask_for_one_exit(socket: &Socket) -> Result<(), TaskstatsError> {
    std::thread::spawn(|| ()).join().map_err(|_| TaskstatsError::TooOld)?;
    let mut buffer = vec![0; 64 * 1024];
    // `join` may return a moment before the record is sent. Others exit meanwhile, too: any record tells the version.
    while readable(socket.as_fd(), socket.as_fd(), Some(TIMEOUT)) {
        let count = socket.receive(&mut buffer)?;
        let datagram = buffer.get(..count).unwrap_or_default();
        let mut records = messages(datagram).flat_map(|message| message.attributes().collect::<Vec<_>>());
        if let Some((_, record)) = records.find(|(kind, _)| *kind == OF_A_TASK) {
            let is_understood = statistics(record).and_then(Record::parse).is_some();
            return if is_understood { Ok(()) } else { Err(TaskstatsError::TooOld) };
        }
    }
    Err(TaskstatsError::Io(io::ErrorKind::TimedOut.into()))
}

/// Waits until one of the two can be read or is at its end; says whether the second is.
fn readable(first: BorrowedFd<'_>, second: BorrowedFd<'_>, timeout: Option<Duration>) -> bool {
    let waits_for = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut both = [waits_for(first), waits_for(second)];
    let timeout = timeout.map_or(-1, |timeout| libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX));
    // SAFETY: the array has the length that is given and lives through the call.
    unsafe { libc::poll(both.as_mut_ptr(), 2, timeout) };
    both[1].revents != 0
}

fn statistics(nested: &[u8]) -> Option<&[u8]> {
    attributes(nested).find(|(kind, _)| *kind == STATISTICS).map(|(_, bytes)| bytes)
}

fn drain(socket: &Socket, exited: &mut Exited, buffer: &mut [u8]) {
    loop {
        match socket.receive(buffer) {
            Ok(0) => return,
            Ok(count) => add_all(buffer.get(..count).unwrap_or_default(), exited),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => exited.lost += 1,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::warn!(%error, "records of exited tasks cannot be received");
                exited.lost += 1;
                return;
            }
        }
    }
}

fn add_all(datagram: &[u8], exited: &mut Exited) {
    for message in messages(datagram) {
        let (mut task, mut whole_ns) = (None, None);
        for (kind, nested) in message.attributes() {
            match kind {
                OF_A_TASK => task = Some(statistics(nested).and_then(Record::parse)),
                OF_A_PROCESS => whole_ns = statistics(nested).and_then(scheduled_ns_of_process),
                _ => {}
            }
        }
        match task {
            Some(Some(record)) => {
                exited.add(&record, whole_ns, place_of);
            }
            Some(None) => exited.lost += 1,
            None => {}
        }
    }
}
