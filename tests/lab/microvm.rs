//! A micro-VM: a kernel of Debian's cloud images under software emulation, with our static binaries and busybox, and nothing else.
//!
//! It is the only machine here that is truly idle, the only pure cgroup v2 host, and every other kernel. It takes about six
//! seconds from start to power-off; several run at once. KVM is never used: where it is offered inside another virtual
//! machine, it may hang.
//!
//! Two serial lines lead out of it. The first is the console; the second carries what the guest's script says to the
//! test, so that no kernel message can tear it apart. Inside, the script has these commands:
//!
//! - `say WORDS` tells the test something ([`MicroVm::said`]);
//! - `give NAME FILE` hands a text file to the test ([`MicroVm::given`]);
//! - `modprobe NAME` inserts a module that the guest was made with ([`Guest::with_module`]).
//!
//! The host's loopback interface answers at [`HOST`].

use crate::{
    binaries,
    initramfs::Initramfs,
    kernels::{Architecture, Kernel},
    process::Running,
};
use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// Address under which a guest reaches the loopback interface of this host.
pub const HOST: &str = "10.0.2.2";

/// The kernel's command line. An emulated timer is late where the host is busy, and a kernel that watches it for ten of its ticks panics: *IO-APIC + timer doesn't work!*. It knows
/// of other emulators by itself not to look.
pub(crate) const COMMAND_LINE: &str = "console=ttyS0 quiet panic=1 no_timer_check";

/// The serial line into a guest that listens, of x86-64.
pub const TOLD: &str = "/dev/ttyS2";

/// What an emulator and a guest of one architecture differ in from those of another.
struct Machine {
    emulator: &'static str,
    board: &'static [&'static str],
    command_line: &'static str,
    /// The line to the test, as the guest's kernel calls it.
    said: &'static str,
}

const X86: Machine =
    Machine { emulator: "qemu-system-x86_64", board: &[], command_line: COMMAND_LINE, said: "/dev/ttyS1" };

/// Its board has one serial line of its own, the console; a second one is a card.
const ARM: Machine = Machine {
    emulator: "qemu-system-aarch64",
    board: &["-machine", "virt"],
    command_line: "console=ttyAMA0 quiet panic=1",
    said: "/dev/ttyS0",
};

/// Modules that bring up the network, where they are not built into the kernel.
const NETWORK: [&str; 2] = ["virtio_pci", "virtio_net"];

/// PID 1 until it becomes busybox's own init: mounts, names for busybox's programs, network.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
stty -F SAID raw
stty -F /dev/ttyS2 raw -echo 2>/dev/null
modprobe -q virtio_pci
modprobe virtio_net
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
exec /bin/init
"#;

/// The script's end is the guest's end; what it returned is the last thing that it says.
const MAIN: &str = "#!/bin/sh
/lab/script
/lab/say \"exit $?\"
poweroff -f
";

/// What a guest is made of. Every file lies where its name says; the script is run once, by init, as root.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    kernel: Kernel,
    modules: Vec<String>,
    programs: Vec<(String, PathBuf)>,
    texts: Vec<(String, String)>,
    script: String,
    more_cpus: u32,
    listens: bool,
}

impl Guest {
    /// A guest that runs these shell commands and powers itself off.
    #[must_use]
    pub fn running(script: &str) -> Self {
        Self { script: script.into(), ..Self::default() }
    }

    /// The same guest with another kernel.
    #[must_use]
    pub fn on(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The same guest with so many CPUs more than one.
    #[must_use]
    pub fn with_more_cpus(self, more_cpus: u32) -> Self {
        Self { more_cpus, ..self }
    }

    /// The same guest with a serial line into it, [`TOLD`], on which it hears what [`MicroVm::tell`] says.
    #[must_use]
    pub fn that_listens(self) -> Self {
        Self { listens: true, ..self }
    }

    /// Adds a static binary of this host as /bin/`name`.
    #[must_use]
    pub fn with_program(mut self, name: &str, source: &Path) -> Self {
        self.programs.push((format!("/bin/{name}"), source.to_owned()));
        self
    }

    /// Adds a module of the guest's kernel (`null_blk`) and what it needs, for the script to insert by `modprobe`.
    #[must_use]
    pub fn with_module(mut self, name: &str) -> Self {
        self.modules.push(name.to_owned());
        self
    }

    /// Adds a text file as /etc/`name`.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        self.texts.push((format!("/etc/{name}"), text.to_owned()));
        self
    }

    /// The guest's modules, and which needs which, where `modprobe` looks for them.
    fn with_modules(&self, image: Initramfs) -> Initramfs {
        let folder = format!("/lib/modules/{}", self.kernel.release());
        let mut image = ["/lib", "/lib/modules", &folder].into_iter().fold(image, Initramfs::folder);
        let names: Vec<&str> = NETWORK.into_iter().chain(self.modules.iter().map(String::as_str)).collect();
        let mut needs = String::new();
        for module in self.kernel.modules(&names) {
            // What comes last in a line is inserted first.
            let files: Vec<String> = module.needs.iter().rev().map(|name| format!("{name}.ko")).collect();
            writeln!(needs, "{}.ko: {}", module.name, files.join(" ")).expect("a string can be written");
            image = image.program(&format!("{folder}/{}.ko", module.name), &module.image);
        }
        image.program(&format!("{folder}/modules.dep"), needs.as_bytes())
    }

    fn machine(&self) -> &'static Machine {
        match self.kernel.architecture() {
            Architecture::X86 => &X86,
            Architecture::Arm => &ARM,
        }
    }

    fn initramfs(&self) -> Initramfs {
        let said = self.machine().said;
        let folders = ["/bin", "/dev", "/etc", "/lab", "/proc", "/root", "/run", "/sys", "/tmp", "/var", "/var/log"];
        let mut image = folders
            .into_iter()
            .fold(Initramfs::default(), Initramfs::folder)
            .device("/dev/console", 5, 1)
            .copy("/bin/busybox", &busybox(self.kernel.architecture()))
            .link("/bin/sh", "busybox")
            .program("/init", INIT.replace("SAID", said).as_bytes())
            .program("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
            .program("/etc/inittab", b"::once:/lab/main\n")
            .program("/lab/main", MAIN.as_bytes())
            .program("/lab/say", format!("#!/bin/sh\nprintf 'lab: %s\\n' \"$*\" >{said}\n").as_bytes())
            .program(
                "/lab/give",
                format!("#!/bin/sh\n{{ echo \"lab< $1\"; cat \"$2\"; echo; echo 'lab>'; }} >{said}\n").as_bytes(),
            )
            .program("/lab/script", format!("#!/bin/sh\nexport PATH=/lab:/bin\n{}\n", self.script).as_bytes());
        image = self.with_modules(image);
        for (path, source) in &self.programs {
            image = image.copy(path, source);
        }
        self.texts.iter().fold(image, |image, (path, text)| image.program(path, text.as_bytes()))
    }
}

/// A booted guest; it ends with this value.
#[derive(Debug)]
pub struct MicroVm {
    process: Running,
    console: PathBuf,
    said: PathBuf,
    told: PathBuf,
}

impl MicroVm {
    /// Boots `guest`, with its files in `folder`.
    ///
    /// # Panics
    ///
    /// When a part of it is missing, or the emulator does not start.
    #[must_use]
    pub fn boot(folder: &Path, guest: &Guest) -> Self {
        fs::create_dir_all(folder).expect("the micro-VM's folder can be made");
        let initramfs = folder.join("initramfs");
        guest.initramfs().write(&initramfs).expect("the first file system can be written");
        let (console, said) = (folder.join("console"), folder.join("said"));
        let machine = guest.machine();
        let mut command = Command::new(binaries::system(machine.emulator));
        command
            .args(machine.board)
            .args(["-accel", "tcg", "-cpu", guest.kernel.processor(), "-m", "512"])
            .args(["-smp", &(1 + guest.more_cpus).to_string()])
            .args(["-nodefaults", "-display", "none", "-no-reboot"])
            .args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="])
            .args(["-append", machine.command_line, "-kernel"])
            .arg(guest.kernel.image())
            .arg("-initrd")
            .arg(&initramfs);
        for line in [&console, &said] {
            fs::write(line, "").expect("the serial line's file can be made");
        }
        command.arg("-serial").arg(format!("file:{}", console.display()));
        match guest.kernel.architecture() {
            Architecture::X86 => command.arg("-serial").arg(format!("file:{}", said.display())),
            Architecture::Arm => command
                .arg("-chardev")
                .arg(format!("file,id=said,path={}", said.display()))
                .args(["-device", "pci-serial,chardev=said"]),
        };
        let told = folder.join("told");
        if guest.listens {
            assert_eq!(guest.kernel.architecture(), Architecture::X86, "a guest of Arm has no line into it");
            command.arg("-serial").arg(format!("unix:{},server=on,wait=off", told.display()));
        }
        Self { process: Running::start("micro-vm", &mut command, folder), console, said, told }
    }

    /// Says something to the guest, over the line into it.
    ///
    /// # Panics
    ///
    /// When it has none.
    pub fn tell(&self, words: &str) {
        let mut line = UnixStream::connect(&self.told).expect("the guest listens");
        line.write_all(words.as_bytes()).expect("the emulator takes what is said");
    }

    /// Waits until the guest's script has said a line that begins with `words`; returns the whole line.
    ///
    /// # Panics
    ///
    /// When the guest ends without having said so, or after `timeout`.
    pub async fn said(&mut self, words: &str, timeout: Duration) -> String {
        let what = format!("the guest to say `{words}`");
        crate::wait::until(&what, timeout, || {
            // Asked before the line is read: what an ended guest said is complete.
            let ended = self.process.ended();
            let found = self.lines().find(|line| line.starts_with(words));
            assert!(
                found.is_some() || ended.is_none(),
                "the guest ended without saying `{words}`; its console:\n{}",
                self.console()
            );
            async { found }
        })
        .await
    }

    /// Waits until the guest's script has ended well and the machine is off.
    ///
    /// # Panics
    ///
    /// When the script fails, or after `timeout`.
    pub async fn end(&mut self, timeout: Duration) {
        let status = self.said("exit", timeout).await;
        assert_eq!(status, "exit 0", "the guest's script failed; its console:\n{}", self.console());
        let status = self.process.end(timeout).await;
        assert!(status.success(), "the emulator ended with {status}: {}", self.process.output());
    }

    /// Whether the machine is on.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// The text file that the script gave under `name`, if it has.
    ///
    /// # Panics
    ///
    /// When the serial line's file has been taken away.
    #[must_use]
    pub fn given(&self, name: &str) -> Option<String> {
        let text = read(&self.said);
        let (_, rest) = text.split_once(&format!("lab< {name}\n"))?;
        Some(rest.split_once("\nlab>\n")?.0.to_owned())
    }

    /// What the console shows so far.
    ///
    /// # Panics
    ///
    /// When the serial line's file has been taken away.
    #[must_use]
    pub fn console(&self) -> String {
        read(&self.console)
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let text = read(&self.said);
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]).to_owned();
        whole.lines().filter_map(|line| line.strip_prefix("lab: ").map(str::to_owned)).collect::<Vec<_>>().into_iter()
    }
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).expect("the serial line's file can be read");
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

fn busybox(architecture: Architecture) -> PathBuf {
    let path = match architecture {
        Architecture::X86 => binaries::system("busybox"),
        Architecture::Arm => {
            binaries::installed(&binaries::checkout().join(".setup/kernels/busybox-arm64/bin/busybox"))
        }
    };
    let image = fs::read(&path).expect("busybox can be read");
    assert!(!is_dynamic(&image), "{} needs libraries: run `make setup`, which installs busybox-static", path.display());
    path
}

/// Whether this 64-bit little-endian ELF file has a program header that names a loader (see elf(5)).
fn is_dynamic(image: &[u8]) -> bool {
    const INTERPRETER: [u8; 4] = 3_u32.to_le_bytes();
    let word = |offset: usize| usize::from(u16::from_le_bytes([image[offset], image[offset + 1]]));
    let (headers, size, count) = (word(32), word(54), word(56));
    (0..count).any(|index| image[headers + index * size..].starts_with(&INTERPRETER))
}
