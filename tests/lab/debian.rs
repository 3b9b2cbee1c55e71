//! A whole Debian 12 machine in a micro-VM: systemd, sshd, cron, rsyslog, chrony, Debian's exporter, containerd, and the agent as the service
//! that [`packaging`](../../packaging/systemd) ships.
//!
//! `make setup` makes its disk once (`tests/lab/debian.sh`); each machine starts from it and writes to a copy that ends with it. What a
//! test adds travels in the first file system and is copied onto the disk before systemd starts. Under software emulation it is up 30 s
//! after power-on, with one CPU and 1 GiB of memory. Its network ends at this host, which answers at [`HOST`].
//!
//! Commands go through a virtual serial port to a service of the machine ([`Debian::run`]), because ssh would be a person at work.

use crate::{binaries, initramfs::Initramfs, kernels::Kernel, microvm::COMMAND_LINE, port, process::Running, wait};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};

pub use crate::microvm::HOST;

/// Longest that a start may take, on a host whose CPUs are busy with other machines.
const START_TIMEOUT: Duration = Duration::from_secs(240);
const SSH: u16 = 22;

/// Modules for disk, network, the port of commands, and what lists sockets with their cgroups, which the kernel loads by itself where they are on the disk.
const MODULES: [&str; 6] = ["virtio_pci", "virtio_net", "virtio_blk", "virtio_console", "tcp_diag", "udp_diag"];

/// PID 1 until systemd is: the disk, what the test adds to it, and over.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs devtmpfs /dev
for module in $(cat /lab/modules); do insmod "/lab/$module.ko"; done
mount -t ext4 /dev/vda /mnt
chmod 644 /add/etc/systemd/system/*.service
cp -a /add/. /mnt/
mkdir -p /mnt/etc/systemd/system/multi-user.target.wants
for unit in node-agent lab-commands; do
    [ ! -e /add/etc/systemd/system/$unit.service ] || ln -sf ../$unit.service /mnt/etc/systemd/system/multi-user.target.wants/
done
mount --move /dev /mnt/dev
exec switch_root /mnt /sbin/init
"#;

/// Runs each line of the port, and answers with the line's number, its status, and what it printed, in one line. It waits and answers
/// without a process of its own, and ends (to begin anew) while nobody is at the other side.
const COMMANDS: &str = r#"#!/bin/bash
exec 3<>/dev/virtio-ports/lab || exit 1
while read -r number command <&3; do
    said=$(bash -c "$command" 2>&1 </dev/null 3<&-)
    printf '%s %s %s\n' "$number" "$?" "${said//$'\n'/$'\037'}" >&3
done
"#;

const COMMANDS_UNIT: &str = "[Unit]
Description=Commands of the laboratory
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/sbin/lab-commands
Restart=always
RestartSec=1
";

/// What a test adds to the machine, by path: programs and text files, all of them executable.
#[derive(Clone, Debug, Default)]
pub struct Added {
    files: BTreeMap<String, Vec<u8>>,
}

impl Added {
    /// Adds a text file, a script for example.
    #[must_use]
    pub fn with_text(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Adds a copy of a file of this host.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn with_copy(mut self, path: &str, source: &Path) -> Self {
        let content = fs::read(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        self.files.insert(path.into(), content);
        self
    }

    fn initramfs(&self) -> Initramfs {
        let folders = ["/add", "/bin", "/dev", "/lab", "/mnt"];
        let mut image = folders
            .into_iter()
            .fold(Initramfs::default(), Initramfs::folder)
            .device("/dev/console", 5, 1)
            .copy("/bin/busybox", &binaries::system("busybox"))
            .program("/init", INIT.as_bytes());
        let mut names = String::new();
        for module in Kernel::Linux6_1.modules(&MODULES) {
            names = names + &module.name + "\n";
            image = image.program(&format!("/lab/{}.ko", module.name), &module.image);
        }
        image = image.program("/lab/modules", names.as_bytes());
        let mut made = Vec::new();
        for (path, content) in &self.files {
            for (at, _) in path.match_indices('/').skip(1) {
                if !made.contains(&&path[..at]) {
                    made.push(&path[..at]);
                    image = image.folder(&format!("/add{}", &path[..at]));
                }
            }
            image = image.program(&format!("/add{path}"), content);
        }
        image
    }
}

/// A machine that is up; it ends with this value.
#[derive(Debug)]
pub struct Debian {
    process: Running,
    commands: BufReader<UnixStream>,
    asked: u64,
    forwards: BTreeMap<u16, u16>,
    folder: PathBuf,
}

impl Debian {
    /// Starts a machine, with its files in `folder`, and waits until systemd has reached `multi-user.target`. `agent` is the agent's
    /// configuration file; `ports` are TCP ports of the machine that this host wants to reach ([`Debian::address`]).
    ///
    /// # Panics
    ///
    /// When a part of it is missing, or it is not up in time.
    pub async fn boot(folder: &Path, agent: &str, join_token: &str, added: &Added, ports: &[u16]) -> Self {
        let packaged = binaries::checkout().join("packaging/systemd");
        let added = added
            .clone()
            .with_copy("/usr/local/bin/node-agent", &binaries::node_agent())
            .with_copy("/etc/systemd/system/node-agent.service", &packaged.join("node-agent.service"))
            // systemd-sysusers.service reads it at a machine's first start, and each start of this one is.
            .with_copy("/etc/sysusers.d/node-agent.conf", &packaged.join("node-agent.sysusers"))
            .with_text("/etc/cloud-sweeper/node-agent.toml", agent)
            .with_text("/etc/cloud-sweeper/join-token", join_token);
        Self::boot_bare(folder, &added, ports).await
    }

    /// The same machine without an agent.
    ///
    /// # Panics
    ///
    /// When a part of it is missing, or it is not up in time.
    pub async fn boot_bare(folder: &Path, added: &Added, ports: &[u16]) -> Self {
        fs::create_dir_all(folder).expect("the machine's folder can be made");
        let added = added
            .clone()
            .with_text("/etc/systemd/system/lab-commands.service", COMMANDS_UNIT)
            .with_text("/usr/local/sbin/lab-commands", COMMANDS)
            .with_text("/root/.ssh/authorized_keys", &key(folder));
        let initramfs = folder.join("initramfs");
        added.initramfs().write(&initramfs).expect("the first file system can be written");
        let forwards: BTreeMap<u16, u16> = [SSH].iter().chain(ports).map(|guest| (*guest, port::free())).collect();
        let mut process = Running::start("debian", &mut emulator(folder, &initramfs, &forwards), folder);
        let socket = folder.join("commands");
        let stream = wait::until("the emulator's port of commands", START_TIMEOUT, || {
            assert!(process.ended().is_none(), "the emulator ended: {}", process.output());
            let stream = UnixStream::connect(&socket);
            async { stream.await.ok() }
        })
        .await;
        let mut machine =
            Self { process, commands: BufReader::new(stream), asked: 0, forwards, folder: folder.to_owned() };
        machine.try_run("systemctl start multi-user.target", START_TIMEOUT).await;
        machine
    }

    /// Runs a line of shell commands as root, in `/system.slice/lab-commands.service`, and returns what it printed.
    ///
    /// # Panics
    ///
    /// When it fails, or takes longer than three minutes: on a busy host an emulated machine takes one to load an image.
    pub async fn run(&mut self, commands: &str) -> String {
        self.try_run(commands, Duration::from_secs(180)).await
    }

    async fn try_run(&mut self, commands: &str, limit: Duration) -> String {
        assert!(!commands.contains('\n'), "one line: {commands}");
        self.asked += 1;
        let line = format!("{} {commands}\n", self.asked);
        self.commands.write_all(line.as_bytes()).await.expect("the emulator takes commands");
        let answer = timeout(limit, self.answer()).await;
        let Ok((status, said)) = answer else { panic!("`{commands}` took too long; the console: {}", self.console()) };
        assert_eq!(status, "0", "`{commands}` failed: {said}");
        said.trim_end().to_owned()
    }

    async fn answer(&mut self) -> (String, String) {
        loop {
            let mut line = String::new();
            let count = self.commands.read_line(&mut line).await.expect("the emulator passes answers on");
            assert!(count > 0, "the machine ended; its console: {}", self.console());
            let mut words = line.trim_end_matches('\n').splitn(3, ' ');
            let [Some(number), Some(status), Some(said)] = [words.next(), words.next(), words.next()] else {
                panic!("no answer: {line}")
            };
            if number == self.asked.to_string() {
                return (status.to_owned(), said.replace('\u{1f}', "\n"));
            }
        }
    }

    /// Where this host reaches a port that [`Debian::boot`] was asked for.
    ///
    /// # Panics
    ///
    /// When it was not.
    #[must_use]
    pub fn address(&self, port: u16) -> String {
        format!("127.0.0.1:{}", self.forwards[&port])
    }

    /// `ssh` to the machine as root, without the remote command yet.
    #[must_use]
    pub fn ssh(&self) -> Command {
        let mut command = Command::new(binaries::system("ssh"));
        command.arg("-F").arg("/dev/null").arg("-i").arg(self.folder.join("key"));
        for option in ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes"] {
            command.args(["-o", option]);
        }
        command.args(["-p", &self.forwards[&SSH].to_string(), "root@127.0.0.1"]);
        command
    }

    /// Whether the machine is on.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// What its console shows so far.
    ///
    /// # Panics
    ///
    /// When the console's file has been taken away.
    #[must_use]
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("console")).expect("the console's file")).replace('\r', "")
    }
}

fn emulator(folder: &Path, initramfs: &Path, forwards: &BTreeMap<u16, u16>) -> Command {
    let disk = binaries::installed(&binaries::checkout().join(".setup/machine/disk.ext4"));
    let forwards: String =
        forwards.iter().map(|(guest, host)| format!(",hostfwd=tcp:127.0.0.1:{host}-:{guest}")).collect();
    let mut command = Command::new(binaries::system("qemu-system-x86_64"));
    command
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1024"])
        .args(["-nodefaults", "-display", "none", "-no-reboot"])
        .args(["-netdev", &format!("user,id=net{forwards}"), "-device", "virtio-net-pci,netdev=net,romfile="])
        .args(["-drive", &format!("file={},format=raw,if=none,id=disk,snapshot=on", disk.display())])
        .args(["-device", "virtio-blk-pci,drive=disk", "-device", "virtio-serial-pci"])
        .args(["-chardev", &format!("socket,id=lab,path={},server=on,wait=off", folder.join("commands").display())])
        .args(["-device", "virtserialport,chardev=lab,name=lab"])
        .args(["-serial", &format!("file:{}", folder.join("console").display())])
        .args(["-append", COMMAND_LINE, "-kernel"])
        .arg(Kernel::Linux6_1.image())
        .arg("-initrd")
        .arg(initramfs);
    command
}

/// The public half of a key pair of the machine's own.
fn key(folder: &Path) -> String {
    let file = folder.join("key");
    let mut command = Command::new(binaries::system("ssh-keygen"));
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file);
    let done = command.output().expect("ssh-keygen starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::read_to_string(file.with_extension("pub")).expect("ssh-keygen wrote a public key")
}
