//! Who exchanges data with this machine: established connections in both directions and bound UDP ports, in groups of one protocol,
//! port, direction, program and class.
//!
//! A connection is inbound if and only if its own port is one at which its network namespace listens, or one that a server chose (below
//! the range that the kernel gives to clients) while its peer's is not. An inbound connection is its listener's, so that a server
//! with 100,000 of them is asked for once; process 1 listens for services that it starts, and there each connection is asked for
//! itself, as every outbound one is. A port that no process holds is the kernel's own: a file server, a tunnel, a mounted file system.
//! The agent's own connections are left out.
//!
//! Memory: the inodes of at most [`MAX_ASKED`] connections. Beyond these a connection counts, and whose it is stays unspecified.

use super::owners::{Holder, Owner, Owners};
use crate::workload::{Class, row_key};
use heartbeat::{envelope::MAX_PEER_GROUPS, wire};
use std::{cmp::Reverse, collections::BTreeMap};

/// Connections of one sample whose holder is asked for by themselves.
const MAX_ASKED: usize = 1_024;
/// The same, of one port and direction.
const MAX_ASKED_OF_ONE: usize = 64;
/// Ports from here on are given to clients: `net.ipv4.ip_local_port_range` begins there unless somebody changed it.
const FIRST_CLIENT_PORT: u16 = 32_768;

/// Where connections end that belong together, before it is known who holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) protocol: wire::Protocol,
    pub(super) port: u16,
    pub(super) outbound: bool,
}

impl Spot {
    /// Of a connection, where `listens` says whether its namespace listens at its own port.
    pub(super) fn of(protocol: wire::Protocol, port: u16, peer_port: u16, listens: bool) -> Self {
        let is_servers = port < FIRST_CLIENT_PORT && peer_port >= FIRST_CLIENT_PORT;
        let outbound = !listens && !is_servers;
        Self { protocol, port: if outbound { peer_port } else { port }, outbound }
    }
}

/// How many peers, and when data was last exchanged with one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) peers: u32,
    pub(super) last_exchange_unix_ms: Option<i64>,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.peers = self.peers.saturating_add(other.peers);
        self.last_exchange_unix_ms = self.last_exchange_unix_ms.max(other.last_exchange_unix_ms);
    }
}

/// The connections of one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    /// Each by itself, as far as there is room.
    single: BTreeMap<Spot, Vec<(u64, Count)>>,
    beyond: BTreeMap<Spot, Count>,
    asked: usize,
}

/// A group as it is reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    spot: Spot,
    command: String,
    class: i32,
}

/// Remembers when each group was last in use, for sockets that do not say it themselves.
#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<Group, i64>);

impl Connections {
    /// Adds one. `is_its_listeners` says that whoever listens at its port holds it.
    pub(super) fn add(&mut self, spot: Spot, inode: u64, is_its_listeners: bool, count: Count) {
        let single = self.single.entry(spot).or_default();
        if is_its_listeners || inode == 0 || single.len() >= MAX_ASKED_OF_ONE || self.asked >= MAX_ASKED {
            self.beyond.entry(spot).or_default().add(count);
        } else {
            self.asked += 1;
            single.push((inode, count));
        }
    }

    /// The sockets whose holders are asked for.
    pub(super) fn inodes(&self) -> impl Iterator<Item = u64> {
        self.single.values().flatten().map(|(inode, _)| *inode)
    }
}

/// In which cgroups connections are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// How many peers each cgroup has, by the key of its row. What the kernel itself holds is in none.
    peers: BTreeMap<String, u32>,
    /// Some were accepted for whoever is started for them, who may be a service or a session.
    is_handed_on: bool,
}

impl Holding {
    /// Of these connections; `None` while there is one that may be held anywhere. Of several programs that listen at one port each may have its peers.
    pub(super) fn of(connections: &Connections, listeners: &dyn Fn(u16) -> Vec<u64>, owners: &Owners) -> Option<Self> {
        let mut holding = Self::default();
        for (inode, count) in connections.single.values().flatten().filter(|(_, count)| count.peers > 0) {
            holding.add(*inode, count.peers, owners)?;
        }
        for (spot, count) in connections.beyond.iter().filter(|(_, count)| count.peers > 0) {
            let is_inbound = spot.protocol == wire::Protocol::Tcp && !spot.outbound;
            let inodes = if is_inbound { listeners(spot.port) } else { Vec::new() };
            if inodes.is_empty() {
                return None;
            }
            for inode in inodes {
                holding.add(inode, count.peers, owners)?;
            }
        }
        Some(holding)
    }

    fn add(&mut self, inode: u64, peers: u32, owners: &Owners) -> Option<()> {
        let path = match owners.of(inode) {
            Holder::Process(owner) => owner.cgroup.as_deref()?,
            Holder::Kernel => return Some(()),
            Holder::Unknown => match owners.opened_in(inode)? {
                // The root is where the unified tree says nothing, and process 1 opens connections for nobody that is known.
                ("/", _) | (INIT, true) => return None,
                (path, outbound) => {
                    self.is_handed_on |= !outbound;
                    path
                }
            },
        };
        let sum = self.peers.entry(row_key(path)).or_default();
        *sum = sum.saturating_add(peers);
        Some(())
    }

    /// Peers of whoever runs in the cgroup of a row; `None` where somebody may have been handed one.
    #[must_use]
    pub fn peers_of(&self, key: &str) -> Option<u32> {
        let may_be_handed = key.starts_with(SESSIONS) || key.split('/').any(|part| part.ends_with(SERVICE));
        (!(self.is_handed_on && may_be_handed)).then(|| self.peers.get(key).copied().unwrap_or(0))
    }
}

/// Where process 1 runs.
const INIT: &str = "/init.scope";
const SESSIONS: &str = "/user.slice/";
const SERVICE: &str = ".service";

impl Peers {
    /// The groups. `listeners` are the inodes of what listens at a TCP port.
    pub(super) fn report(
        &mut self,
        connections: &Connections,
        listeners: &dyn Fn(u16) -> Vec<u64>,
        owners: &Owners,
    ) -> wire::Peers {
        let mut groups: BTreeMap<Group, Count> = BTreeMap::new();
        let mut add = |spot: Spot, held: Held, count: Count| {
            let Held::By { command, class } = held else { return };
            groups.entry(Group { spot, command, class: class.into() }).or_default().add(count);
        };
        for (spot, singles) in &connections.single {
            for (inode, count) in singles {
                add(*spot, Held::of(&[*inode], owners), *count);
            }
        }
        for (spot, count) in &connections.beyond {
            let is_inbound = spot.protocol == wire::Protocol::Tcp && !spot.outbound;
            let inodes = if is_inbound { listeners(spot.port) } else { Vec::new() };
            add(*spot, Held::of(&inodes, owners), *count);
        }
        self.0.retain(|group, _| groups.contains_key(group));
        for (group, count) in &mut groups {
            count.last_exchange_unix_ms = count.last_exchange_unix_ms.max(self.0.get(group).copied());
            if let Some(at) = count.last_exchange_unix_ms {
                self.0.insert(group.clone(), at);
            }
        }
        let mut sorted: Vec<_> = groups.into_iter().collect();
        let housekeeping = i32::from(wire::Class::Housekeeping);
        sorted.sort_by_key(|(group, count)| {
            (group.class == housekeeping, Reverse((count.last_exchange_unix_ms, count.peers)), group.spot)
        });
        let beyond = sorted.len().saturating_sub(MAX_PEER_GROUPS);
        sorted.truncate(MAX_PEER_GROUPS);
        let groups = sorted.into_iter().map(|(group, count)| wire::PeerGroup {
            protocol: group.spot.protocol.into(),
            port: group.spot.port.into(),
            outbound: group.spot.outbound,
            command: group.command,
            class: group.class,
            peers: count.peers,
            last_exchange_unix_ms: count.last_exchange_unix_ms,
        });
        wire::Peers { groups: groups.collect(), groups_not_listed: u32::try_from(beyond).unwrap_or(u32::MAX) }
    }
}

/// Who holds a port, in the words of the wire.
enum Held {
    By {
        command: String,
        class: wire::Class,
    },
    /// The agent itself.
    Own,
}

impl Held {
    /// Several programs may share a port; if one of them does somebody's work, the port does.
    fn of(inodes: &[u64], owners: &Owners) -> Self {
        let holders: Vec<&Holder> = inodes.iter().map(|inode| owners.of(*inode)).collect();
        let is_known = !holders.is_empty() && holders.iter().all(|holder| **holder != Holder::Unknown);
        let owner = foremost(holders.iter().filter_map(|holder| holder.owner()));
        let command = owner.map(|owner| owner.command.clone()).unwrap_or_default();
        match owner {
            Some(owner) if owner.class == Class::Own => Self::Own,
            Some(owner) if is_known || owner.class == Class::Workload => {
                Self::By { command, class: owner.class.to_wire() }
            }
            None if is_known => Self::By { command, class: wire::Class::Kernel },
            _ => Self::By { command, class: wire::Class::Unspecified },
        }
    }
}

/// Of several owners, one that does somebody's work.
pub(super) fn foremost<'a>(owners: impl Iterator<Item = &'a Owner>) -> Option<&'a Owner> {
    owners.min_by_key(|owner| owner.class != Class::Workload)
}

/// Whether these listeners are held by who serves their connections: not if process 1 keeps one of them for a service, and not while it is
/// unknown who holds them.
pub(super) fn serve_themselves(listeners: &[u64], owners: &Owners) -> bool {
    listeners.iter().all(|inode| match owners.of(*inode) {
        Holder::Process(owner) => owner.pid != 1,
        Holder::Kernel => true,
        Holder::Unknown => false,
    })
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
