//! Loading in a process of its own, which ends when it is done.
//!
//! To understand the kernel's types takes 65 MB for a tenth of a second (measured on 6.18), and to load programs takes
//! rights that to read them does not. So the agent starts itself once more, with a command that no user sees; that process loads and
//! attaches, hands over every map, link and program as open descriptors, and ends. The long-lived process never grows, and may drop
//! every capability afterwards: see `kernel/bpf.rs`.

use super::{
    Wanted,
    attach::{self, Attached, Loaded},
    error::{ObjectError, in_words},
};
use crate::model::Statuses;
use aya::maps::{Map, MapData};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// The hidden command.
pub const COMMAND: &str = "load-programs";
/// Most descriptors that are handed over; the kernel's own limit is 253.
const MAX_DESCRIPTORS: usize = 128;
/// Loading takes 0.3 s (measured on 6.18), some 10 s on a machine that is busy and emulated, and longer still where others have the CPUs: the agent's
/// service asks for little of them. So it is no matter of time alone: a loading process that used CPU time in the last minute is waited for.
const LIMITS: Limits = Limits { without_progress: Duration::from_secs(60), in_all: Duration::from_secs(600) };
/// Time that a process takes to end when it is killed, unless it hangs in the kernel.
const TIME_TO_DIE: Duration = Duration::from_secs(1);
/// Longest message; a refusal holds the verifier's last words.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Longest reason that is passed on, in bytes.
const MAX_REASON_BYTES: usize = 4 * 1024;

/// How long to wait for a process.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// It is killed if it has used no CPU time for so long.
    without_progress: Duration,
    /// It is killed then, whatever it does.
    in_all: Duration,
}

#[derive(Serialize, Deserialize)]
enum Message {
    /// Then come the descriptors: the maps, the iterator, and program and link of each that is attached.
    Loaded {
        statuses: Statuses,
        layout: String,
        maps: Vec<String>,
        attached: Vec<String>,
    },
    Refused {
        reason: String,
        denied: bool,
    },
}

/// What the loading process hands over.
pub(super) struct Handover {
    pub(super) statuses: Statuses,
    pub(super) maps: HashMap<String, Map>,
    pub(super) iterator: OwnedFd,
    pub(super) attached: Vec<Attached>,
}

fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::PerCpuArray(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::PerCpuHashMap(data)
        | Map::RingBuf(data) => Some(data),
        _ => None,
    }
}

/// The loading process: its standard input is the socket to the agent that started it.
///
/// # Errors
/// If the agent is gone.
pub fn load_and_hand_over(wanted: &Wanted) -> io::Result<()> {
    match attach::load(wanted) {
        Ok(loaded) => hand_over(&loaded),
        Err(error) => {
            let mut reason = in_words(&error);
            reason.truncate(
                (0..=MAX_REASON_BYTES.min(reason.len())).rfind(|end| reason.is_char_boundary(*end)).unwrap_or(0),
            );
            send(&Message::Refused { reason, denied: error.is_denied() }, &[])
        }
    }
}

fn hand_over(loaded: &Loaded) -> io::Result<()> {
    // A name that begins with a dot is a section's: its content is in place already.
    let maps = loaded.ebpf.maps().filter(|(name, _)| !name.starts_with('.'));
    let maps: Vec<(&str, &MapData)> = maps.filter_map(|(name, map)| Some((name, data(map)?))).collect();
    let mut descriptors: Vec<BorrowedFd<'_>> = maps.iter().map(|(_, map)| map.fd().as_fd()).collect();
    descriptors.push(loaded.iterator.as_fd());
    let linked = || loaded.attached.iter().filter_map(|one| Some((one, one.link.as_ref()?)));
    for (one, link) in linked() {
        descriptors.extend([one.program.as_fd(), link.as_fd()]);
    }
    let message = Message::Loaded {
        statuses: loaded.statuses.clone(),
        layout: loaded.layout.clone(),
        maps: maps.iter().map(|(name, _)| (*name).to_owned()).collect(),
        attached: linked().map(|(one, _)| one.name().to_owned()).collect(),
    };
    send(&message, &descriptors)
}

fn send(message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("more descriptors than a message holds"));
    }
    sendmsg(io::stdin(), &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Starts the loading process and takes over what it loaded.
///
/// # Errors
/// What the kernel refused, or why there was no answer.
pub(super) fn load(wanted: &Wanted) -> Result<Handover, ObjectError> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND);
    if wanted.syscall_classes {
        command.arg("--syscall-classes");
    }
    let (ended, (message, descriptors)) = ask(command, LIMITS).map_err(ObjectError::Loader)?;
    match message {
        None => Err(ObjectError::Loader(io::Error::other(format!("it ended with {ended}")))),
        Some(Message::Refused { reason, denied }) => Err(ObjectError::Refused { reason, denied }),
        Some(Message::Loaded { statuses, layout, maps, attached }) => {
            tracing::debug!(offsets = layout, "layout of this kernel");
            unpack(statuses, maps, attached, descriptors)
        }
    }
}

/// Runs `command` to its end, with a socket as its standard input, and reads its one message.
fn ask(mut command: Command, limits: Limits) -> io::Result<(ExitStatus, Received)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let mut child = command.stdin(theirs).stdout(Stdio::null()).spawn()?;
    // The other end of the socket now lies with the child alone: if that ends without a word, so does the sample.
    drop(command);
    let began = Instant::now();
    let mut used_before = Some(0);
    while !has_news(&ours, limits.without_progress)? {
        let (used, waited) = (cpu_ticks(child.id()), began.elapsed());
        if used.is_some() && used != used_before && waited < limits.in_all {
            tracing::info!(seconds = waited.as_secs(), "the programs are not loaded yet: waiting, for it goes on");
            used_before = used;
            continue;
        }
        child.kill()?;
        // The end of the socket is the end of the process. One that hangs in the kernel is left behind.
        if has_news(&ours, TIME_TO_DIE)? {
            child.wait()?;
        }
        let said_nothing = format!("it was killed, because it had not ended after {} s", waited.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, said_nothing));
    }
    let received = receive(&ours);
    Ok((child.wait()?, received?))
}

/// CPU time that a process has used, in ticks of the kernel; `None` if that cannot be read.
fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything; utime and stime are fields 14 and 15, the one after the name is 3: proc_pid_stat(5).
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

/// Waits for a message, or for the other side's end.
fn has_news(socket: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    let ready = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)))?;
    Ok(ready > 0)
}

fn unpack(
    statuses: Statuses,
    names: Vec<String>,
    attached: Vec<String>,
    descriptors: Vec<OwnedFd>,
) -> Result<Handover, ObjectError> {
    if descriptors.len() != names.len() + 1 + 2 * attached.len() {
        return Err(ObjectError::Loader(io::Error::other(format!("{} descriptors arrived", descriptors.len()))));
    }
    let mut descriptors = descriptors.into_iter();
    let mut maps = HashMap::with_capacity(names.len());
    for (name, descriptor) in names.into_iter().zip(&mut descriptors) {
        maps.insert(name, Map::from_map_data(MapData::from_fd(descriptor)?)?);
    }
    let iterator = descriptors.next().ok_or(ObjectError::Incomplete("iterator"))?;
    let mut programs = Vec::with_capacity(attached.len());
    for name in attached {
        let missing = || ObjectError::Incomplete("program that was attached");
        let (program, link) = descriptors.next().zip(descriptors.next()).ok_or_else(missing)?;
        programs.push(Attached::new(name, program, link));
    }
    Ok(Handover { statuses, maps, iterator, attached: programs })
}

/// The message, if there is one, and what came with it.
type Received = (Option<Message>, Vec<OwnedFd>);

fn receive(socket: &OwnedFd) -> io::Result<Received> {
    let mut text = vec![0; MAX_MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let text = text.get(..received.bytes).unwrap_or_default();
    let message = if text.is_empty() { None } else { Some(serde_json::from_slice(text)?) };
    Ok((message, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Limits = Limits { without_progress: Duration::from_millis(200), in_all: Duration::from_millis(1500) };

    fn refusal(command: &str) -> (io::Error, Duration) {
        let began = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        let error = ask(shell, SHORT).map(|_| ()).expect_err("it says nothing");
        (error, began.elapsed())
    }

    #[test]
    fn a_loading_process_that_hangs_is_killed_and_one_that_ends_without_a_word_is_not_waited_for() {
        let (error, took) = refusal("exec sleep 600");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(took < SHORT.in_all, "{took:?}: it uses no CPU time");
        let (ended, (message, descriptors)) = ask(Command::new("false"), LIMITS).expect("it ends");
        assert!(message.is_none() && descriptors.is_empty() && ended.code() == Some(1), "{ended}");
    }

    #[test]
    fn a_loading_process_that_goes_on_is_waited_for_but_not_for_ever() {
        let (error, took) = refusal("while :; do :; done");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(took >= SHORT.in_all, "{took:?}: it was using CPU time");
        assert!(cpu_ticks(std::process::id()).is_some() && cpu_ticks(u32::MAX).is_none());
    }
}
