//! Another machine, as far as the network can tell: a network namespace of its own at the other end of a pair of virtual wires.

use crate::{binaries, process::Running};
use std::{net::Ipv4Addr, path::Path, process::Command};

/// A neighbour; it and the wire go with this value.
#[derive(Debug)]
pub struct Neighbour {
    name: String,
    here: Ipv4Addr,
    number: u8,
}

impl Neighbour {
    /// Makes one that is `number` apart from those of other tests of this process.
    ///
    /// # Panics
    ///
    /// When the kernel refuses, for example because the test does not run as root.
    #[must_use]
    pub fn new(number: u8) -> Self {
        let [.., high, low] = std::process::id().to_be_bytes();
        let (here, there) =
            (Ipv4Addr::new(10, high, low, number * 4 + 1), Ipv4Addr::new(10, high, low, number * 4 + 2));
        let name = format!("cs{}x{number}", std::process::id());
        let neighbour = Self { name, here, number };
        let name = &neighbour.name;
        let (near, far) = (format!("{name}h"), format!("{name}n"));
        for line in [
            format!("netns add {name}"),
            format!("link add {near} type veth peer name {far} netns {name}"),
            format!("address add {here}/30 dev {near}"),
            format!("link set {near} up"),
            format!("-n {name} address add {there}/30 dev {far}"),
            format!("-n {name} link set {far} up"),
            format!("-n {name} link set lo up"),
        ] {
            ip(&line);
        }
        neighbour
    }

    /// The address under which it reaches this host.
    #[must_use]
    pub fn this_host(&self) -> Ipv4Addr {
        self.here
    }

    /// The address under which this host reaches it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.here) + 1)
    }

    /// A command that will run there.
    #[must_use]
    pub fn command(&self, command: &Command) -> Command {
        let mut there = Command::new(binaries::system("ip"));
        there.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => there.env(key, value),
                None => there.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            there.current_dir(folder);
        }
        there
    }

    /// Puts a wire between this one and another one, past this host; the address of this one at its end.
    ///
    /// # Panics
    ///
    /// When the kernel refuses.
    #[must_use]
    pub fn wire_to(&self, other: &Self) -> Ipv4Addr {
        let [.., high, low] = std::process::id().to_be_bytes();
        let at = |end: u8| Ipv4Addr::new(10, high, low, 128 + self.number * 4 + end);
        let (near, far) = (format!("{}w", self.name), format!("{}v", self.name));
        ip(&format!("link add {near} netns {} type veth peer name {far} netns {}", self.name, other.name));
        for (name, wire, end) in [(&self.name, near, 1), (&other.name, far, 2)] {
            ip(&format!("-n {name} address add {}/30 dev {wire}", at(end)));
            ip(&format!("-n {name} link set {wire} up"));
        }
        at(1)
    }

    /// Connects from there to a port of this host, and stays connected until the value is dropped.
    #[must_use]
    pub fn call(&self, port: u16, name: &str, folder: &Path) -> Running {
        self.call_at(self.here, port, name, folder)
    }

    /// The same to a port of another machine.
    #[must_use]
    pub fn call_at(&self, address: Ipv4Addr, port: u16, name: &str, folder: &Path) -> Running {
        // What keeps the line open is a read that nobody ever answers.
        let script = format!("exec 3<>/dev/tcp/{address}/{port} && read -r -u 3 _");
        self.run(&["bash", "-c", &script], name, folder)
    }

    /// Runs a program there.
    #[must_use]
    pub fn run(&self, arguments: &[&str], name: &str, folder: &Path) -> Running {
        let mut command = Command::new(binaries::system("ip"));
        Running::start(name, command.args(["netns", "exec", &self.name]).args(arguments), folder)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // The wire ends with either of its ends. What fails here fails the next test that uses the name, and says so.
        let _ = Command::new(binaries::system("ip")).args(["netns", "delete", &self.name]).status();
    }
}

fn ip(line: &str) {
    let output = Command::new(binaries::system("ip")).args(line.split(' ')).output().expect("ip starts");
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A tunnel of the kernel's own on this host: a UDP port that no process holds. It goes with this value.
#[derive(Debug)]
pub struct Tunnel(String);

impl Tunnel {
    /// Opens one at this port (VXLAN, of a network that nobody else is in).
    ///
    /// # Panics
    ///
    /// When the kernel refuses.
    #[must_use]
    pub fn at(port: u16) -> Self {
        let tunnel = Self(format!("cs{}t", std::process::id()));
        ip(&format!("link add {} type vxlan id 7711 local 127.0.0.2 remote 127.0.0.3 dstport {port}", tunnel.0));
        ip(&format!("link set {} up", tunnel.0));
        tunnel
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = Command::new(binaries::system("ip")).args(["link", "delete", &self.0]).status();
    }
}
