//! Ports on the loopback interface that nobody else takes.

use std::{
    net::{Ipv4Addr, TcpListener},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process,
    sync::{
        Mutex,
        atomic::{AtomicU16, Ordering},
    },
};

/// Below the ports that the kernel gives to connections (`ip_local_port_range`, from 32,768 on): one of those is taken by the first connection
/// that anybody opens while its server is not up, or is stopped for a while.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;

/// What keeps other tests from the ports of this one: a name among the abstract sockets of this network, which the kernel forgets when the process ends.
static KEPT: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
static ASKED: AtomicU16 = AtomicU16::new(0);

/// A TCP port of 127.0.0.1 that nobody listens on, and that no other caller is given as long as this process lives.
///
/// # Panics
///
/// When the loopback interface has no free port.
#[must_use]
pub fn free() -> u16 {
    // Each process begins elsewhere, so that one that was just ended and this one do not share a port.
    let begin = process::id().wrapping_mul(97) + u32::from(ASKED.fetch_add(1, Ordering::Relaxed));
    let candidates = (0..u32::from(COUNT)).map(|offset| begin.wrapping_add(offset) % u32::from(COUNT));
    candidates
        .map(|offset| FIRST + u16::try_from(offset).expect("less than COUNT"))
        .find(|port| is_reserved_now(*port))
        .expect("a free port on the loopback interface")
}

/// Whether this port is this process's from now on.
fn is_reserved_now(port: u16) -> bool {
    let name = SocketAddr::from_abstract_name(format!("cloud-sweeper/port/{port}")).expect("a short name");
    let Ok(name) = UnixDatagram::bind_addr(&name) else { return false };
    // A listener on any address keeps it from being bound here.
    if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_err() {
        return false;
    }
    KEPT.lock().expect("nobody panics while holding it").push(name);
    true
}
