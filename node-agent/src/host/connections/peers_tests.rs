#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    host::{
        connections::owners::Opened,
        whose::{Attribute, InCgroup, Role},
    },
    procfs::process::Identity,
};
use std::{collections::HashSet, fs, os::unix::fs::symlink};

const TCP: wire::Protocol = wire::Protocol::Tcp;
const UDP: wire::Protocol = wire::Protocol::Udp;

/// Processes by number, name and the sockets that each has; whoever is called `housekeeping`, `own` or anything else is that.
fn owners(processes: &[(u32, &str, &[u64])], wanted: &[u64]) -> Owners {
    let proc = tempfile::tempdir().unwrap();
    for (pid, name, inodes) in processes {
        let dir = proc.path().join(pid.to_string());
        fs::create_dir_all(dir.join("fd")).unwrap();
        fs::write(dir.join("stat"), format!("{pid} ({name}) S 1 1 1 0 -1\n")).unwrap();
        for (fd, inode) in inodes.iter().enumerate() {
            symlink(format!("socket:[{inode}]"), dir.join("fd").join(fd.to_string())).unwrap();
        }
    }
    let mut owners = Owners::default();
    owners.refresh(proc.path(), &HashSet::from_iter(wanted.iter().copied()), &mut |_: u32, identity: &Identity| {
        match identity.name.as_str() {
            "systemd" | "housekeeping" => Class::Housekeeping,
            "own" => Class::Own,
            _ => Class::Workload,
        }
    });
    owners
}

fn at(peers: u32, last_exchange_unix_ms: Option<i64>) -> Count {
    Count { peers, last_exchange_unix_ms }
}

/// Direction, port, command, class, peers and last exchange of a group.
type Told<'a> = (bool, u32, &'a str, wire::Class, u32, Option<i64>);

fn told(peers: &wire::Peers) -> Vec<Told<'_>> {
    let one = |group: &'_ wire::PeerGroup| (group.class(), group.peers, group.last_exchange_unix_ms);
    let groups = peers.groups.iter().map(|group| (group, one(group)));
    groups
        .map(|(group, (class, count, at))| (group.outbound, group.port, group.command.as_str(), class, count, at))
        .collect()
}

#[test]
fn who_connected_is_told_by_who_listens_and_else_by_the_ports() {
    for (port, peer_port, listens, expected) in [
        (5_432, 40_000, true, (5_432, false)),
        (40_000, 41_000, true, (40_000, false)),
        (40_000, 443, false, (443, true)),
        (9_000, 51_234, false, (9_000, false)),
        (700, 2_049, false, (2_049, true)),
    ] {
        let spot = Spot::of(TCP, port, peer_port, listens);
        assert_eq!((spot.port, spot.outbound), expected, "{port} {peer_port} {listens}");
    }
}

#[test]
fn connections_are_grouped_by_program_and_the_kernels_are_named_as_such() {
    let processes: [(u32, &str, &[u64]); 4] =
        [(1, "systemd", &[10]), (20, "server", &[11]), (30, "worker", &[50, 51]), (40, "own", &[52])];
    let owners = owners(&processes, &[10, 11, 12, 50, 51, 52, 53, 54, 60]);
    let listeners = |port| match port {
        80 => vec![11],
        2_049 => vec![12],
        _ => Vec::new(),
    };
    let mut connections = Connections::default();
    let inbound = |port| Spot { protocol: TCP, port, outbound: false };
    let outbound = |port| Spot { protocol: TCP, port, outbound: true };
    let serves = |port| serve_themselves(&listeners(port), &owners);
    assert!(serves(80) && serves(2_049) && !serve_themselves(&[10], &owners) && !serve_themselves(&[99], &owners));
    for _ in 0..3 {
        connections.add(inbound(80), 70, true, at(1, Some(5)));
    }
    connections.add(inbound(80), 0, false, at(1, Some(6)));
    connections.add(inbound(2_049), 53, true, at(1, Some(9)));
    connections.add(outbound(5_672), 50, false, at(1, Some(7)));
    connections.add(outbound(5_672), 51, false, at(1, None));
    connections.add(outbound(443), 52, false, at(1, Some(100)));
    connections.add(outbound(2_049), 54, false, at(1, Some(3)));
    connections.add(Spot { protocol: UDP, port: 51_820, outbound: false }, 60, false, at(0, None));
    connections.add(outbound(9), 99, false, at(1, Some(1)));
    assert_eq!(connections.inodes().count(), 6);
    let report = Peers::default().report(&connections, &listeners, &owners);
    assert_eq!(report.groups_not_listed, 0);
    assert_eq!(
        told(&report),
        [
            (false, 2_049, "", wire::Class::Kernel, 1, Some(9)),
            (true, 5_672, "worker", wire::Class::Workload, 2, Some(7)),
            (false, 80, "server", wire::Class::Workload, 4, Some(6)),
            (true, 2_049, "", wire::Class::Kernel, 1, Some(3)),
            (true, 9, "", wire::Class::Unspecified, 1, Some(1)),
            (false, 51_820, "", wire::Class::Kernel, 0, None),
        ]
    );
}

#[test]
fn the_last_exchange_stays_while_the_group_does() {
    let owners = owners(&[(20, "worker", &[50, 51])], &[50, 51]);
    let mut peers = Peers::default();
    let mut report = |connections: &[(u16, u64, Option<i64>)]| {
        let mut all = Connections::default();
        for (port, inode, last) in connections {
            all.add(Spot { protocol: UDP, port: *port, outbound: true }, *inode, false, at(1, *last));
        }
        let report = peers.report(&all, &|_| Vec::new(), &owners);
        report.groups.first().and_then(|group| group.last_exchange_unix_ms)
    };
    assert_eq!(report(&[(53, 50, Some(70))]), Some(70));
    assert_eq!(report(&[(53, 51, None)]), Some(70), "another socket of the same group");
    assert_eq!(report(&[]), None);
    assert_eq!(report(&[(53, 50, None)]), None, "the group was gone in between");
}

#[test]
fn those_in_use_come_first_and_housekeeping_last() {
    let owners = owners(&[(20, "worker", &[50]), (30, "housekeeping", &[60])], &[50, 60]);
    let mut connections = Connections::default();
    connections.add(Spot { protocol: TCP, port: 9, outbound: true }, 60, false, at(1, Some(900)));
    for port in 100..200_u16 {
        connections.add(Spot { protocol: TCP, port, outbound: true }, 50, false, at(1, Some(port.into())));
    }
    let report = Peers::default().report(&connections, &|_| Vec::new(), &owners);
    let ports: Vec<u32> = report.groups.iter().map(|group| group.port).collect();
    assert_eq!(ports, (136..200).rev().collect::<Vec<u32>>());
    assert_eq!(report.groups_not_listed, 37);
}

#[test]
fn no_more_than_a_bounded_number_of_sockets_is_asked_for() {
    let mut connections = Connections::default();
    for inode in 1..=100_u64 {
        for port in 1..=100 {
            connections.add(Spot { protocol: TCP, port, outbound: true }, inode, false, at(1, None));
        }
    }
    assert_eq!(connections.inodes().count(), MAX_ASKED);
    let report = Peers::default().report(&connections, &|_| Vec::new(), &owners(&[(1, "x", &[])], &[]));
    let total: u32 = report.groups.iter().map(|group| group.peers).sum();
    assert_eq!((report.groups.len(), total), (64, 64 * 100));
    assert!(report.groups.iter().all(|group| group.class() == wire::Class::Unspecified));
}

/// Cgroups by their ids, in which nobody is known to run alone.
struct Tree(&'static [(u64, &'static str)]);

impl Attribute for Tree {
    fn of_process(&mut self, _: u32, _: &Identity) -> Class {
        Class::Workload
    }

    fn of_cgroup(&mut self, _: u64, _: Role) -> Option<InCgroup> {
        None
    }

    fn path_of_cgroup(&mut self, id: u64) -> Option<String> {
        self.0.iter().find(|(one, _)| *one == id).map(|(_, path)| (*path).to_owned())
    }
}

fn role(outbound: bool) -> Role {
    if outbound { Role::Connects } else { Role::Accepted }
}

#[test]
fn a_connection_is_held_where_it_was_opened_unless_it_may_have_been_handed_on() {
    const JOB: &str = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0";
    const SESSION: &str = "/user.slice/user-0.slice/session-1.scope";
    const SERVER: &str = "/system.slice/server.service";
    let mut tree = Tree(&[(1, "/"), (2, "/init.scope"), (3, "/system.slice/ssh.service"), (4, JOB), (5, SERVER)]);
    let mut holding = |opened: &[(u64, u64, bool)]| {
        let mut owners = Owners::default();
        let inferred =
            opened.iter().map(|(inode, cgroup, outbound)| (*inode, Opened { cgroup: *cgroup, role: role(*outbound) }));
        owners.infer(inferred, &mut tree);
        let mut connections = Connections::default();
        for (inode, _, outbound) in opened {
            connections.add(Spot { protocol: TCP, port: 9, outbound: *outbound }, *inode, false, at(1, None));
        }
        Holding::of(&connections, &|_| Vec::new(), &owners)
    };
    let told =
        |holding: Option<Holding>| holding.map(|holding| [JOB, SESSION, SERVER].map(|key| holding.peers_of(key)));
    assert_eq!(told(holding(&[])), Some([Some(0); 3]));
    assert_eq!(told(holding(&[(70, 4, true), (71, 4, true), (72, 5, true)])), Some([Some(2), Some(0), Some(1)]));
    // What ssh accepted a session may hold, and what process 1 did any service; no job.
    for accepts in [2, 3] {
        assert_eq!(told(holding(&[(70, accepts, false)])), Some([Some(0), None, None]), "{accepts}");
    }
    assert_eq!(told(holding(&[(70, 4, false)])), Some([Some(1), None, None]));
    for anywhere in [(70, 1, true), (70, 1, false), (70, 2, true), (70, 9, true)] {
        assert_eq!(told(holding(&[anywhere])), None, "{anywhere:?}");
    }
    // Of those that a listener holds its own place counts; where nobody listens they may be held anywhere.
    let mut connections = Connections::default();
    connections.add(Spot { protocol: TCP, port: 80, outbound: false }, 0, true, at(3, None));
    let mut owners = Owners::default();
    owners.infer([(60, Opened { cgroup: 4, role: Role::Accepted })].into_iter(), &mut tree);
    let of = |listeners: Vec<u64>| Holding::of(&connections, &|_| listeners.clone(), &owners);
    assert_eq!(of(vec![60]).and_then(|holding| holding.peers_of(JOB)), Some(3));
    assert_eq!((of(Vec::new()), of(vec![61])), (None, None));
}
