//! TCP sockets of this network namespace: from the kernel's socket diagnosis, else from `/proc/net/tcp` and `tcp6`. UDP sockets
//! come from `/proc/net/udp` and `udp6`.
//!
//! All hand on one socket at a time. Those of other network namespaces (most containers) are found by [`super::namespaces`].

use super::exchange::Exchange;
use crate::netlink::{attributes, dump};
use rustix::net::netlink::SOCK_DIAG;
use std::{
    collections::HashSet,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, BufRead as _, BufReader, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// The kernel has no socket diagnosis of IPv4 and of IPv6, as it once said.
static HAS_NO_DIAGNOSIS: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// One end of a connection, a listener, or a bound UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) local: IpAddr,
    pub(super) port: u16,
    /// Who is at the other end; unspecified for a listener.
    pub(super) peer: IpAddr,
    /// The port at the other end; 0 for a listener.
    pub(super) peer_port: u16,
    /// When it last carried data.
    pub(super) exchange: Exchange,
    /// Tells this socket from every other one of this boot, also from one between the same addresses.
    pub(super) id: u64,
    /// Its inode; 0 if no process has it open.
    pub(super) inode: u64,
    /// The kernel's id of the cgroup in the unified tree that opened it, or that opened the listener which accepted it; 0 if that is not told.
    pub(super) cgroup: u64,
}

/// `TCP_ESTABLISHED`, `TCP_CLOSE` (a UDP socket without a fixed peer) and `TCP_LISTEN`:
/// <https://github.com/torvalds/linux/blob/v6.12/include/net/tcp_states.h>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Established = 1,
    Bound = 7,
    Listening = 10,
}

/// Calls `each` with every socket in this state, until it wants no more.
///
/// # Errors
/// If neither source can be read, or one fails halfway: a second source would name the same sockets again.
pub(super) fn each(state: State, mut each: impl FnMut(Socket) -> bool) -> io::Result<()> {
    for ((family, file), has_none) in
        [(libc::AF_INET, "tcp"), (libc::AF_INET6, "tcp6")].into_iter().zip(&HAS_NO_DIAGNOSIS)
    {
        // Kernels without tcp_diag say so before they name any socket. Each question then starts a program that looks for
        // the module (request_module), which is a fork in this machine's counters: it is asked once.
        if !has_none.load(Ordering::Relaxed) {
            if was_diagnosed(|each| diagnosed(family, state, each), &mut each)? {
                continue;
            }
            has_none.store(true, Ordering::Relaxed);
        }
        listed(&Path::new("/proc/net").join(file), state, &mut each)?;
    }
    Ok(())
}

/// Asks the first source; `false` says that this kernel has none and that it has named no socket.
fn was_diagnosed(
    ask: impl FnOnce(&mut dyn FnMut(Socket) -> bool) -> io::Result<()>,
    each: &mut impl FnMut(Socket) -> bool,
) -> io::Result<bool> {
    let mut has_named = false;
    let asked = ask(&mut |socket| {
        has_named = true;
        each(socket)
    });
    match asked {
        Err(error) if !has_named && is_unsupported(&error) => Ok(false),
        asked => asked.map(|()| true),
    }
}

/// What kernels say that lack netlink, socket diagnosis or its part for TCP.
fn is_unsupported(error: &io::Error) -> bool {
    [libc::ENOENT, libc::EPROTONOSUPPORT, libc::EAFNOSUPPORT, libc::EOPNOTSUPP, libc::ENOSYS]
        .into_iter()
        .any(|code| error.raw_os_error() == Some(code))
}

/// The attribute that holds a `struct tcp_info`.
const INET_DIAG_INFO: u16 = 2;
/// The attribute that holds a cgroup's id (Linux 5.8); nobody needs a right to see it.
const INET_DIAG_CGROUP_ID: u16 = 21;

/// `struct inet_diag_req_v2`: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/inet_diag.h>
fn diagnosed(family: i32, state: State, each: &mut dyn FnMut(Socket) -> bool) -> io::Result<()> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    let mut body = [0_u8; 56];
    body[0] = u8::try_from(family).map_err(io::Error::other)?;
    body[1] = 6; // IPPROTO_TCP
    if state == State::Established {
        body[2] = 1 << (INET_DIAG_INFO - 1);
    }
    body[4..8].copy_from_slice(&(1_u32 << state as u32).to_ne_bytes());
    dump(Some(SOCK_DIAG), SOCK_DIAG_BY_FAMILY, &body, |answer| diagnosis(answer).is_none_or(&mut *each))
}

/// `struct inet_diag_msg`, whose identity holds ports and addresses in network order.
fn diagnosis(answer: &[u8]) -> Option<Socket> {
    let word = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    let address = |at: usize| match i32::from(*answer.first()?) {
        libc::AF_INET => Some(IpAddr::from(*answer.get(at..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => Some(IpAddr::from(*answer.get(at..)?.first_chunk::<16>()?).to_canonical()),
        _ => None,
    };
    let attribute = |wanted| {
        attributes(answer.get(72..).unwrap_or_default()).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    };
    let cgroup = attribute(INET_DIAG_CGROUP_ID).and_then(|id| Some(u64::from_ne_bytes(*id.first_chunk()?)));
    Some(Socket {
        local: address(8)?,
        port: u16::from_be_bytes(*answer.get(4..)?.first_chunk()?),
        peer: address(24)?,
        peer_port: u16::from_be_bytes(*answer.get(6..)?.first_chunk()?),
        exchange: attribute(INET_DIAG_INFO).map_or(Exchange::Unknown, Exchange::of_tcp_info),
        id: u64::from(word(44)?) | u64::from(word(48)?) << 32,
        inode: u64::from(word(68)?),
        cgroup: cgroup.unwrap_or(0),
    })
}

/// Reads `/proc/net/tcp` or `tcp6` for sockets in one state.
fn listed(file: &Path, state: State, each: &mut impl FnMut(Socket) -> bool) -> io::Result<()> {
    lines(file, |line| entry(line, state).is_none_or(&mut *each))
}

/// Likewise for all states in one walk, and for `udp` and `udp6`; of TCP the kernel names listeners first.
///
/// # Errors
/// If it cannot be read.
pub(super) fn all_listed(file: &Path, each: &mut impl FnMut(State, Socket) -> bool) -> io::Result<()> {
    lines(file, |line| {
        let socket = |state| entry(line, state).map(|socket| (state, socket));
        let found = [State::Listening, State::Established, State::Bound].into_iter().find_map(socket);
        found.is_none_or(|(state, socket)| each(state, socket))
    })
}

/// Calls `each` with every UDP socket of this network namespace, until it wants no more.
///
/// # Errors
/// If they cannot be listed.
pub(super) fn each_udp(mut each: impl FnMut(State, Socket) -> bool) -> io::Result<()> {
    all_listed(Path::new("/proc/net/udp"), &mut each)?;
    all_listed(Path::new("/proc/net/udp6"), &mut each)
}

/// The lines of such a file: <https://docs.kernel.org/networking/proc_net_tcp.html>. A host without IPv6 has no `tcp6` and no `udp6`.
fn lines(file: &Path, mut each: impl FnMut(&str) -> bool) -> io::Result<()> {
    let file = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && (file.ends_with("tcp6") || file.ends_with("udp6")) => {
            return Ok(());
        }
        opened => opened?,
    };
    let mut lines = BufReader::with_capacity(64 * 1024, file);
    let mut line = String::new();
    loop {
        line.clear();
        // Lines have 150 bytes; a longer one is none of the kernel's.
        if lines.by_ref().take(4096).read_line(&mut line)? == 0 || !each(&line) {
            return Ok(());
        }
    }
}

fn entry(line: &str, wanted: State) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    if u8::from_str_radix(fields.get(3)?, 16).ok()? != wanted as u8 {
        return None;
    }
    let ((local, port), (peer, peer_port)) = (end(fields.get(1)?)?, end(fields.get(2)?)?);
    let inode = fields.get(9)?.parse().ok()?;
    let exchange = Exchange::of_queues(fields.get(4)?);
    let mut hasher = DefaultHasher::new();
    (local, port, peer, peer_port, inode).hash(&mut hasher);
    Some(Socket { local, port, peer, peer_port, exchange, id: hasher.finish(), inode, cgroup: 0 })
}

/// `0100007F:1F90`: the address in words of this machine's byte order, the port as a number.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = [0_u8; 16];
    let words = address.len() / 8;
    for (index, chunk) in bytes.chunks_exact_mut(4).take(words).enumerate() {
        let word = u32::from_str_radix(address.get(index * 8..index * 8 + 8)?, 16).ok()?;
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    let address = match words {
        1 => IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        4 => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

/// The addresses of this host's interfaces (`RTM_GETADDR`): who calls from one of them is no outsider.
///
/// # Errors
/// If the kernel does not answer.
pub(super) fn own_addresses() -> io::Result<HashSet<IpAddr>> {
    const RTM_GETADDR: u16 = 22;
    let mut own = HashSet::new();
    dump(None, RTM_GETADDR, &[0; 8], |answer| {
        own.extend(interface_address(answer));
        true
    })?;
    Ok(own)
}

/// `struct ifaddrmsg`, then attributes; `IFA_LOCAL` is the own end of a point-to-point link, where `IFA_ADDRESS` is the other.
fn interface_address(answer: &[u8]) -> Option<IpAddr> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    let value = |wanted| attributes(answer.get(8..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let value = value(IFA_LOCAL).or_else(|| value(IFA_ADDRESS))?;
    match value.len() {
        4 => Some(IpAddr::from(*value.first_chunk::<4>()?)),
        16 => Some(IpAddr::from(*value.first_chunk::<16>()?)),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn lines_of_proc_are_understood() {
        let v4 = "   0: 0100007F:1F90 0200000A:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 0 0 10 -1";
        let socket = entry(v4, State::Established).unwrap();
        assert_eq!((socket.local, socket.port), ("127.0.0.1".parse().unwrap(), 8080));
        assert_eq!((socket.peer, socket.peer_port, socket.inode), ("10.0.0.2".parse().unwrap(), 50_000, 4711));
        assert_eq!(socket.exchange, Exchange::Unknown);
        let queued = entry(&v4.replace("00000000:00000000", "00000000:00000010"), State::Established).unwrap();
        assert_eq!(queued.exchange, Exchange::Ago { ms: 0 });
        assert_eq!(entry(v4, State::Listening), None);
        let v6 = "   1: 0000000000000000FFFF00000500000A:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0 100 0 0 10 0";
        let socket = entry(v6, State::Listening).unwrap();
        assert_eq!((socket.local, socket.port, socket.inode), ("10.0.0.5".parse().unwrap(), 22, 99));
        for broken in ["", "  sl  local_address rem_address   st", "0: 01:1 0:0 01", "0: ÄÖÜÄ:1 0:0 01 0 0 0 0 0 0"]
        {
            assert_eq!(entry(broken, State::Established), None, "{broken}");
        }
    }

    #[test]
    fn a_diagnosis_that_is_cut_off_is_no_socket() {
        let mut answer = [0_u8; 72];
        answer[0] = 2;
        assert!(diagnosis(&answer).is_some());
        for length in 0..72 {
            assert_eq!(diagnosis(&answer[..length]), None, "{length}");
        }
        answer[0] = 77;
        assert_eq!(diagnosis(&answer), None);
    }

    /// Both sources, asked for the two ends of a connection that this test makes.
    #[test]
    fn both_sources_find_the_same_listener_and_the_same_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let _served = listener.accept().unwrap();
        let from_here = client.local_addr().unwrap().port();
        for state in [State::Listening, State::Established] {
            let mut found: [Vec<Socket>; 2] = Default::default();
            let keep = |list: &mut Vec<Socket>, socket: Socket| {
                if socket.port == address.port() && socket.peer.is_loopback() == (state == State::Established) {
                    list.push(socket);
                }
                true
            };
            diagnosed(libc::AF_INET, state, &mut |socket| keep(&mut found[0], socket)).unwrap();
            listed(Path::new("/proc/net/tcp"), state, &mut |socket| keep(&mut found[1], socket)).unwrap();
            assert_eq!([found[0].len(), found[1].len()], [1, 1], "{state:?} {address} {from_here}");
            assert_eq!(found[0][0].inode, found[1][0].inode);
            assert_eq!(found[0][0].local, address.ip());
        }
    }

    #[test]
    fn a_source_that_fails_halfway_is_not_followed_by_another_one() {
        let exchange = Exchange::Unknown;
        let (local, peer) = ([0; 4].into(), [0; 4].into());
        let socket = Socket { local, port: 80, peer, peer_port: 0, exchange, id: 1, inode: 1, cgroup: 0 };
        let ask = |named: bool, code: i32| {
            let mut count = 0;
            let asked = was_diagnosed(
                |each| {
                    let _ = named && each(socket);
                    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
                },
                &mut |_| {
                    count += 1;
                    true
                },
            );
            (asked.map_err(|error| error.raw_os_error().unwrap()), count)
        };
        assert_eq!(ask(false, 0), (Ok(true), 0));
        assert_eq!(ask(true, 0), (Ok(true), 1));
        assert_eq!(ask(false, libc::ENOENT), (Ok(false), 0), "no tcp_diag here");
        assert_eq!(ask(true, libc::ENOENT), (Err(libc::ENOENT), 1));
        assert_eq!(ask(true, libc::ENOBUFS), (Err(libc::ENOBUFS), 1));
        assert_eq!(ask(false, libc::EAGAIN), (Err(libc::EAGAIN), 0));
        assert_eq!(ask(false, libc::EACCES), (Err(libc::EACCES), 0));
    }

    #[test]
    fn this_host_has_a_loopback_address() {
        assert!(own_addresses().unwrap().contains(&"127.0.0.1".parse().unwrap()));
        assert_eq!(interface_address(&[2, 8, 0, 0, 1, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 1]), "10.0.0.1".parse().ok());
        assert_eq!(interface_address(&[2, 8]), None);
    }
}
