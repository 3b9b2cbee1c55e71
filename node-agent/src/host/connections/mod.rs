//! Who would notice if this machine were gone: ports that accept connections from outside, how many peers each has, and
//! since when the newest of them; and with whom data is exchanged, in either direction (`peers`).
//!
//! A port is listed if and only if a TCP socket listens on it at an address other than loopback, and it is not the agent's
//! own. A peer is from outside if and only if its address is neither loopback nor one of this host's: a container with
//! an address of its own counts as another machine.
//!
//! It samples once a heartbeat. A connection that came and went in between is not seen here; its bytes are in the network's
//! counters. Containers are included: the ports of every network namespace that has a process count, those of
//! equal number together. Where there are more than 256 of them, or they cannot be read, nobody knows who calls.
//!
//! Cost: 1.8 µs of CPU time for each socket, 6 µs for each process, and up to 4 ms for each container with sockets; who holds a new socket
//! costs up to 25 ms more (`owners`). Where one sample takes more than 20 ms, the next one
//! waits until both together are less of one core than two fifths of the agent's budget are of the host (by default 0.2 %), and the last answer is repeated until
//! then: with 100,000 sockets, 90 s.
//! The baseline's samples delay nothing: the first heartbeat always has a sample of its own.
//!
//! Memory: 8 bytes for each connection at a listening port, of `MAX_CONNECTIONS` at most (1 MiB, twice while
//! sampling). Beyond that number peers are counted and not told apart, and each sample takes it that a new one was there.

mod exchange;
mod namespaces;
mod owners;
mod peers;
mod sockets;

use crate::{
    coverage::{Capabilities, Status},
    host::whose::{Role, Whose},
    workload::Class,
};
use exchange::Exchange;
use heartbeat::{envelope::MAX_LISTENERS, wire};
use namespaces::Namespace;
use owners::{Holder, Opened, Owner, Owners};
use peers::{Connections, Count, Peers, Spot, foremost, serve_themselves};

pub use peers::Holding;
use rustix::time::{ClockId, clock_gettime};
use sockets::{Socket, State};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::IpAddr,
    path::Path,
    time::{Duration, Instant},
};

/// Connections that are told apart.
const MAX_CONNECTIONS: usize = 131_072;
/// Sockets of one network namespace that are sampled: beyond, the counts would be wrong, and none is given.
const MAX_SOCKETS: usize = 1_000_000;

/// Sockets of which it is remembered where they were opened: some more than there are connections whose holders are asked for.
const MAX_OPENED: usize = 4_096;

/// A sample that takes less than this may be taken for every heartbeat.
const CHEAP: Duration = Duration::from_millis(20);
/// Of one core's time so large a part of the agent's budget may go into sampling: numerator and denominator.
const PART_OF_BUDGET: (u64, u64) = (2, 5);

/// What is known of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Port {
    inodes: Vec<u64>,
    outside_peers: u32,
    has_new_peer: bool,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sample {
    ports: BTreeMap<u16, Port>,
    connections: Connections,
    /// Where listeners and connections were opened, by inode, as far as the kernel tells.
    opened: BTreeMap<u64, Opened>,
}

/// What one sample comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connected {
    /// Who would notice.
    pub inbound_peers: wire::InboundPeers,
    /// With whom data is exchanged.
    pub peers: wire::Peers,
    /// In which cgroups they are held; `None` while one of them may be held anywhere.
    pub holding: Option<Holding>,
}

/// Samples listening ports and peers; remembers whom it saw.
#[derive(Debug, Default)]
pub struct ConnectionSampler {
    /// Ids of the connections at the last sample, sorted; `None` before the first one.
    known: Option<Vec<u64>>,
    last_new_peer_unix_ms: BTreeMap<u16, i64>,
    owners: Owners,
    peers: Peers,
    /// Segments with data of each network namespace without socket diagnosis, at the last sample.
    moved: HashMap<u64, u64>,
    /// One part in so many of one core's time may go into sampling; 0 if all of it may.
    one_part_in: u32,
    /// The last sample or its error, and when it expires.
    repeated: Option<(Instant, Result<Sample, String>)>,
}

impl ConnectionSampler {
    /// One that costs no more than its part of the agent's budget, which is in millionths of the host's CPUs.
    #[must_use]
    pub fn within(cpu_ppm_of_host: u64) -> Self {
        let (part, of) = PART_OF_BUDGET;
        let one_part_in = (1_000_000 * of).checked_div(cpu_ppm_of_host * part).unwrap_or(u64::MAX);
        Self { one_part_in: u32::try_from(one_part_in).unwrap_or(u32::MAX), ..Self::default() }
    }

    /// Samples once; absent if sockets cannot be listed. `classify` says whose work a process does, and a cgroup.
    pub fn read(
        &mut self,
        now_unix_ms: i64,
        classify: &mut Whose<'_>,
        capabilities: &mut Capabilities,
    ) -> Option<Connected> {
        let sample = match self.sample_or_repeat(now_unix_ms, classify) {
            Ok(sample) => sample,
            Err(error) => {
                // What happens until the next sample that works cannot be compared with what was before.
                self.known = None;
                for name in ["inbound_peers", "peers"] {
                    capabilities.set(name, Status::of_io(&error), format!("sockets cannot be listed: {error}"));
                }
                return None;
            }
        };
        capabilities.ok("inbound_peers");
        capabilities.ok("peers");
        let held = [
            ("inbound_peer_owners", sample.ports.values().flat_map(|port| &port.inodes).copied().collect::<Vec<_>>()),
            ("peer_owners", sample.connections.inodes().collect()),
        ];
        for (name, inodes) in held {
            if self.owners.denied && inodes.into_iter().any(|inode| *self.owners.of(inode) == Holder::Unknown) {
                let reason = "who holds a socket cannot be read of other users' processes without CAP_SYS_PTRACE";
                capabilities.set(name, Status::Denied, reason);
            } else {
                capabilities.ok(name);
            }
        }
        let listeners = |number| sample.ports.get(&number).map(|port| port.inodes.clone()).unwrap_or_default();
        let peers = self.peers.report(&sample.connections, &listeners, &self.owners);
        let holding = Holding::of(&sample.connections, &listeners, &self.owners);
        Some(Connected { inbound_peers: self.report(now_unix_ms, &sample.ports), peers, holding })
    }

    /// The next sample is taken, whatever the last one cost.
    pub fn forget_cost(&mut self) {
        self.repeated = None;
    }

    /// The last sample again, if it was costly and not long ago.
    fn sample_or_repeat(&mut self, now_unix_ms: i64, classify: &mut Whose<'_>) -> io::Result<Sample> {
        if let Some((until, sampled)) = &self.repeated
            && Instant::now() < *until
        {
            let mut sample = sampled.clone().map_err(io::Error::other)?;
            sample.ports.values_mut().for_each(|port| port.has_new_peer = false);
            return Ok(sample);
        }
        let begin = thread_cpu_time();
        let is_first = self.known.is_none();
        let sampled = sockets::own_addresses().and_then(|own| self.sample(&own, now_unix_ms));
        let without_owners = thread_cpu_time();
        if let Ok(sample) = &sampled {
            let listeners = sample.ports.values().flat_map(|port| &port.inodes).copied();
            let wanted = listeners.chain(sample.connections.inodes()).filter(|inode| *inode != 0).collect();
            self.owners.refresh(Path::new("/proc"), &wanted, classify);
            let opened = sample.opened.iter().filter(|(inode, _)| wanted.contains(inode));
            self.owners.infer(opened.map(|(inode, opened)| (*inode, *opened)), classify);
        }
        // The first search for owners reads more than any later one will: it says nothing of what the next sample costs.
        let end = if is_first { without_owners } else { thread_cpu_time() };
        let cost = end.saturating_sub(begin);
        let pause = pause_after(cost, self.one_part_in);
        tracing::debug!(?cost, ?pause, "sockets were sampled");
        let kept = || sampled.as_ref().map_err(ToString::to_string).cloned();
        self.repeated = pause.map(|pause| (Instant::now() + pause, kept()));
        sampled
    }

    fn sample(&mut self, own: &HashSet<IpAddr>, now_unix_ms: i64) -> io::Result<Sample> {
        let others = namespaces::others(Path::new("/proc"))?;
        let mut now = Vec::new();
        let known = self.known.take();
        let moved_before = std::mem::take(&mut self.moved);
        let mut sample = Sample::default();
        for place in std::iter::once(None).chain(others.iter().map(Some)) {
            let (id, net) = place.map_or((0, Some(Path::new("/proc/self/net"))), |place| (place.id, place.net()));
            let moved = net.and_then(exchange::moved);
            let scope = Scope {
                place,
                own,
                known: known.as_deref(),
                owners: &self.owners,
                has_moved: moved.zip(moved_before.get(&id).copied()).is_some_and(|(now, before)| now != before),
                now_unix_ms,
            };
            for (number, port) in scope.sample(&mut now, &mut sample.connections, &mut sample.opened)? {
                let sum = sample.ports.entry(number).or_default();
                sum.inodes.extend(port.inodes);
                sum.outside_peers = sum.outside_peers.saturating_add(port.outside_peers);
                sum.has_new_peer |= port.has_new_peer;
            }
            self.moved.extend(moved.map(|moved| (id, moved)));
        }
        now.sort_unstable();
        self.known = Some(now);
        Ok(sample)
    }

    fn report(&mut self, now_unix_ms: i64, ports: &BTreeMap<u16, Port>) -> wire::InboundPeers {
        self.last_new_peer_unix_ms.retain(|port, _| ports.contains_key(port));
        for (number, _) in ports.iter().filter(|(_, port)| port.has_new_peer) {
            self.last_new_peer_unix_ms.insert(*number, now_unix_ms);
        }
        let mut listeners: Vec<wire::Listener> = ports
            .iter()
            .filter_map(|(number, port)| {
                let owners: Vec<&Owner> =
                    port.inodes.iter().filter_map(|inode| self.owners.of(*inode).owner()).collect();
                // Several programs may share a port; if one of them does somebody's work, the port does.
                let owner = foremost(owners.iter().copied());
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
        wire::InboundPeers { listeners, listeners_not_listed: u32::try_from(beyond).unwrap_or(u32::MAX) }
    }
}

fn pause_after(cost: Duration, one_part_in: u32) -> Option<Duration> {
    (cost > CHEAP).then(|| cost.saturating_mul(one_part_in))
}

fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// One network namespace, and what its sockets are compared with.
struct Scope<'a> {
    /// The agent's own if there is no other.
    place: Option<&'a Namespace>,
    own: &'a HashSet<IpAddr>,
    known: Option<&'a [u64]>,
    owners: &'a Owners,
    /// Whether it sent or received data by TCP since the sample before.
    has_moved: bool,
    now_unix_ms: i64,
}

impl Scope<'_> {
    /// Its listening ports. `now` takes the connections that are there, `connections` with whom data is exchanged, `opened` where
    /// the sockets were opened.
    fn sample(
        &self,
        now: &mut Vec<u64>,
        connections: &mut Connections,
        opened: &mut BTreeMap<u64, Opened>,
    ) -> io::Result<BTreeMap<u16, Port>> {
        let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
        let mut count = 0_usize;
        let mut note = |socket: &Socket, role| {
            if socket.cgroup != 0 && opened.len() < MAX_OPENED {
                opened.insert(socket.inode, Opened { cgroup: socket.cgroup, role });
            }
        };
        let mut take = |state, socket: Socket| {
            count += 1;
            match state {
                State::Listening if !socket.local.is_loopback() => {
                    ports.entry(socket.port).or_default().inodes.push(socket.inode);
                    note(&socket, Role::Listens { port: socket.port });
                }
                State::Established if !self.is_inside(&socket) => {
                    let port = ports.get_mut(&socket.port);
                    let is_outbound = self.connect(&socket, port.as_deref(), connections);
                    note(&socket, if is_outbound { Role::Connects } else { Role::Accepted });
                    if let Some(port) = port {
                        self.call(&socket, port, now);
                    }
                }
                _ => {}
            }
            count < MAX_SOCKETS
        };
        match self.place {
            Some(namespace) => namespace.each(&mut take)?,
            None => {
                for state in [State::Listening, State::Established] {
                    sockets::each(state, |socket| take(state, socket))?;
                }
            }
        }
        let mut udp = Vec::new();
        let mut take_udp = |state, socket: Socket| {
            count += 1;
            let is_bound = state == State::Bound && !socket.local.is_loopback();
            if is_bound || (state == State::Established && !self.is_inside(&socket)) {
                udp.push((state, socket));
            }
            count < MAX_SOCKETS
        };
        match self.place {
            Some(namespace) => namespace.each_udp(&mut take_udp)?,
            None => sockets::each_udp(&mut take_udp)?,
        }
        self.connect_udp(&udp, connections);
        if count < MAX_SOCKETS {
            Ok(ports)
        } else {
            Err(io::Error::other(format!("there are more than {MAX_SOCKETS} of them")))
        }
    }

    fn is_inside(&self, socket: &Socket) -> bool {
        // A container's own address is none of the host's.
        let is_to_itself = self.place.is_some() && socket.peer == socket.local;
        socket.peer.is_loopback() || is_to_itself || self.own.contains(&socket.peer)
    }

    /// A peer of a listening port.
    fn call(&self, socket: &Socket, port: &mut Port, now: &mut Vec<u64>) {
        port.outside_peers = port.outside_peers.saturating_add(1);
        if now.len() < MAX_CONNECTIONS {
            now.push(socket.id);
            // Who was here before the agent is a peer, and no new one.
            port.has_new_peer |= self.known.is_some_and(|known| known.binary_search(&socket.id).is_err());
        } else {
            port.has_new_peer = true;
        }
    }

    /// A connection, whoever opened it; says whether that was this machine.
    fn connect(&self, socket: &Socket, listening: Option<&Port>, connections: &mut Connections) -> bool {
        let last_exchange_unix_ms = match socket.exchange {
            Exchange::Unknown if self.has_moved => Some(self.now_unix_ms),
            told => told.unix_ms(self.now_unix_ms),
        };
        let spot = Spot::of(wire::Protocol::Tcp, socket.port, socket.peer_port, listening.is_some());
        let is_its_listeners = listening.is_some_and(|port| serve_themselves(&port.inodes, self.owners));
        connections.add(spot, socket.inode, is_its_listeners, Count { peers: 1, last_exchange_unix_ms });
        spot.outbound
    }

    /// Bound UDP ports, which do not tell their peers, and UDP sockets with one fixed peer.
    fn connect_udp(&self, sockets: &[(State, Socket)], connections: &mut Connections) {
        let is_bound = |(state, _): &&(State, Socket)| *state == State::Bound;
        let bound: HashSet<u16> = sockets.iter().filter(is_bound).map(|(_, socket)| socket.port).collect();
        for (state, socket) in sockets {
            let last_exchange_unix_ms = socket.exchange.unix_ms(self.now_unix_ms);
            let has_peer = *state == State::Established;
            let listens = !has_peer || bound.contains(&socket.port);
            let spot = Spot::of(wire::Protocol::Udp, socket.port, socket.peer_port, listens);
            let count = Count { peers: u32::from(has_peer), last_exchange_unix_ms };
            connections.add(spot, socket.inode, false, count);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
