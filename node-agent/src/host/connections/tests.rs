#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::procfs::process::Identity;
use std::net::{TcpListener, TcpStream};

fn classify(_: u32, _: &Identity) -> Class {
    Class::Workload
}

fn port(outside_peers: u32, has_new_peer: bool) -> Port {
    Port { inodes: vec![0], outside_peers, has_new_peer }
}

#[test]
fn those_with_peers_come_first_and_the_rest_is_counted() {
    let mut sampler = ConnectionSampler::default();
    let mut ports: BTreeMap<u16, Port> = (1_000..1_100).map(|number| (number, port(0, false))).collect();
    ports.insert(9_000, port(3, true));
    ports.insert(9_001, port(3, false));
    let report = sampler.report(70, &ports);
    assert_eq!(report.listeners.len(), MAX_LISTENERS);
    assert_eq!(report.listeners_not_listed, 102 - 64);
    let first: Vec<_> = report.listeners.iter().take(3).map(|l| (l.port, l.last_new_peer_unix_ms)).collect();
    assert_eq!(first, [(9_000, Some(70)), (9_001, None), (1_000, None)]);
}

#[test]
fn the_time_of_the_last_new_peer_stays_while_the_port_does() {
    let mut sampler = ConnectionSampler::default();
    let last =
        |report: wire::InboundPeers| report.listeners.first().and_then(|listener| listener.last_new_peer_unix_ms);
    assert_eq!(last(sampler.report(70, &BTreeMap::from([(80, port(1, true))]))), Some(70));
    assert_eq!(last(sampler.report(80, &BTreeMap::from([(80, port(0, false))]))), Some(70));
    sampler.report(90, &BTreeMap::new());
    assert_eq!(last(sampler.report(95, &BTreeMap::from([(80, port(1, false))]))), None);
}

#[test]
fn a_costly_sample_is_followed_by_a_pause_that_repeats_it() {
    let of_budget = |ppm, ms| pause_after(Duration::from_millis(ms), ConnectionSampler::within(ppm).one_part_in);
    assert_eq!(of_budget(5_000, 20), None);
    assert_eq!(of_budget(5_000, 120), Some(Duration::from_secs(60)));
    assert_eq!(of_budget(10_000, 120), Some(Duration::from_secs(30)));
    assert_eq!(of_budget(1_000_000, 120), Some(Duration::from_millis(240)));
    assert!(of_budget(1, 120) > Some(Duration::from_secs(86_400)));
    let mut sampler = ConnectionSampler::default();
    let seen = |has_new_peer| Sample { ports: BTreeMap::from([(1, port(7, has_new_peer))]), ..Sample::default() };
    let mut sample = |until: Instant, sampled| {
        sampler.repeated = Some((until, sampled));
        sampler.sample_or_repeat(1, &mut classify).map_err(|error| error.to_string())
    };
    let later = Instant::now() + Duration::from_secs(60);
    assert_eq!(sample(later, Ok(seen(true))), Ok(seen(false)), "new only once");
    assert_eq!(sample(later, Err("too many".into())), Err("too many".into()));
    assert_ne!(sample(Instant::now(), Ok(seen(true))).unwrap().ports.get(&1), Some(&port(7, false)));
    sampler.repeated = Some((later, Err("too many".into())));
    sampler.forget_cost();
    assert!(sampler.sample_or_repeat(1, &mut classify).is_ok(), "what the baseline cost delays no heartbeat's sample");
}

/// This host's own connections, with an address book that makes loopback a place outside.
#[test]
fn a_connection_is_new_once_and_only_after_the_first_sample() {
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let number = server.local_addr().unwrap().port();
    // 127.0.0.1 is loopback; the host's other addresses are outside if the address book is empty.
    let own = sockets::own_addresses().unwrap();
    let Some(outside) = own.iter().find(|ip| ip.is_ipv4() && !ip.is_loopback()).copied() else {
        panic!("this test needs an address besides 127.0.0.1: {own:?}")
    };
    let connect = || {
        let client = TcpStream::connect((outside, number)).unwrap();
        (client, server.accept().unwrap())
    };
    let nobody = HashSet::new();
    let mut sampler = ConnectionSampler::default();
    let _first = connect();
    assert_eq!(sampler.sample(&nobody, 0).unwrap().ports[&number].outside_peers, 1);
    let mut sample = |own: &HashSet<IpAddr>| {
        let ports = sampler.sample(own, 0).unwrap().ports;
        (ports[&number].outside_peers, ports[&number].has_new_peer)
    };
    assert_eq!(sample(&nobody), (1, false), "who was here before the agent is not new");
    let second = connect();
    assert_eq!(sample(&nobody), (2, true));
    assert_eq!(sample(&nobody), (2, false));
    assert_eq!(sample(&own), (0, false), "an own address is not outside");
    drop(second);
    let _local = (TcpStream::connect(("127.0.0.1", number)).unwrap(), server.accept().unwrap());
    assert_eq!(sample(&nobody), (1, true), "forgotten while its address was not outside");
}

#[test]
fn a_port_is_named_by_its_program_and_the_agents_own_is_left_out() {
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let private = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = |server: &TcpListener| u32::from(server.local_addr().unwrap().port());
    let listed = |sampler: &mut ConnectionSampler, classify: &mut Whose<'_>| {
        let report = sampler.read(1, classify, &mut Capabilities::default()).unwrap().inbound_peers;
        let mut found = report.listeners.into_iter();
        assert!(!found.clone().any(|listener| listener.port == number(&private)), "loopback calls from nowhere");
        found.find(|listener| listener.port == number(&server))
    };
    let mut own = |pid: u32, _: &Identity| if pid == std::process::id() { Class::Own } else { Class::Workload };
    assert_eq!(listed(&mut ConnectionSampler::default(), &mut own), None);
    let found = listed(&mut ConnectionSampler::default(), &mut classify).unwrap();
    assert_eq!(found.class, i32::from(wire::Class::Workload));
    assert!(!found.command.is_empty());
}
