//! With whom this host exchanges data, and whether every network device is counted, as the real agent says it: held against real
//! connections to other network namespaces, a tunnel of the kernel's own, and a network card that is moved away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    microvm::{Guest, MicroVm},
    namespace::{Neighbour, Tunnel},
    port,
    process::Running,
    wait,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// A kernel's ages of data are told in ticks, of 10 ms at most, and the sample takes a moment.
const PRECISION_MS: i64 = 50;
/// Says its port, then `accepted` for each connection, and sends back all that it gets.
const ECHO: &str = "import socket, threading
server = socket.create_server(('0.0.0.0', 0))
print('port', server.getsockname()[1], flush=True)
def serve(connection):
    print('accepted', flush=True)
    while data := connection.recv(100):
        connection.sendall(data)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()";

/// An agent at work on heartbeats that end when the test says so.
struct Measuring(Running);

impl Measuring {
    async fn start(folder: &Path, settings: &str) -> Self {
        // Each has a log of its own: in that of the one before it would seem to have begun already.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let name = format!("once-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let settings = format!("identity = \"host\"\nlog = \"info\"\n{settings}");
        let agent = Agent::prepare(folder, &settings, &[]);
        let mut once = Running::start(&name, agent.command().args(["once", "--interval", "1h"]), folder);
        let _ = once.line_with("measuring from here on", TIMEOUT).await;
        let status = format!("/proc/{}/status", once.pid().as_raw_nonzero());
        // It catches SIGTERM (15) a moment later.
        wait::until("the agent to take signals", TIMEOUT, || {
            let text = fs::read_to_string(&status).unwrap();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
            async move { (u64::from_str_radix(&caught, 16).unwrap() & (1 << 14) != 0).then_some(()) }
        })
        .await;
        Self(once)
    }

    async fn heartbeat(mut self) -> Value {
        let status = self.0.terminate(TIMEOUT).await;
        let output = self.0.output();
        assert!(status.success(), "{status}: {output}");
        let json = &output[output.find("\n{\n").unwrap_or_else(|| panic!("no heartbeat: {output}"))..];
        serde_json::Deserializer::from_str(json).into_iter().next().unwrap().unwrap()
    }
}

fn capability<'a>(heartbeat: &'a Value, name: &str) -> (&'a str, &'a str) {
    let all = heartbeat["coverage"]["capabilities"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no capability {name}"));
    (one["status"].as_str().unwrap(), one["reason"].as_str().unwrap())
}

fn groups<'a>(heartbeat: &'a Value, protocol: &str, port: u16, outbound: bool) -> Vec<&'a Value> {
    assert_eq!(capability(heartbeat, "peers"), ("CAPABILITY_STATUS_OK", ""));
    let groups = heartbeat["peers"]["groups"].as_array().unwrap();
    let wanted = |group: &&Value| {
        group["port"] == port && group["outbound"] == outbound && group["protocol"] == format!("PROTOCOL_{protocol}")
    };
    groups.iter().filter(wanted).collect()
}

fn group<'a>(heartbeat: &'a Value, protocol: &str, port: u16, outbound: bool) -> &'a Value {
    let found = groups(heartbeat, protocol, port, outbound);
    assert_eq!(found.len(), 1, "{protocol} {port} {outbound}: {}", heartbeat["peers"]);
    found[0]
}

fn now_unix_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn own_name() -> Value {
    fs::read_to_string("/proc/self/comm").unwrap().trim().into()
}

#[track_caller]
fn assert_exchanged(group: &Value, from_unix_ms: i64, to_unix_ms: i64) {
    let at = group["last_exchange_unix_ms"].as_i64().unwrap_or_else(|| panic!("{group}"));
    let span = from_unix_ms - PRECISION_MS..=to_unix_ms + PRECISION_MS;
    assert!(span.contains(&at), "{at} is not in {span:?}: {group}");
}

/// A server in a neighbour's network namespace.
async fn echo(neighbour: &Neighbour, name: &str, folder: &Path) -> (Running, u16) {
    let python = binaries::python("python");
    let mut server = neighbour.run(&[python.to_str().unwrap(), "-c", ECHO], name, folder);
    let line = server.line_with("port ", TIMEOUT).await;
    let port = line.trim().strip_prefix("port ").unwrap().parse().unwrap();
    (server, port)
}

/// Bytes that were sent from this TCP port and wait for the other side's word.
fn unacknowledged(port: u16) -> u64 {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let own = format!(":{port:04X}");
    let queue = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_own = fields.get(1)?.ends_with(&own) && *fields.get(3)? == "01";
        is_own.then(|| u64::from_str_radix(fields[4].split(':').next().unwrap(), 16).unwrap())
    };
    table.lines().filter_map(queue).sum()
}

fn exchange(connection: &mut TcpStream) {
    connection.set_read_timeout(Some(TIMEOUT)).unwrap();
    connection.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
}

#[tokio::test]
async fn who_exchanges_data_is_told_in_both_directions_with_program_port_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(0);
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let (_echo, echo_port) = echo(&neighbour, "echo", folder.path()).await;

    // Older than the agent: one that carried data, one that did not, and those of this host with itself, which are nobody's.
    let _peer = neighbour.call(port, "peer", folder.path());
    let (mut served, _) = server.accept().unwrap();
    let mut outbound = TcpStream::connect((neighbour.address(), echo_port)).unwrap();
    let _itself = (TcpStream::connect(("127.0.0.1", port)).unwrap(), server.accept().unwrap());
    let exchanged_from = now_unix_ms();
    exchange(&mut outbound);
    let exchanged_to = now_unix_ms();

    let agent = Measuring::start(folder.path(), "").await;
    let quiet = agent.heartbeat().await;
    let inbound = group(&quiet, "TCP", port, false);
    assert_eq!(
        *inbound,
        json!({
            "protocol": "PROTOCOL_TCP", "port": port, "outbound": false, "command": own_name(), "class": "CLASS_WORKLOAD",
            "peers": 1, "last_exchange_unix_ms": null,
        }),
        "a connection without data"
    );
    let found = group(&quiet, "TCP", echo_port, true);
    assert_eq!(
        (&found["peers"], &found["command"], &found["class"]),
        (&json!(1), &own_name(), &json!("CLASS_WORKLOAD"))
    );
    assert_exchanged(found, exchanged_from, exchanged_to);

    // Data from this host, which the neighbour's kernel acknowledges and nobody answers.
    let agent = Measuring::start(folder.path(), "").await;
    let sent_from = now_unix_ms();
    served.write_all(b"x").unwrap();
    wait::until("the neighbour to acknowledge it", TIMEOUT, || {
        let is_acknowledged = unacknowledged(port) == 0;
        async move { is_acknowledged.then_some(()) }
    })
    .await;
    let spoken = agent.heartbeat().await;
    assert_exchanged(group(&spoken, "TCP", port, false), sent_from, now_unix_ms());
    assert_exchanged(group(&spoken, "TCP", echo_port, true), exchanged_from, exchanged_to);
    assert_eq!(capability(&spoken, "interfaces"), ("CAPABILITY_STATUS_OK", ""));
}

#[tokio::test]
async fn a_connection_made_after_the_rights_are_gone_is_nobodys_unless_the_right_to_see_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(1);
    let (_echo, port) = echo(&neighbour, "echo", folder.path()).await;
    for (settings, class, command, status) in [
        ("", "CLASS_UNSPECIFIED", json!(""), "CAPABILITY_STATUS_DENIED"),
        ("keep_ptrace = true\n", "CLASS_WORKLOAD", own_name(), "CAPABILITY_STATUS_OK"),
    ] {
        let agent = Measuring::start(folder.path(), settings).await;
        let from = now_unix_ms();
        let mut late = TcpStream::connect((neighbour.address(), port)).unwrap();
        exchange(&mut late);
        let heartbeat = agent.heartbeat().await;
        let found = group(&heartbeat, "TCP", port, true);
        assert_eq!((&found["class"], &found["command"]), (&json!(class), &command), "{settings}");
        assert_eq!(capability(&heartbeat, "peer_owners").0, status, "{settings}");
        assert_exchanged(found, from, now_unix_ms());
    }
}

#[tokio::test]
async fn a_container_that_exchanges_data_is_told_from_one_that_only_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (container, outside) = (Neighbour::new(2), Neighbour::new(3));
    let address = container.wire_to(&outside);
    let (mut server, port) = echo(&container, "server", folder.path()).await;
    let python = binaries::python("python");
    // Sends a byte whenever it is told to by a connection to itself, which is nobody from outside.
    let script = format!(
        "import socket
out = socket.create_connection(('{address}', {port}))
control = socket.create_server(('127.0.0.1', 0))
print('control', control.getsockname()[1], flush=True)
while True:
    control.accept()
    out.sendall(b'x')
    out.recv(1)
    print('exchanged', flush=True)"
    );
    let mut client = outside.run(&[python.to_str().unwrap(), "-c", &script], "client", folder.path());
    let control = client.line_with("control ", TIMEOUT).await;
    let control: u16 = control.trim().strip_prefix("control ").unwrap().parse().unwrap();
    server.line_with("accepted", TIMEOUT).await;

    let waiting = Measuring::start(folder.path(), "").await.heartbeat().await;
    for outbound in [false, true] {
        let found = group(&waiting, "TCP", port, outbound);
        assert_eq!((&found["peers"], &found["last_exchange_unix_ms"]), (&json!(1), &Value::Null), "{found}");
        assert_eq!(found["class"], "CLASS_WORKLOAD");
    }
    let agent = Measuring::start(folder.path(), "").await;
    let from = now_unix_ms();
    let nudge = format!("exec 3<>/dev/tcp/127.0.0.1/{control}");
    let _nudge = outside.run(&["bash", "-c", &nudge], "nudge", folder.path());
    client.line_with("exchanged", TIMEOUT).await;
    let exchanged = agent.heartbeat().await;
    for outbound in [false, true] {
        assert_exchanged(group(&exchanged, "TCP", port, outbound), from, now_unix_ms());
    }
}

#[tokio::test]
async fn udp_ports_are_listed_and_one_that_the_kernel_holds_is_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(4);
    let tunnel_port = port::free();
    let _tunnel = Tunnel::at(tunnel_port);
    let bound = UdpSocket::bind("0.0.0.0:0").unwrap();
    let bound_port = bound.local_addr().unwrap().port();
    let private = UdpSocket::bind("127.0.0.1:0").unwrap();
    let fixed = UdpSocket::bind((neighbour.this_host(), 0)).unwrap();
    fixed.connect((neighbour.address(), 5_353)).unwrap();

    let agent = Measuring::start(folder.path(), "").await;
    let from = now_unix_ms();
    // What arrives and is not read waits in the socket's queue.
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"hello", ("127.0.0.1", bound_port)).unwrap();
    let heartbeat = agent.heartbeat().await;
    let found = group(&heartbeat, "UDP", bound_port, false);
    assert_eq!(
        (&found["peers"], &found["command"], &found["class"]),
        (&json!(0), &own_name(), &json!("CLASS_WORKLOAD"))
    );
    assert_exchanged(found, from, now_unix_ms());
    let found = group(&heartbeat, "UDP", 5_353, true);
    assert_eq!((&found["peers"], &found["class"]), (&json!(1), &json!("CLASS_WORKLOAD")));
    assert_eq!(found["last_exchange_unix_ms"], Value::Null);
    let kernels: Vec<_> = groups(&heartbeat, "UDP", tunnel_port, false);
    assert_eq!(kernels.len(), 1, "{}", heartbeat["peers"]);
    // A process that hides what it has open could be the holder.
    let shows_all = fs::read_dir("/proc/1/fd").unwrap().all(|link| fs::read_link(link.unwrap().path()).is_ok());
    let class = if shows_all { "CLASS_KERNEL" } else { "CLASS_UNSPECIFIED" };
    assert_eq!((&kernels[0]["class"], &kernels[0]["command"]), (&json!(class), &json!("")));
    assert!(groups(&heartbeat, "UDP", private.local_addr().unwrap().port(), false).is_empty(), "loopback is nobody");
}

#[tokio::test]
async fn an_agent_outside_the_hosts_network_says_that_it_does_not_see_the_hosts_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(5);
    let agent = Agent::prepare(folder.path(), "identity = \"host\"\n", &[]);
    let mut command = agent.command();
    command.args(["doctor", "--output", "json"]);
    let output = neighbour.command(&command).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["capabilities"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "interfaces").unwrap();
    assert_eq!(row["status"], "denied");
    assert!(row["reason"].as_str().unwrap().contains("a network namespace of its own"), "{row}");
    assert!(row["remedy"].as_str().unwrap().contains("hostNetwork: true"), "{row}");
}

#[tokio::test]
async fn a_network_card_that_is_moved_into_a_container_is_missed_by_name() {
    const LIMIT: Duration = Duration::from_secs(300);
    let folder = tempfile::tempdir().unwrap();
    let script = "export NODE_AGENT_IDENTITY=host NODE_AGENT_STATE_DIR=/tmp/state
        ask() { node-agent doctor --output json >/tmp/report 2>/tmp/log || [ $? = 3 ] || exit 1; give $1 /tmp/report; }
        ls -d /sys/bus/virtio/devices/*/net/eth0 >/tmp/device && give device /tmp/device
        ask here
        unshare -n sleep 1000 &
        until [ \"$(readlink /proc/$!/ns/net)\" != \"$(readlink /proc/1/ns/net)\" ]; do :; done
        ip link set eth0 netns $! || exit 1
        ask moved";
    let guest = Guest::running(script).with_program("node-agent", &binaries::node_agent());
    let mut vm = MicroVm::boot(&folder.path().join("guest"), &guest);
    vm.end(LIMIT).await;
    let row = |name: &str| {
        let report: Value = serde_json::from_str(&vm.given(name).unwrap()).unwrap();
        let rows = report["capabilities"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == "interfaces").unwrap().clone()
    };
    assert_eq!(row("here")["status"], "ok", "{}", row("here"));
    let device = vm.given("device").unwrap();
    let device = device.trim().rsplit('/').nth(2).unwrap();
    let moved = row("moved");
    assert_eq!(moved["status"], "unsupported");
    let reason = format!(
        "the network device {device} (driver virtio_net) has its interface in another network namespace: its traffic is not counted"
    );
    assert_eq!(moved["reason"], reason);
}

#[tokio::test]
async fn the_port_of_a_wireguard_tunnel_is_the_kernels() {
    const LIMIT: Duration = Duration::from_secs(300);
    let folder = tempfile::tempdir().unwrap();
    let script = "export NODE_AGENT_IDENTITY=host NODE_AGENT_STATE_DIR=/tmp/state
        modprobe wireguard || exit 1
        ip link add wg0 type wireguard && ip link set wg0 up || exit 1
        cat /proc/net/udp >/tmp/udp && give udp /tmp/udp
        node-agent once --interval 1s >/tmp/heartbeat || exit 1
        give heartbeat /tmp/heartbeat";
    let guest = Guest::running(script).with_program("node-agent", &binaries::node_agent()).with_module("wireguard");
    let mut vm = MicroVm::boot(&folder.path().join("guest"), &guest);
    vm.end(LIMIT).await;
    // Nothing else of this guest speaks UDP.
    let udp = vm.given("udp").unwrap();
    let address = udp.lines().nth(1).unwrap().split_ascii_whitespace().nth(1).unwrap();
    let port = u16::from_str_radix(address.split_once(':').unwrap().1, 16).unwrap();
    let heartbeat: Value = serde_json::from_str(&vm.given("heartbeat").unwrap()).unwrap();
    let found = group(&heartbeat, "UDP", port, false);
    assert_eq!((&found["class"], &found["command"], &found["peers"]), (&json!("CLASS_KERNEL"), &json!(""), &json!(0)));
}
