//! What the real agent says about people, callers, pressure, disks and paging of this host, held against what was really done and
//! what `/proc` says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire::{Class, ProbeStatus};
use lab::{agent::Agent, binaries, namespace::Neighbour, process::Running, wait};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The agent at work on one heartbeat.
struct Once(Running);

impl Once {
    /// Starts `node-agent once`, and returns once it has its baseline.
    async fn measuring(folder: &Path, interval: &str) -> Self {
        let agent = Agent::prepare(folder, "identity = \"host\"\nlog = \"info\"\n", &[]);
        let mut running = Running::start("once", agent.command().args(["once", "--interval", interval]), folder);
        running.line_with("measuring from here on", TIMEOUT).await;
        Self(running)
    }

    /// The heartbeat at the end of the interval; its log stands before it.
    async fn heartbeat(mut self) -> Value {
        let status = self.0.end(TIMEOUT).await;
        let output = self.0.output();
        assert!(status.success(), "{status}: {output}");
        serde_json::from_str(&output[output.find("\n{\n").unwrap()..]).unwrap()
    }
}

async fn heartbeat() -> Value {
    let folder = tempfile::tempdir().unwrap();
    Once::measuring(folder.path(), "200ms").await.heartbeat().await
}

fn probe<'a>(heartbeat: &'a Value, name: &str) -> (&'a str, &'a str) {
    let probes = heartbeat["coverage"]["probes"].as_array().unwrap();
    let probe = probes.iter().find(|probe| probe["name"] == name).unwrap_or_else(|| panic!("no probe {name}"));
    (probe["status"].as_str().unwrap(), probe["reason"].as_str().unwrap())
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
    assert_eq!(probe(&before, "people"), ("PROBE_STATUS_OK", ""));
    let sessions = |heartbeat: &Value| heartbeat["people"]["terminal_sessions"].as_u64().unwrap();
    let last_input = |heartbeat: &Value| heartbeat["people"]["last_input_unix_ms"].as_i64();

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
async fn a_caller_from_another_machine_is_seen_with_port_program_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let neighbour = Neighbour::new(0);
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let accepted = || server.accept().unwrap();
    let listener = |heartbeat: &Value| {
        let listeners = heartbeat["callers"]["listeners"].as_array().unwrap();
        listeners.iter().find(|listener| listener["port"] == port).unwrap().clone()
    };

    let _first = neighbour.call(port, "first", folder.path());
    let _first_served = accepted();
    // This host's own connections are none from outside, whichever of its addresses they use.
    let _loopback = (TcpStream::connect(("127.0.0.1", port)).unwrap(), accepted());
    let _own = (TcpStream::connect((neighbour.this_host(), port)).unwrap(), accepted());

    let agent = Once::measuring(folder.path(), "2s").await;
    let quiet = heartbeat().await;
    assert_eq!(listener(&quiet)["outside_peers"], 1);
    assert_eq!(listener(&quiet)["last_new_peer_unix_ms"], Value::Null, "who was here before the agent is not new");

    let called_at = now_unix_ms();
    let _second = neighbour.call(port, "second", folder.path());
    let _second_served = accepted();
    let called = agent.heartbeat().await;
    assert_eq!(probe(&called, "callers"), ("PROBE_STATUS_OK", ""));
    let found = listener(&called);
    // A machine's first process may hold ports, too, and hide what it has open even from root: then the capability says so.
    let is_known = |listener: &Value| listener["class"] != Class::Unspecified.as_str_name();
    let are_all_known = called["callers"]["listeners"].as_array().unwrap().iter().all(is_known);
    let expected = if are_all_known { "PROBE_STATUS_OK" } else { "PROBE_STATUS_DENIED" };
    assert_eq!(probe(&called, "caller_owners").0, expected, "{}", called["callers"]);
    assert_eq!(found["outside_peers"], 2, "{found}");
    assert_eq!(found["class"], Class::Workload.as_str_name());
    assert_eq!(found["command"].as_str(), fs::read_to_string("/proc/self/comm").ok().as_deref().map(str::trim));
    let at = found["last_new_peer_unix_ms"].as_i64().unwrap();
    let end = called["interval"]["end_unix_ms"].as_i64().unwrap();
    assert!((called_at..=end).contains(&at), "called at {called_at}, seen at {at}, interval until {end}");
}

#[tokio::test]
async fn a_caller_of_a_container_is_seen_though_no_socket_of_the_host_says_so() {
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

    let agent = Once::measuring(folder.path(), "2s").await;
    let called_at = now_unix_ms();
    let _caller = outside.call_at(address, port, "caller", folder.path());
    server.line_with("accepted", TIMEOUT).await;
    let called = agent.heartbeat().await;
    assert_eq!(probe(&called, "callers"), ("PROBE_STATUS_OK", ""));
    let listeners = called["callers"]["listeners"].as_array().unwrap();
    let found = listeners.iter().find(|listener| listener["port"] == port).unwrap();
    assert_eq!((&found["outside_peers"], &found["class"]), (&1.into(), &Class::Workload.as_str_name().into()));
    assert!(found["last_new_peer_unix_ms"].as_i64().unwrap() >= called_at, "{found}");
}

/// The same books, read by this test.
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
    let agent = Once::measuring(folder.path(), "3s").await;
    let before = Proc::read();
    work_the_disks(folder.path());
    let done = Proc::read();
    let heartbeat = agent.heartbeat().await;
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
            assert_eq!(probe(&heartbeat, "pressure"), ("PROBE_STATUS_OK", ""));
            let told = counters["pressure"]["io_some_us"].as_u64().unwrap();
            assert!((done..=after).contains(&told), "{told} is not in {done}..={after}");
        }
        _ => {
            let (status, reason) = probe(&heartbeat, "pressure");
            assert_eq!(status, ProbeStatus::Unsupported.as_str_name());
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
    /// What others on this host may give back between two looks.
    const SLACK: u64 = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    let (before, total) = memory_in_use();
    let agent = Once::measuring(folder.path(), "8s").await;
    let mut held = vec![0_u8; HELD];
    held.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let mut least = u64::MAX;
    for _ in 0..30 {
        least = least.min(memory_in_use().0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(held.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>(), HELD / 4096);
    drop(held);
    let heartbeat = agent.heartbeat().await;
    assert_eq!(probe(&heartbeat, "host_memory_peak"), ("PROBE_STATUS_OK", ""));
    let peak = heartbeat["counters"]["memory_used_peak_bytes"].as_u64().unwrap();
    assert!((least - SLACK..=total).contains(&peak), "{peak} is not in {least}..={total}; before {before}");
}
