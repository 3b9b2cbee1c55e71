//! What the machine does while it is watched.

use crate::figures::Run;
use lab::namespace::Neighbour;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Load {
    /// Nothing.
    Idle,
    /// 2,000 short processes a second.
    Paced,
    /// Short processes, one after the other, as fast as they come.
    Forks,
    /// Two threads on one CPU that wake each other through pipes.
    Switches,
    /// The same through a socket that stays on the machine: what an agent pays that counts network traffic.
    Sockets,
    /// Requests and answers over TCP and a virtual wire between two network namespaces: each message that is sent or received is a round.
    Tcp,
    /// A C compiler over small files, one after the other.
    Compile,
}

/// Short processes a second of [`Load::Paced`].
const PACE: u64 = 2_000;
/// Enough work for a compiler to start its parts, and little enough for ten files a second.
const SOURCE: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(int c, char **v) \
    { char b[64]; for (int i = 0; i < c; i++) { snprintf(b, sizeof b, \"%s %d\", v[i], i); puts(b); } return atoi(b); }\n";

/// A cgroup whose counters say what a load took, its shortest process included.
struct Group(PathBuf);

impl Group {
    fn make() -> Self {
        let v1 = Path::new("/sys/fs/cgroup/cpuacct");
        let tree = if v1.is_dir() { v1 } else { Path::new("/sys/fs/cgroup") };
        let path = tree.join(format!("bench-load-{}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}: this needs root", path.display()));
        Self(path)
    }

    fn cpu(&self) -> Duration {
        let text = |file| fs::read_to_string(self.0.join(file));
        match text("cpuacct.usage") {
            Ok(usage) => Duration::from_nanos(usage.trim().parse().expect("a number of nanoseconds")),
            Err(_) => {
                let stat = text("cpu.stat").expect("the cgroup's counters can be read");
                let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).expect("its usage");
                Duration::from_micros(usage.parse().expect("a number of microseconds"))
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Who is left in it has ended; the kernel may need a moment to see that.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs a load in a process and a cgroup of its own and reads how often it came round.
pub(crate) async fn run(load: Load, length: Duration) -> Run {
    let group = Group::make();
    let began = Instant::now();
    let mut command = tokio::process::Command::new(std::env::current_exe().expect("the bench's own path"));
    let name = clap::ValueEnum::to_possible_value(&load).expect("every load has a name");
    command.args(["load", name.get_name(), &length.as_secs().to_string()]).arg(group.0.join("cgroup.procs"));
    let output = command.stdin(Stdio::null()).output().await.expect("the load starts");
    assert!(output.status.success(), "{load:?}: {}", String::from_utf8_lossy(&output.stderr));
    let rounds = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a load prints its rounds");
    Run { rounds, wall: began.elapsed(), cpu: group.cpu() }
}

/// Does the work in the cgroup whose list of processes is `group`; prints how often it came round.
pub(crate) fn generate(load: Load, length: Duration, group: &Path) {
    fs::write(group, std::process::id().to_string()).expect("the cgroup takes this process");
    let rounds = match load {
        Load::Idle => {
            thread::sleep(length);
            0
        }
        Load::Paced => paced(length),
        Load::Forks => until(length, short_life),
        Load::Switches => switches(length),
        Load::Sockets => sockets(length),
        Load::Tcp => tcp(length),
        Load::Compile => compile(length),
    };
    println!("{rounds}");
}

fn until(length: Duration, mut work: impl FnMut()) -> u64 {
    let end = Instant::now() + length;
    let mut rounds = 0;
    while Instant::now() < end {
        work();
        rounds += 1;
    }
    rounds
}

fn short_life() {
    let status = Command::new("/bin/busybox").arg("true").stdin(Stdio::null()).status();
    assert!(status.expect("/bin/busybox starts: run `make setup`").success(), "true is not false");
}

/// Two workers share the pace: one alone does not keep it up on every machine.
fn paced(length: Duration) -> u64 {
    const WORKERS: u64 = 2;
    let began = Instant::now();
    let worker = move || {
        let mut rounds = 0;
        while began.elapsed() < length {
            short_life();
            rounds += 1;
            let due = began + Duration::from_nanos(rounds * WORKERS * 1_000_000_000 / PACE);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        rounds
    };
    let workers: Vec<_> = (0..WORKERS).map(|_| thread::spawn(worker)).collect();
    workers.into_iter().map(|worker| worker.join().expect("a worker ends")).sum()
}

/// Two threads on one CPU that wake each other through a pair of whatever carries a byte.
fn ping_pong(length: Duration, here: (impl Read, impl Write), there: (impl Read + Send, impl Write + Send)) -> u64 {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None::<Pid>, &cpus).expect("CPU 0 may be used");
    let ((mut from, mut to), (mut echo_from, mut echo_to)) = (here, there);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            while echo_from.read(&mut byte).is_ok_and(|count| count == 1) {
                if echo_to.write_all(&byte).is_err() {
                    return;
                }
            }
        });
        let mut byte = [1];
        let rounds = until(length, || {
            to.write_all(&byte).expect("the other side reads");
            from.read_exact(&mut byte).expect("the other side writes");
        });
        // The other side reads the end, and ends.
        drop(to);
        drop(from);
        rounds
    })
}

fn switches(length: Duration) -> u64 {
    let (from, echo_to) = std::io::pipe().expect("a pipe");
    let (echo_from, to) = std::io::pipe().expect("a pipe");
    ping_pong(length, (from, to), (echo_from, echo_to))
}

fn sockets(length: Duration) -> u64 {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let again = |socket: &UnixStream| socket.try_clone().expect("a second descriptor");
    let (here, there) = ((again(&here), here), (again(&there), there));
    ping_pong(length, here, there)
}

/// Pairs that talk at once: one alone spends most of its time waiting for the other side to wake up.
const CONNECTIONS: u64 = 4;
/// A small request, as of a database.
const MESSAGE: usize = 64;

fn tcp(length: Duration) -> u64 {
    let neighbour = Neighbour::new(0);
    let mut server = Command::new(std::env::current_exe().expect("the bench's own path"));
    let mut server = neighbour
        .command(server.args(["echo", &neighbour.address().to_string()]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the echo starts");
    let mut port = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut port).expect("the echo says its port");
    let address = (neighbour.address(), port.trim().parse::<u16>().expect("a port"));
    let talk = || {
        let mut socket = TcpStream::connect(address).expect("the echo listens");
        socket.set_nodelay(true).expect("a TCP option");
        let mut message = [7; MESSAGE];
        // Two messages in a round trip, and each is sent on one side and received on the other.
        4 * until(length, || {
            socket.write_all(&message).expect("the other side reads");
            socket.read_exact(&mut message).expect("the other side writes");
        })
    };
    let messages = thread::scope(|scope| {
        let talks: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(talk)).collect();
        talks.into_iter().map(|talk| talk.join().expect("a connection ends")).sum()
    });
    drop(server.stdin.take());
    assert!(server.wait().expect("the echo ends").success(), "the echo failed");
    messages
}

/// Sends back whatever it receives, until standard input ends.
pub(crate) fn echo(address: &str) {
    let listener = TcpListener::bind((address, 0)).expect("a port at this address");
    println!("{}", listener.local_addr().expect("an address").port());
    for _ in 0..CONNECTIONS {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.set_nodelay(true).expect("a TCP option");
        thread::spawn(move || {
            let mut message = [0; MESSAGE];
            while socket.read_exact(&mut message).is_ok() && socket.write_all(&message).is_ok() {}
        });
    }
    let _ = std::io::stdin().read(&mut [0]);
}

fn compile(length: Duration) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("a.c");
    fs::write(&source, SOURCE).expect("a source file");
    until(length, || {
        let mut cc = Command::new("cc");
        let status = cc.args(["-O2", "-c", "-o"]).arg(folder.path().join("a.o")).arg(&source).status();
        assert!(status.expect("cc starts: run `make setup`").success(), "the compiler failed");
    })
}

/// Keeps processes alive until standard input ends: children of children, each of which only waits.
pub(crate) fn hold(processes: u32) {
    let (mut done, gate) = UnixStream::pair().expect("a pair of sockets");
    for _ in 0..processes {
        // SAFETY: the bench has one thread here but the runtime's sleeping ones; the child calls nothing but read and _exit.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
        if pid == 0 {
            let mut byte = 0_u8;
            // SAFETY: reads one byte into one byte, then ends without running anything of the parent's.
            unsafe {
                libc::close(std::os::fd::AsRawFd::as_raw_fd(&done));
                libc::read(std::os::fd::AsRawFd::as_raw_fd(&gate), (&raw mut byte).cast(), 1);
                libc::_exit(0);
            }
        }
    }
    println!("{processes} live");
    let _ = std::io::stdin().read(&mut [0]);
    // Whoever waits on the other end reads the end of the stream, and ends.
    done.shutdown(std::net::Shutdown::Both).expect("the socket closes");
    let _ = done.flush();
    // SAFETY: waits for children of this process.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}
