//! One question to the kernel over netlink, and all its answers: <https://docs.kernel.org/userspace-api/netlink/intro.html>
//!
//! Answers are read through one buffer of 64 KiB and handed on one by one; nothing is kept.

use crate::netlink::messages;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv, sendto,
    socket_with, sockopt,
};
use std::{io, time::Duration};

const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST_AND_DUMP: u16 = 0x1 | 0x300;
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
        for answer in messages(answers) {
            if let Some(refusal) = answer.acknowledgement() {
                return refusal;
            }
            if answer.kind() == NLMSG_DONE || !each(answer.payload()) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_the_kernel_does_not_know_is_an_error() {
        let asked = dump(Some(rustix::net::netlink::SOCK_DIAG), 20, &[255; 56], |_| true);
        assert!(asked.is_err());
    }
}
