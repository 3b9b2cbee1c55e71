//! Network namespaces beside the agent's own: where most containers have their sockets.
//!
//! A published port is no socket of the host: the kernel rewrites the address and the connection ends inside. So each other
//! namespace is looked into through one of its processes. Which one a process is in is told by the inode of its
//! `/proc/PID/net/dev`, which is one per namespace and, unlike `/proc/PID/ns/net`, shown to everybody: no right is needed.
//!
//! Cost: 6 µs for each process of the host, and for each namespace and family with a TCP socket one walk through the kernel's one
//! table of connections (4 ms for 262,144 places, on a machine with 24 GB). That counts as part of the sample, which pauses accordingly:
//! 10 such containers are looked into every 20 to 40 s.

use super::sockets::{self, Socket, State};
use crate::procfs::process;
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Namespaces that are looked into. Beyond, inbound peers are not known.
const MAX_NAMESPACES: usize = 256;
/// Processes of one namespace that are remembered: the first may end before it is asked.
const WITNESSES: usize = 8;

/// A network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Tells it from every other one: the inode of its `/proc/PID/net/dev`.
    pub(super) id: u64,
    /// `/proc/PID/net` of some of its processes.
    witnesses: Vec<PathBuf>,
}

/// Every network namespace of this host that has a process, other than that of the agent.
///
/// # Errors
/// If processes are hidden from this user, or there are too many namespaces.
pub(super) fn others(proc: &Path) -> io::Result<Vec<Namespace>> {
    let inode = |net: &Path| fs::metadata(net.join("dev")).map(|file| file.ino());
    let own = inode(&proc.join("self/net"))?;
    let pids = process::list(proc)?;
    if !pids.contains(&1) {
        let reason = "/proc hides the processes of other users (hidepid)";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut found: BTreeMap<u64, Namespace> = BTreeMap::new();
    for pid in pids {
        let net = proc.join(pid.to_string()).join("net");
        match inode(&net) {
            Ok(inode) if inode == own => {}
            Ok(inode) => {
                let namespace = found.entry(inode).or_insert_with(|| Namespace { id: inode, witnesses: Vec::new() });
                if namespace.witnesses.len() < WITNESSES {
                    namespace.witnesses.push(net);
                }
            }
            // Who ended is in no namespace.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
        if found.len() > MAX_NAMESPACES {
            return Err(io::Error::other(format!("there are more than {MAX_NAMESPACES} network namespaces")));
        }
    }
    Ok(found.into_values().collect())
}

fn is_gone(error: &io::Error) -> bool {
    [libc::ENOENT, libc::ESRCH, libc::EINVAL].into_iter().any(|code| error.raw_os_error() == Some(code))
}

impl Namespace {
    /// Calls `each` with every socket of it, of each family the listeners first, until it wants no more.
    ///
    /// # Errors
    /// If its sockets cannot be read. Where all its processes have ended, it has none.
    pub(super) fn each(&self, mut each: impl FnMut(State, Socket) -> bool) -> io::Result<()> {
        self.each_of(&[("tcp", "sockstat", "TCP:"), ("tcp6", "sockstat6", "TCP6:")], &mut each)
    }

    /// Likewise with every UDP socket of it.
    ///
    /// # Errors
    /// If its sockets cannot be read.
    pub(super) fn each_udp(&self, mut each: impl FnMut(State, Socket) -> bool) -> io::Result<()> {
        self.each_of(&[("udp", "sockstat", "UDP:"), ("udp6", "sockstat6", "UDP6:")], &mut each)
    }

    /// `/proc/PID/net` of one of its processes that lives.
    pub(super) fn net(&self) -> Option<&Path> {
        self.witnesses.iter().find(|net| net.join("dev").exists()).map(PathBuf::as_path)
    }

    fn each_of(&self, files: &[(&str, &str, &str)], each: &mut impl FnMut(State, Socket) -> bool) -> io::Result<()> {
        for (file, counts, name) in files {
            for net in &self.witnesses {
                if in_use(&net.join(counts), name) == Some(0) {
                    break;
                }
                match sockets::all_listed(&net.join(file), each) {
                    Err(error) if is_gone(&error) => {}
                    read => {
                        read?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// How many sockets of a kind a namespace has: a sum over the CPUs, and no walk. `None` if that is not known.
fn in_use(counts: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(counts).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().skip_while(|word| *word != "inuse").nth(1)?.parse().ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    /// A process in a network namespace of its own, with a listener there; it ends with this value.
    struct Container(Child);

    impl Container {
        fn start() -> Self {
            let script = "import socket, sys
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()";
            let mut command = Command::new("unshare");
            command.args(["--net", "sh", "-c", "ip link set lo up && exec python3 -c \"$0\"", script]);
            Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
        }

        fn port(&mut self) -> u16 {
            let mut line = String::new();
            BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            line.trim().parse().unwrap()
        }
    }

    impl Drop for Container {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn listening(namespace: &Namespace) -> Vec<u16> {
        let mut ports = Vec::new();
        let found = namespace.each(|state, socket| {
            assert_eq!(state, State::Listening);
            ports.push(socket.port);
            true
        });
        found.unwrap();
        ports
    }

    #[test]
    fn a_containers_listener_is_found_in_its_own_namespace_only() {
        let mut container = Container::start();
        let port = container.port();
        let net = Path::new("/proc").join(container.0.id().to_string()).join("net");
        let all = others(Path::new("/proc")).unwrap();
        let its: Vec<_> = all.iter().filter(|namespace| namespace.witnesses.contains(&net)).collect();
        assert_eq!(its.len(), 1);
        assert_eq!(listening(its[0]), [port]);
        assert_eq!(
            [in_use(&net.join("sockstat"), "TCP:"), in_use(&net.join("sockstat6"), "TCP6:")],
            [Some(1), Some(0)]
        );
        assert!(!all.iter().any(|namespace| namespace.witnesses.contains(&"/proc/1/net".into())), "the agent's own");
        drop(container);
        let gone = Namespace { id: 0, witnesses: vec![net] };
        assert_eq!(listening(&gone), [0_u16; 0]);
    }

    fn proc_of(count: u32) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        for process in (1..=count).map(|pid| pid.to_string()).chain(["self".to_owned()]) {
            fs::create_dir_all(proc.path().join(&process).join("net")).unwrap();
            fs::write(proc.path().join(process).join("net/dev"), "").unwrap();
        }
        proc
    }

    #[test]
    fn too_many_namespaces_and_hidden_processes_are_said_and_never_nobody() {
        assert_eq!(others(proc_of(256).path()).unwrap().len(), 256);
        assert!(others(proc_of(257).path()).unwrap_err().to_string().contains("more than 256"));
        let hidden = proc_of(2);
        fs::remove_dir_all(hidden.path().join("1")).unwrap();
        assert_eq!(others(hidden.path()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
