//! Who would notice if this machine were gone: ports that accept connections from outside, how many peers each has, and
//! since when the newest of them.
//!
//! A port is listed if and only if a TCP socket listens on it at an address other than loopback, and it is not the agent's
//! own. A peer is from outside if and only if its address is neither loopback nor one of this host's: a container with
//! an address of its own counts as another machine. Connections that this host opened are no callers, and so the agent's
//! own to the sweeper is none.
//!
//! It looks once a reading. A connection that came and went in between is not seen here; its bytes are in the network's
//! books. Containers are looked into: the ports of every network namespace that has a process count, those of
//! equal number together. Where there are more than 256 of them, or they cannot be read, nobody knows who calls.
//!
//! Cost: 1.4 µs of CPU time for each socket, 6 µs for each process, and up to 4 ms for each container with sockets. Where one look takes more than 20 ms, the next one
//! waits until both together are less than 0.2 % of one core, and the last answer is repeated until then: with 100,000 sockets, 70 s.
//!
//! Memory: 8 bytes for each connection at a listening port, of `MAX_CONNECTIONS` at most (1 MiB, twice while
//! reading). Beyond that number peers are counted and not told apart, and each reading takes it that a new one was there.

mod namespaces;
mod netlink;
mod owners;
mod sockets;

use crate::{
    coverage::{Probes, Status},
    workload::{Class, Traits},
};
use heartbeat::{envelope::MAX_LISTENERS, wire};
use namespaces::Namespace;
use owners::{Owner, Owners};
use rustix::time::{ClockId, clock_gettime};
use sockets::{Socket, State};
use std::{
    collections::{BTreeMap, HashSet},
    io,
    net::IpAddr,
    path::Path,
    time::{Duration, Instant},
};

/// Connections that are told apart.
const MAX_CONNECTIONS: usize = 131_072;
/// Sockets of one network namespace that a reading looks at: beyond, the counts would be wrong, and none is given.
const MAX_SOCKETS: usize = 1_000_000;

/// A look that takes less than this may be taken at every reading.
const CHEAP: Duration = Duration::from_millis(20);
/// One part in so many of one core's time may go into looking.
const SHARE: u32 = 500;

/// What is known of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Port {
    inodes: Vec<u64>,
    outside_peers: u32,
    has_new_peer: bool,
}

/// What a look came to, in a form that can be told again.
type Looked = Result<BTreeMap<u16, Port>, String>;

/// Looks for callers; remembers whom it saw.
#[derive(Debug, Default)]
pub struct Callers {
    /// Ids of the connections at the last reading, sorted; `None` before the first one.
    known: Option<Vec<u64>>,
    last_new_peer_unix_ms: BTreeMap<u16, i64>,
    owners: Owners,
    /// The last look or why it failed, and until when it has to do.
    rested: Option<(Instant, Looked)>,
}

impl Callers {
    /// Looks once; absent if sockets cannot be listed. `classify` says whose work a process does.
    pub fn read(
        &mut self,
        now_unix_ms: i64,
        classify: &dyn Fn(&Traits<'_>) -> Class,
        probes: &mut Probes,
    ) -> Option<wire::Callers> {
        let ports = match self.look_or_rest() {
            Ok(ports) => ports,
            Err(error) => {
                // What happens until the next reading that works cannot be compared with what was before.
                self.known = None;
                probes.set("callers", Status::of_io(&error), format!("TCP sockets cannot be listed: {error}"));
                return None;
            }
        };
        let inodes = ports.values().flat_map(|port| &port.inodes).copied().filter(|inode| *inode != 0).collect();
        self.owners.refresh(Path::new("/proc"), &inodes, classify);
        probes.ok("callers");
        if self.owners.denied {
            let reason = "who holds a listening port cannot be read of other users' processes without CAP_SYS_PTRACE";
            probes.set("caller_owners", Status::Denied, reason);
        } else {
            probes.ok("caller_owners");
        }
        Some(self.report(now_unix_ms, &ports))
    }

    /// The last look again, if it was costly and not long ago.
    fn look_or_rest(&mut self) -> io::Result<BTreeMap<u16, Port>> {
        if let Some((until, looked)) = &self.rested
            && Instant::now() < *until
        {
            let ports = looked.as_ref().map_err(|reason| io::Error::other(reason.clone()))?;
            let old = ports.iter().map(|(number, port)| (*number, Port { has_new_peer: false, ..port.clone() }));
            return Ok(old.collect());
        }
        let begin = thread_cpu_time();
        let looked = sockets::own_addresses().and_then(|own| self.look(&own));
        let rest = rest_after(thread_cpu_time().saturating_sub(begin));
        let kept = || looked.as_ref().map_err(ToString::to_string).cloned();
        self.rested = rest.map(|rest| (Instant::now() + rest, kept()));
        looked
    }

    fn look(&mut self, own: &HashSet<IpAddr>) -> io::Result<BTreeMap<u16, Port>> {
        let others = namespaces::others(Path::new("/proc"))?;
        let mut now = Vec::new();
        let known = self.known.take();
        let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
        for place in std::iter::once(None).chain(others.iter().map(Some)) {
            for (number, port) in look_at(place, own, known.as_deref(), &mut now)? {
                let sum = ports.entry(number).or_default();
                sum.inodes.extend(port.inodes);
                sum.outside_peers = sum.outside_peers.saturating_add(port.outside_peers);
                sum.has_new_peer |= port.has_new_peer;
            }
        }
        now.sort_unstable();
        self.known = Some(now);
        Ok(ports)
    }

    fn report(&mut self, now_unix_ms: i64, ports: &BTreeMap<u16, Port>) -> wire::Callers {
        self.last_new_peer_unix_ms.retain(|port, _| ports.contains_key(port));
        for (number, _) in ports.iter().filter(|(_, port)| port.has_new_peer) {
            self.last_new_peer_unix_ms.insert(*number, now_unix_ms);
        }
        let mut listeners: Vec<wire::Listener> = ports
            .iter()
            .filter_map(|(number, port)| {
                let owners: Vec<&Owner> = port.inodes.iter().filter_map(|inode| self.owners.of(*inode)).collect();
                // Several programs may share a port; if one of them does somebody's work, the port does.
                let owner = owners.iter().find(|owner| owner.class == Class::Workload).or_else(|| owners.first());
                if owner.is_some_and(|owner| owner.class == Class::Own) {
                    return None;
                }
                let is_known =
                    owners.len() == port.inodes.len() || owner.is_some_and(|owner| owner.class == Class::Workload);
                let class = owner.filter(|_| is_known).map_or(wire::Class::Unspecified, |owner| owner.class.to_wire());
                Some(wire::Listener {
                    port: u32::from(*number),
                    command: owner.map(|owner| owner.command.clone()).unwrap_or_default(),
                    class: class.into(),
                    outside_peers: port.outside_peers,
                    last_new_peer_unix_ms: self.last_new_peer_unix_ms.get(number).copied(),
                })
            })
            .collect();
        listeners.sort_by_key(|listener| {
            (std::cmp::Reverse((listener.outside_peers, listener.last_new_peer_unix_ms)), listener.port)
        });
        let beyond = listeners.len().saturating_sub(MAX_LISTENERS);
        listeners.truncate(MAX_LISTENERS);
        wire::Callers { listeners, listeners_not_listed: u32::try_from(beyond).unwrap_or(u32::MAX) }
    }
}

fn rest_after(cost: Duration) -> Option<Duration> {
    (cost > CHEAP).then(|| cost.saturating_mul(SHARE))
}

fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The ports of one network namespace; of the agent's own if there is no other. `now` takes the connections that are there.
fn look_at(
    place: Option<&Namespace>,
    own: &HashSet<IpAddr>,
    known: Option<&[u64]>,
    now: &mut Vec<u64>,
) -> io::Result<BTreeMap<u16, Port>> {
    let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
    let mut count = 0_usize;
    let mut take = |state, socket: Socket| {
        count += 1;
        // A container's own address is none of the host's.
        let is_to_itself = place.is_some() && socket.peer == socket.local;
        let is_inside = socket.peer.is_loopback() || is_to_itself || own.contains(&socket.peer);
        match state {
            State::Listening if !socket.local.is_loopback() => {
                ports.entry(socket.port).or_default().inodes.push(socket.inode);
            }
            State::Established if !is_inside => {
                if let Some(port) = ports.get_mut(&socket.port) {
                    port.outside_peers = port.outside_peers.saturating_add(1);
                    if now.len() < MAX_CONNECTIONS {
                        now.push(socket.id);
                        // Who was here before the agent is a peer, and no new one.
                        port.has_new_peer |= known.is_some_and(|known| known.binary_search(&socket.id).is_err());
                    } else {
                        port.has_new_peer = true;
                    }
                }
            }
            _ => {}
        }
        count < MAX_SOCKETS
    };
    match place {
        Some(namespace) => namespace.each(&mut take)?,
        None => {
            for state in [State::Listening, State::Established] {
                sockets::each(state, |socket| take(state, socket))?;
            }
        }
    }
    if count < MAX_SOCKETS {
        Ok(ports)
    } else {
        Err(io::Error::other(format!("there are more than {MAX_SOCKETS} of them")))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
