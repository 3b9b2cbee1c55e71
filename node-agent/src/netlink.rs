//! The little of netlink that the agent needs: the messages in what the kernel sends, the attributes in a message, one question with all its
//! answers (sockets, addresses), and a socket of generic netlink for taskstats (one question about a family, one registration, many records).
//!
//! Written here, because a crate for it would bring an asynchronous runtime of its own for three messages. The parsers take bytes
//! from the kernel and trust no length in them. Format: <https://docs.kernel.org/userspace-api/netlink/intro.html>

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv, sendto,
    socket_with, sockopt,
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    time::Duration,
};

/// `GENL_ID_CTRL`: the family that knows the families.
const CONTROL_FAMILY: u16 = 16;
const GET_FAMILY: u8 = 3;
const ATTRIBUTE_FAMILY_ID: u16 = 1;
const ATTRIBUTE_FAMILY_NAME: u16 = 2;
const HEADER: usize = 16;
/// Behind the header of netlink comes that of generic netlink.
const GENERIC_HEADER: usize = 4;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
/// The kernel fills at most 32 KiB at once unless it is asked for more: larger than any answer of a dump.
const DUMP_BYTES: usize = 64 * 1024;
/// The kernel answers a dump within microseconds or not at all.
const DUMP_TIMEOUT: Duration = Duration::from_secs(2);

/// A field of `N` bytes at `offset`.
pub(crate) fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    field(bytes, offset).map(u16::from_ne_bytes)
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    kind: u16,
    payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes of a generic message.
    pub(crate) fn attributes(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        attributes(self.payload.get(GENERIC_HEADER..).unwrap_or_default())
    }

    /// What the kernel answers to a request: nothing wrong, or an error.
    pub(crate) fn acknowledgement(self) -> Option<io::Result<()>> {
        (self.kind == NLMSG_ERROR).then(|| match field(self.payload, 0).map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(negative) => Err(io::Error::from_raw_os_error(negative.saturating_neg())),
            None => Err(io::ErrorKind::InvalidData.into()),
        })
    }

    /// How a dump ended, by its last message: `NLMSG_DONE` bears what went wrong (`netlink_dump_done` in the kernel), and nothing where nothing did.
    fn outcome(self) -> io::Result<()> {
        match field(self.payload, 0).map(i32::from_ne_bytes) {
            Some(negative) if negative < 0 => Err(io::Error::from_raw_os_error(negative.saturating_neg())),
            _ => Ok(()),
        }
    }
}

/// Cuts the first thing off that begins with its length, padded to four bytes; a length that cannot be ends it all.
fn cut<'a>(rest: &mut &'a [u8], length: usize, least: usize) -> Option<&'a [u8]> {
    let found = if length < least { None } else { rest.get(..length) };
    *rest = found.and_then(|_| rest.get(length.next_multiple_of(4)..)).unwrap_or_default();
    found
}

/// The messages of one datagram.
pub(crate) fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(field(rest, 0)?)).ok()?;
        let message = cut(&mut rest, length, HEADER)?;
        Some(Message { kind: u16_at(message, 4)?, payload: message.get(HEADER..)? })
    })
}

/// Attributes by type, one after another.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// The two high bits are flags.
    const TYPE: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let attribute = cut(&mut rest, length, 4)?;
        Some((u16_at(attribute, 2)? & TYPE, attribute.get(4..)?))
    })
}

/// The header of netlink, before `payload_bytes` more; sequence and port are 0: one question at a time, one socket.
fn header(kind: u16, flags: u16, payload_bytes: usize) -> Vec<u8> {
    let length = HEADER + payload_bytes;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Asks once, over `NETLINK_ROUTE` (which is number 0) unless another protocol is named; `each` gets the body of every answer and says whether it
/// wants more. Answers are read through one buffer of 64 KiB and handed on one by one; nothing is kept.
///
/// # Errors
/// What the kernel says: `NotFound` where it lacks what was asked for (`tcp_diag` is a module in many kernels).
pub(crate) fn dump(
    protocol: Option<Protocol>,
    question: u16,
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(DUMP_TIMEOUT))?;
    let mut message = header(question, NLM_F_REQUEST | NLM_F_DUMP, body.len());
    message.extend(body);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = vec![0_u8; DUMP_BYTES];
    loop {
        let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let Some(answers) = buffer.get(..received).filter(|answers| !answers.is_empty()) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        };
        for answer in messages(answers) {
            if let Some(refusal) = answer.acknowledgement() {
                return refusal;
            }
            if answer.kind == NLMSG_DONE {
                return answer.outcome();
            }
            if !each(answer.payload) {
                return Ok(());
            }
        }
    }
}

fn request(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let value_length = 4 + value.len();
    let payload_bytes = GENERIC_HEADER + value_length.next_multiple_of(4);
    let mut bytes = header(family, NLM_F_REQUEST | NLM_F_ACK, payload_bytes);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(u16::try_from(value_length).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(HEADER + payload_bytes, 0);
    bytes
}

/// A socket of generic netlink.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Socket {
    /// Opens one that receives nothing yet and never blocks, with room for `buffer_bytes` if the agent may ask for that.
    pub(crate) fn open(buffer_bytes: i32) -> io::Result<Self> {
        // SAFETY: takes three integers; the descriptor that it returns belongs to nobody else.
        let socket = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC))?)
        };
        let size = libc::socklen_t::try_from(size_of_val(&buffer_bytes)).map_err(io::Error::other)?;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // SAFETY: the pointer and the length are those of one integer, which is only read.
            let result = unsafe {
                let value = (&raw const buffer_bytes).cast();
                libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, size)
            };
            if result == 0 {
                break;
            }
        }
        Ok(Self(socket))
    }

    /// Receives one datagram; 0 bytes if none waits.
    ///
    /// # Errors
    /// `ENOBUFS` if datagrams were lost since the last call.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the length of the buffer.
        let count = unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }

    /// The number of a family.
    pub(crate) fn family(&self, name: &[u8]) -> io::Result<u16> {
        let mut id = None;
        self.ask(&request(CONTROL_FAMILY, GET_FAMILY, ATTRIBUTE_FAMILY_NAME, name), |message| {
            let found = message.attributes().find(|(kind, _)| *kind == ATTRIBUTE_FAMILY_ID);
            id = id.or_else(|| u16_at(found?.1, 0));
        })?;
        id.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Sends a command with one attribute and waits for the kernel's yes.
    pub(crate) fn command(&self, family: u16, command: u8, attribute: u16, value: &[u8]) -> io::Result<()> {
        self.ask(&request(family, command, attribute, value), |_| ())
    }

    /// The kernel answers within the call that sends: whatever it has to say waits when that returns.
    fn ask(&self, request: &[u8], mut each: impl FnMut(Message<'_>)) -> io::Result<()> {
        // SAFETY: the kernel reads the length of the request.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = self.receive(&mut buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            for message in messages(buffer.get(..count).unwrap_or_default()) {
                match message.acknowledgement() {
                    Some(answer) => return answer,
                    None => each(message),
                }
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        let bytes = request(31, 1, 3, b"0-1\0");
        let message = messages(&bytes).next().unwrap();
        assert_eq!(message.kind, 31);
        assert_eq!(message.attributes().collect::<Vec<_>>(), [(3, &b"0-1\0"[..])]);
        assert_eq!(messages(&bytes).count(), 1);
    }

    #[test]
    fn messages_and_attributes_are_taken_apart_and_broken_ones_end_the_list() {
        let mut buffer = Vec::new();
        for (kind, body) in [(20_u16, &b"abcde"[..]), (3, b"")] {
            buffer.extend(u32::try_from(16 + body.len()).unwrap_or(0).to_ne_bytes());
            buffer.extend(kind.to_ne_bytes());
            buffer.extend([0; 10]);
            buffer.extend(body);
            buffer.resize(buffer.len().next_multiple_of(4), 0);
        }
        let answers: Vec<_> = messages(&buffer).map(|message| (message.kind, message.payload)).collect();
        assert_eq!(answers, [(20, &b"abcde"[..]), (3, b"")]);
        // A length of zero, one below the header, and one beyond the buffer.
        for length in [0_u32, 8, 1_000] {
            buffer[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&buffer).count(), 0, "{length}");
        }
        let bytes = [5_u8, 0, 1, 0, 9, 0, 0, 0, 4, 0, 2, 0, 3, 0, 7, 0];
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(1, &[9_u8][..]), (2, &[])]);
    }

    #[test]
    fn the_kernel_knows_taskstats_and_not_what_nobody_wrote() {
        let socket = Socket::open(4096).unwrap();
        assert!(socket.family(b"TASKSTATS\0").unwrap() > CONTROL_FAMILY);
        assert_eq!(socket.family(b"NO_SUCH\0").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_question_that_the_kernel_does_not_know_is_an_error() {
        let asked = dump(Some(rustix::net::netlink::SOCK_DIAG), 20, &[255; 56], |_| true);
        assert!(asked.is_err());
    }

    /// The kernel says so at the end of an answer without anything in it, as it does where `tcp_diag` cannot be loaded.
    #[test]
    fn a_protocol_that_nobody_diagnoses_is_an_error_and_not_an_empty_list() {
        let mut question = [0; 56];
        (question[0], question[1]) = (2, 99);
        let asked = dump(Some(rustix::net::netlink::SOCK_DIAG), 20, &question, |_| true);
        assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_end_of_a_dump_bears_its_outcome() {
        let end =
            |payload: &[u8]| Message { kind: NLMSG_DONE, payload }.outcome().map_err(|error| error.raw_os_error());
        assert_eq!(end(&[]), Ok(()));
        assert_eq!(end(&[0; 4]), Ok(()));
        assert_eq!(end(&[0, 0]), Ok(()));
        assert_eq!(end(&(-libc::ENOBUFS).to_ne_bytes()), Err(Some(libc::ENOBUFS)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_run_on(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let seen = messages(&bytes).map(|message| message.attributes().count()).sum::<usize>();
            prop_assert!(seen <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
