//! One question to the kernel over netlink, and all its answers: <https://docs.kernel.org/userspace-api/netlink/intro.html>
//!
//! Answers are read through one buffer of 64 KiB and handed on one by one; nothing is kept.

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv, sendto,
    socket_with, sockopt,
};
use std::{io, time::Duration};

const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST_AND_DUMP: u16 = 0x1 | 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The kernel fills at most 32 KiB at once unless it is asked for more: larger than any answer.
const BUFFER_BYTES: usize = 64 * 1024;
/// The kernel answers within microseconds or not at all.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Asks once, over `NETLINK_ROUTE` (which is number 0) unless another protocol is named; `each` gets the body of every answer and says whether it wants more.
///
/// # Errors
/// What the kernel says: `NotFound` where it lacks what was asked for (`tcp_diag` is a module in many kernels).
pub(super) fn dump(
    protocol: Option<Protocol>,
    question: u16,
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(TIMEOUT))?;
    let length = u32::try_from(HEADER_BYTES + body.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(question.to_ne_bytes());
    message.extend(NLM_F_REQUEST_AND_DUMP.to_ne_bytes());
    message.extend([0; 8]); // sequence and port: one question, one socket
    message.extend(body);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    loop {
        let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let Some(answers) = buffer.get(..received).filter(|answers| !answers.is_empty()) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        };
        for answer in Answers(answers) {
            match answer {
                (NLMSG_DONE, _) => return Ok(()),
                (NLMSG_ERROR, body) => {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                (_, body) if !each(body) => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Type and body of each message in a buffer; what is cut off is left out.
struct Answers<'a>(&'a [u8]);

impl<'a> Iterator for Answers<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::try_from(u32::from_ne_bytes(*self.0.first_chunk()?)).ok()?;
        let kind = u16::from_ne_bytes(*self.0.get(4..)?.first_chunk()?);
        let body = self.0.get(HEADER_BYTES..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some((kind, body))
    }
}

/// Type and value of each attribute behind the fixed part of an answer.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

const fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_attributes_are_taken_apart_and_broken_ones_end_the_list() {
        let mut buffer = Vec::new();
        for (kind, body) in [(20_u16, &b"abcde"[..]), (3, b"")] {
            buffer.extend(u32::try_from(16 + body.len()).unwrap_or(0).to_ne_bytes());
            buffer.extend(kind.to_ne_bytes());
            buffer.extend([0; 10]);
            buffer.extend(body);
            buffer.resize(aligned(buffer.len()), 0);
        }
        let answers: Vec<_> = Answers(&buffer).collect();
        assert_eq!(answers, [(20, &b"abcde"[..]), (3, b"")]);
        // A length of zero, one below the header, and one beyond the buffer.
        for length in [0_u32, 8, 1_000] {
            buffer[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(Answers(&buffer).count(), 0, "{length}");
        }
        let bytes = [5_u8, 0, 1, 0, 9, 0, 0, 0, 4, 0, 2, 0, 3, 0, 7, 0];
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(1, &[9_u8][..]), (2, &[])]);
    }

    #[test]
    fn a_question_that_the_kernel_does_not_know_is_an_error() {
        let asked = dump(Some(rustix::net::netlink::SOCK_DIAG), 20, &[255; 56], |_| true);
        assert!(asked.is_err());
    }
}
