//! Bytes that tasks send and receive, without headers and without loopback.
//!
//! From Linux 6.3 on, two tracepoints show the length of each send and receive; before that, the functions behind the
//! sockets of IPv4 and IPv6 are watched at their return, where the kernel allows it. A socket without a peer (a datagram
//! socket that was not connected) counts as outside, unless it is bound to loopback.

use crate::{
    cost::Run,
    fields::{Address, offset},
    sums::observe,
};
use aya_ebpf::{
    helpers::{bpf_get_current_task, generated::bpf_get_current_task_btf},
    macros::{btf_tracepoint, fexit},
    programs::{BtfTracePointContext, FExitContext},
};
use node_agent_ebpf::counter::{NETWORK_RECEIVED_BYTES, NETWORK_SENT_BYTES};

/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/socket.h#L193-L203>
const AF_INET: u16 = 2;
/// Likewise.
const AF_INET6: u16 = 10;

/// As they lie in memory, the first byte of the address lowest: numbers are loaded, and arrays take a helper's call each.
type Address4 = u32;
type Address6 = [u32; 4];

#[inline(always)]
fn is_loopback4(address: Address4) -> bool {
    address & 0xff == 127
}

/// `::1` or an IPv4 loopback address in IPv6 clothes.
#[inline(always)]
fn is_loopback6(address: Address6) -> bool {
    if address[0] != 0 || address[1] != 0 {
        return false;
    }
    (address[2] == 0 && u32::from_be(address[3]) == 1)
        || (u32::from_be(address[2]) == 0xffff && is_loopback4(address[3]))
}

/// Whether the socket leads out of this machine.
#[inline(always)]
fn leads_out<const TYPED: bool>(socket: Address<TYPED>) -> bool {
    match socket.read::<u16>(offset!(sock_family)) {
        Some(AF_INET) => {
            let own: Address4 = socket.read(offset!(sock_own4)).unwrap_or(0);
            let peer: Address4 = socket.read(offset!(sock_peer4)).unwrap_or(0);
            !is_loopback4(peer) && !is_loopback4(own) && (peer == 0 || peer != own)
        }
        Some(AF_INET6) => {
            let own: Address6 = socket.read(offset!(sock_own6)).unwrap_or([0; 4]);
            let peer: Address6 = socket.read(offset!(sock_peer6)).unwrap_or([0; 4]);
            let has_peer = (peer[0] | peer[1] | peer[2] | peer[3]) != 0;
            let is_self = peer[0] == own[0] && peer[1] == own[1] && peer[2] == own[2] && peer[3] == own[3];
            !is_loopback6(peer) && !is_loopback6(own) && !(has_peer && is_self)
        }
        _ => false,
    }
}

/// Counts the outcome of one call: a length, or an error below zero. `TYPED_TASK` says that the kernel gives the running task with its type, as it
/// does since Linux 5.11.
#[inline(always)]
fn count<const TYPED: bool, const TYPED_TASK: bool>(socket: Address<TYPED>, outcome: i32, index: usize) {
    // Sockets that stay on the machine pass here as well, as often as they like: for them nothing is done but this.
    let family = socket.read::<u16>(offset!(sock_family));
    if outcome > 0 && matches!(family, Some(AF_INET | AF_INET6)) {
        let run = Run::begin();
        if leads_out(socket) {
            // SAFETY: neither helper takes anything.
            if TYPED_TASK {
                observe(Address::<true>::new(unsafe { bpf_get_current_task_btf() } as u64), index, outcome as u64);
            } else {
                observe(Address::<false>::new(unsafe { bpf_get_current_task() }), index, outcome as u64);
            }
        }
        run.end();
    }
}

#[btf_tracepoint(function = "sock_send_length")]
fn sent(context: BtfTracePointContext) -> i32 {
    count::<true, true>(Address::new(context.arg::<u64>(0)), context.arg::<i32>(1), NETWORK_SENT_BYTES);
    0
}

#[btf_tracepoint(function = "sock_recv_length")]
fn received(context: BtfTracePointContext) -> i32 {
    count::<true, true>(Address::new(context.arg::<u64>(0)), context.arg::<i32>(1), NETWORK_RECEIVED_BYTES);
    0
}

/// The functions' first parameter is a `struct socket`; the outcome comes after `parameters` of them.
#[inline(always)]
fn count_return(context: &FExitContext, parameters: usize, index: usize) -> i32 {
    if let Some(socket) = Address::<true>::new(context.arg::<u64>(0)).follow(offset!(socket_sk)) {
        count::<true, false>(socket, context.arg::<u64>(parameters) as i32, index);
    }
    0
}

#[fexit(function = "inet_sendmsg")]
fn sent4(context: FExitContext) -> i32 {
    count_return(&context, 3, NETWORK_SENT_BYTES)
}

#[fexit(function = "inet6_sendmsg")]
fn sent6(context: FExitContext) -> i32 {
    count_return(&context, 3, NETWORK_SENT_BYTES)
}

/// Files that are sent without a copy, up to Linux 6.4.
#[fexit(function = "inet_sendpage")]
fn sent_page(context: FExitContext) -> i32 {
    count_return(&context, 5, NETWORK_SENT_BYTES)
}

#[fexit(function = "inet_recvmsg")]
fn received4(context: FExitContext) -> i32 {
    count_return(&context, 4, NETWORK_RECEIVED_BYTES)
}

#[fexit(function = "inet6_recvmsg")]
fn received6(context: FExitContext) -> i32 {
    count_return(&context, 4, NETWORK_RECEIVED_BYTES)
}
