//! Ports on the loopback interface that nobody listens on.

use std::net::TcpListener;

/// A free TCP port of 127.0.0.1.
///
/// The kernel hands out ephemeral ports in turn, so that the port stays free until its user binds it, unless some
/// 28,000 others are asked for in between.
///
/// # Panics
///
/// When the loopback interface has no free port.
#[must_use]
pub fn free() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port on the loopback interface")
        .port()
}
