//! What the real agent says about interactive sessions, inbound peers, pressure, disks and paging of this host, held against what was really done and
//! what `/proc` says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire::{CapabilityStatus, Class};
use lab::{agent::Agent, binaries, namespace::Neighbour, once::Once, wait};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    io::{self, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The heartbeat of an agent that measures for a moment.
async fn heartbeat() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::prepare(folder.path(), "identity = \"host\"\nlog = \"info\"\n", &[]);
    let output = agent.run(&["once", "--interval", "200ms"]).await;
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn capability<'a>(heartbeat: &'a Value, name: &str) -> (&'a str, &'a str) {
    let capabilities = heartbeat["coverage"]["capabilities"].as_array().unwrap();
    let capability = capabilities
        .iter()
        .find(|capability| capability["name"] == name)
        .unwrap_or_else(|| panic!("no capability {name}"));
    (capability["status"].as_str().unwrap(), capability["reason"].as_str().unwrap())
}

/// What processes show of what they have open: inodes of sockets, and whether all show it. A machine's first process may hide it even from root.
fn shown_sockets() -> (HashSet<String>, bool) {
    let (mut shown, mut do_all) = (HashSet::new(), true);
    // Who ended meanwhile, or what was closed, hides nothing.
    let mut see = |error: io::Error| do_all &= error.kind() != io::ErrorKind::PermissionDenied;
    for process in processes() {
        match fs::read_dir(process.join("fd")) {
            Ok(open) => {
                for descriptor in open.filter_map(Result::ok) {
                    match fs::read_link(descriptor.path()) {
                        Ok(target) => shown.extend(inode(&target)),
                        Err(error) => see(error),
                    }
                }
            }
            Err(error) => see(error),
        }
    }
    (shown, do_all)
}

fn inode(target: &Path) -> Option<String> {
    Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).map(|entry| entry.path())
}

/// TCP listeners at which calls from outside come in, in every network namespace: local address and inode, as the kernel writes them.
fn listeners() -> BTreeSet<(String, String)> {
    const LISTENING: &str = "0A";
    let namespaces: BTreeMap<_, _> =
        processes().filter_map(|process| Some((fs::read_link(process.join("ns/net")).ok()?, process))).collect();
    let mut listeners = BTreeSet::new();
    for file in namespaces.values().flat_map(|process| ["net/tcp", "net/tcp6"].map(|file| process.join(file))) {
        let Ok(table) = fs::read_to_string(file) else { continue };
        for line in table.lines().skip(1) {
            let columns: Vec<&str> = line.split_ascii_whitespace().collect();
            if columns[3] == LISTENING && !is_loopback(columns[1]) {
                listeners.insert((columns[1].to_owned(), columns[9].to_owned()));
            }
        }
    }
    listeners
}

/// Listeners whose holder is not seen while somebody hides what it has. Twice, for others on this host open and close theirs meanwhile.
fn hidden_listeners() -> BTreeSet<(String, String)> {
    let hidden = || {
        let (mut found, (shown, do_all)) = (listeners(), shown_sockets());
        found.retain(|(_, inode)| !do_all && !shown.contains(inode));
        found
    };
    &hidden() & &hidden()
}

/// An address of `/proc/net/tcp` or `tcp6`: words of 32 bits, each as this machine (little-endian) would print it.
fn is_loopback(address_and_port: &str) -> bool {
    let (address, _) = address_and_port.split_once(':').unwrap();
    let is_v4 = |address: &str| address.ends_with("7F");
    is_v4(address) && (address.len() == 8 || address.starts_with("0000000000000000FFFF0000"))
        || address == "00000000000000000000000001000000"
}

fn now_unix_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A session with a terminal of its own, made by script(1), in which `head -n 1` waits for a line.
struct Session {
    child: Child,
    keyboard: ChildStdin,
    terminal: PathBuf,
}

impl Session {
    async fn open(folder: &Path) -> Self {
        let shown = folder.join("shown");
        let mut child = Command::new(binaries::system("script"))
            .args(["-q", "-e", "-c", "tty; exec head -n 2", "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&shown).unwrap())
            .spawn()
            .unwrap();
        let keyboard = child.stdin.take().unwrap();
        let terminal = wait::until("the session's terminal", TIMEOUT, || {
            let text = fs::read_to_string(&shown).unwrap();
            let line = text.lines().next().filter(|_| text.contains('\n')).map(|line| PathBuf::from(line.trim()));
            async { line }
        })
        .await;
        Self { child, keyboard, terminal }
    }

    fn access_time_unix_ms(&self) -> i64 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(&self.terminal).unwrap().atime() * 1000
    }

    /// As if nobody had typed since then.
    fn age(&self, unix_ms: i64) {
        let last_access = Timespec { tv_sec: unix_ms / 1000, tv_nsec: 0 };
        let last_modification = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        utimensat(CWD, &self.terminal, &Timestamps { last_access, last_modification }, AtFlags::empty()).unwrap();
    }

    /// Types a line, and waits until the program in the session has read it.
    async fn type_a_line(&mut self) {
        let before = self.access_time_unix_ms();
        self.keyboard.write_all(b"hello\n").unwrap();
        wait::until("the line to be read", TIMEOUT, || {
            let read = (self.access_time_unix_ms() != before).then_some(());
            async move { read }
        })
        .await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_person_is_a_session_with_a_terminal_and_its_last_input() {
    let before = heartbeat().await;
    assert_eq!(capability(&before, "interactive_sessions"), ("CAPABILITY_STATUS_OK", ""));
    let sessions = |heartbeat: &Value| heartbeat["interactive_sessions"]["terminal_sessions"].as_u64().unwrap();
    let last_input = |heartbeat: &Value| heartbeat["interactive_sessions"]["last_input_unix_ms"].as_i64();

    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::open(folder.path()).await;
    let an_hour_ago = now_unix_ms() / 1000 * 1000 - 3_600_000;
    session.age(an_hour_ago);
    let silent = heartbeat().await;
    assert_eq!(sessions(&silent), sessions(&before) + 1);
    // Others may sit at this host, too.
    assert_eq!(last_input(&silent), last_input(&before).max(Some(an_hour_ago)));

    let typed_from = now_unix_ms();
    session.type_a_line().await;
    let typed = heartbeat().await;
    let at = last_input(&typed).unwrap();
    assert!((typed_from - 8_000..=now_unix_ms()).contains(&at), "typed from {typed_from} on, and seen at {at}");

    drop(session);
    let mut no_terminal =
        Command::new(binaries::system("setsid")).args(["sh", "-c", "read _"]).stdin(Stdio::piped()).spawn().unwrap();
    let without = heartbeat().await;
    drop(no_terminal.stdin.take());
    no_terminal.wait().unwrap();
    assert_eq!(sessions(&without), sessions(&before), "a session without a terminal is no person");
}

#[tokio::test]
async fn a_peer_from_another_machine_is_seen_with_port_program_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(0);
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let accepted = || server.accept().unwrap();
    let listener = |heartbeat: &Value| {
        let listeners = heartbeat["inbound_peers"]["listeners"].as_array().unwrap();
        listeners.iter().find(|listener| listener["port"] == port).unwrap().clone()
    };

    let _first = neighbour.call(port, "first", folder.path());
    let _first_served = accepted();
    // This host's own connections are none from outside, whichever of its addresses they use.
    let _loopback = (TcpStream::connect(("127.0.0.1", port)).unwrap(), accepted());
    let _own = (TcpStream::connect((neighbour.this_host(), port)).unwrap(), accepted());

    let agent = Once::measuring(folder.path(), "").await;
    let quiet = heartbeat().await;
    assert_eq!(listener(&quiet)["outside_peers"], 1);
    assert_eq!(listener(&quiet)["last_new_peer_unix_ms"], Value::Null, "who was here before the agent is not new");

    let called_at = now_unix_ms();
    let _second = neighbour.call(port, "second", folder.path());
    let _second_served = accepted();
    let called = agent.heartbeat().await.0;
    assert_eq!(capability(&called, "inbound_peers"), ("CAPABILITY_STATUS_OK", ""));
    let found = listener(&called);
    let hidden = hidden_listeners();
    let expected = if hidden.is_empty() { "CAPABILITY_STATUS_OK" } else { "CAPABILITY_STATUS_DENIED" };
    assert_eq!(capability(&called, "inbound_peer_owners").0, expected, "{hidden:?}; {}", called["inbound_peers"]);
    assert_eq!(found["outside_peers"], 2, "{found}");
    assert_eq!(found["class"], Class::Workload.as_str_name());
    assert_eq!(found["command"].as_str(), fs::read_to_string("/proc/self/comm").ok().as_deref().map(str::trim));
    let at = found["last_new_peer_unix_ms"].as_i64().unwrap();
    let end = called["interval"]["end_unix_ms"].as_i64().unwrap();
    assert!((called_at..=end).contains(&at), "called at {called_at}, seen at {at}, interval until {end}");
}

#[tokio::test]
async fn a_peer_of_a_container_is_seen_though_no_socket_of_the_host_says_so() {
    const SERVER: &str = "import socket
server = socket.create_server(('0.0.0.0', 0))
print('port', server.getsockname()[1], flush=True)
served, _ = server.accept()
print('accepted', flush=True)
served.recv(1)";
    let folder = tempfile::tempdir().unwrap();
    let (container, outside) = (Neighbour::new(1), Neighbour::new(2));
    let address = container.wire_to(&outside);
    let python = binaries::python("python");
    let mut server = container.run(&[python.to_str().unwrap(), "-c", SERVER], "server", folder.path());
    let line = server.line_with("port ", TIMEOUT).await;
    let port: u16 = line.trim().strip_prefix("port ").unwrap().parse().unwrap();

    let agent = Once::measuring(folder.path(), "").await;
    let called_at = now_unix_ms();
    let _peer = outside.call_at(address, port, "peer", folder.path());
    server.line_with("accepted", TIMEOUT).await;
    let called = agent.heartbeat().await.0;
    assert_eq!(capability(&called, "inbound_peers"), ("CAPABILITY_STATUS_OK", ""));
    let listeners = called["inbound_peers"]["listeners"].as_array().unwrap();
    let found = listeners.iter().find(|listener| listener["port"] == port).unwrap();
    assert_eq!((&found["outside_peers"], &found["class"]), (&1.into(), &Class::Workload.as_str_name().into()));
    let at = found["last_new_peer_unix_ms"].as_i64().unwrap();
    let end = called["interval"]["end_unix_ms"].as_i64().unwrap();
    assert!((called_at..=end).contains(&at), "called at {called_at}, interval until {end}: {found}");
}

/// The same counters, read by this test.
#[derive(Debug)]
struct Proc {
    context_switches: u64,
    major_faults: u64,
    disk: [u64; 4],
    stalled_on_io_us: Option<u64>,
}

impl Proc {
    fn read() -> Self {
        let number = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap();
            let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
            line.split(' ').nth(1).unwrap().parse().unwrap()
        };
        let mut disk = [0; 4];
        for folder in fs::read_dir("/sys/block").unwrap() {
            let folder = folder.unwrap().path();
            // What has a device of its own is a disk; the agent decides by name and by what a disk stands on.
            if folder.join("device").exists() {
                let stat = fs::read_to_string(folder.join("stat")).unwrap();
                let fields: Vec<u64> = stat.split_ascii_whitespace().map(|field| field.parse().unwrap()).collect();
                for (sum, (field, unit)) in disk.iter_mut().zip([(0, 1), (4, 1), (2, 512), (6, 512)]) {
                    *sum += fields[field] * unit;
                }
            }
        }
        let io = fs::read_to_string("/proc/pressure/io").ok();
        let some = io.as_deref().and_then(|text| text.lines().next()?.rsplit_once("total=")?.1.parse().ok());
        Self {
            context_switches: number("/proc/stat", "ctxt"),
            major_faults: number("/proc/vmstat", "pgmajfault"),
            disk,
            stalled_on_io_us: some,
        }
    }
}

/// Makes disks work: writes 32 MiB through to the device and reads them back, and starts a program that is not in memory.
fn work_the_disks(folder: &Path) {
    let run = |arguments: &[&str]| {
        let output = Command::new("dd").args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["if=/dev/zero", "of=data", "bs=1M", "count=32", "conv=fsync"]);
    // Both ask the kernel to forget what it keeps of the file.
    run(&["of=data", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]);
    run(&["if=data", "of=/dev/null", "bs=1M"]);
    let program = folder.join("program");
    fs::copy(binaries::node_agent(), &program).unwrap();
    run(&["of=program", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]);
    assert!(Command::new(&program).arg("--version").output().unwrap().status.success());
}

#[tokio::test]
async fn disk_operations_faults_switches_and_pressure_are_those_of_proc_and_move_under_load() {
    const MIB: u64 = 1 << 20;
    // Not below /tmp, which may be memory.
    let folder = tempfile::tempdir_in(binaries::node_agent().parent().unwrap()).unwrap();
    let agent = Once::measuring(folder.path(), "").await;
    let before = Proc::read();
    work_the_disks(folder.path());
    let done = Proc::read();
    let heartbeat = agent.heartbeat().await.0;
    let after = Proc::read();

    let counters = &heartbeat["counters"];
    let told = |name: &str| counters[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {counters}"));
    assert!(heartbeat["interval"]["end_unix_ms"].as_i64().unwrap() <= now_unix_ms());
    for (name, before, done, after, least) in [
        ("context_switches", before.context_switches, done.context_switches, after.context_switches, 10),
        ("major_faults", before.major_faults, done.major_faults, after.major_faults, 1),
        ("disk_reads", before.disk[0], done.disk[0], after.disk[0], 8),
        ("disk_writes", before.disk[1], done.disk[1], after.disk[1], 8),
        ("disk_read_bytes", before.disk[2], done.disk[2], after.disk[2], 32 * MIB),
        ("disk_written_bytes", before.disk[3], done.disk[3], after.disk[3], 32 * MIB),
    ] {
        assert!(done - before >= least, "the load moved {name} by {} only", done - before);
        assert!((done..=after).contains(&told(name)), "{name}: {} is not in {done}..={after}", told(name));
    }
    match (done.stalled_on_io_us, after.stalled_on_io_us) {
        (Some(done), Some(after)) => {
            assert_eq!(capability(&heartbeat, "pressure"), ("CAPABILITY_STATUS_OK", ""));
            let told = counters["pressure"]["io_some_us"].as_u64().unwrap();
            assert!((done..=after).contains(&told), "{told} is not in {done}..={after}");
        }
        _ => {
            let (status, reason) = capability(&heartbeat, "pressure");
            assert_eq!(status, CapabilityStatus::Unsupported.as_str_name());
            assert!(reason.contains("CONFIG_PSI"), "{reason}");
            assert_eq!(counters["pressure"], Value::Null);
        }
    }
}

/// Memory that cannot be had, in bytes, and all of it.
fn memory_in_use() -> (u64, u64) {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    (bytes("MemTotal:") - bytes("MemAvailable:"), bytes("MemTotal:"))
}

#[tokio::test]
async fn memory_that_was_in_use_for_three_seconds_is_in_the_peak() {
    const HELD: usize = 1 << 30;
    /// What others on this host may give back between two samples.
    const SLACK: u64 = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    let (before, total) = memory_in_use();
    let agent = Once::measuring(folder.path(), "").await;
    let mut held = vec![0_u8; HELD];
    held.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let mut least = u64::MAX;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..30 {
        ticks.tick().await;
        least = least.min(memory_in_use().0);
    }
    assert_eq!(held.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>(), HELD / 4096);
    drop(held);
    let heartbeat = agent.heartbeat().await.0;
    assert_eq!(capability(&heartbeat, "host_memory_peak"), ("CAPABILITY_STATUS_OK", ""));
    let peak = heartbeat["counters"]["memory_used_peak_bytes"].as_u64().unwrap();
    assert!((least - SLACK..=total).contains(&peak), "{peak} is not in {least}..={total}; before {before}");
}
