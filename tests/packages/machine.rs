//! A Debian 12 on which packages are tried: two versions of each, in both formats, and the commands that install them.
//!
//! For `.rpm` it has this host's own rpm, and services are off until somebody enables them, as the distributions that use rpm have it. What it cannot show is what is
//! of such a distribution alone: whether dnf finds what a package needs, SELinux, another systemd.

use crate::step;
use lab::{
    binaries,
    debian::{Added, Debian},
    wait,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// To load its programs takes the agent of an emulated machine seconds, and a minute where this host is busy.
pub(crate) const STARTS_WITHIN: Duration = Duration::from_secs(180);
/// rpm with its libraries: apart, so that the machine's own stay as they are.
const RPM: &str = "/opt/rpm";
/// What rpm reads at its start, below /usr/lib/rpm.
const RPM_FILES: [&str; 3] = ["macros", "platform/x86_64-linux/macros", "rpmrc"];

/// Which of the two kinds of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Deb,
    Rpm,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }

    /// `UnitFileState` of a service that nobody has enabled or disabled.
    pub(crate) fn untouched(self) -> &'static str {
        match self {
            Self::Deb => "UnitFileState=enabled",
            Self::Rpm => "UnitFileState=disabled",
        }
    }
}

/// Which of the two versions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    Old,
    New,
}

/// The machine, and packages of one format on it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) debian: Debian,
    pub(crate) format: Format,
}

impl Machine {
    /// Starts one, with `programs` of both versions from the folders `old` and `new`, not yet installed.
    pub(crate) async fn boot(
        folder: &Path,
        format: Format,
        programs: &[&str],
        [old, new]: [&Path; 2],
        ports: &[u16],
    ) -> Self {
        step("starts a Debian 12");
        let mut added = Added::default();
        for program in programs {
            let extension = format.extension();
            for (name, from) in [("old", old), ("new", new)] {
                added =
                    added.with_copy(&format!("/root/{name}/{program}.{extension}"), &package(from, program, extension));
            }
        }
        if format == Format::Rpm {
            added = with_rpm(added).with_text("/etc/systemd/system-preset/99-default-disable.preset", "disable *\n");
        }
        Self { debian: Debian::boot_bare(folder, &added, ports).await, format }
    }

    pub(crate) async fn run(&mut self, commands: &str) -> String {
        self.debian.run(commands).await
    }

    /// Installs a program that is not installed. rpm says nothing of a script that fails but a warning.
    pub(crate) async fn install(&mut self, program: &str, version: Version) {
        match self.format {
            Format::Deb => self.dpkg(program, version).await,
            Format::Rpm => self.rpm("--install", program, version).await,
        }
    }

    /// Brings a program up to date.
    pub(crate) async fn upgrade(&mut self, program: &str) {
        match self.format {
            Format::Deb => self.dpkg(program, Version::New).await,
            Format::Rpm => self.rpm("--upgrade", program, Version::New).await,
        }
    }

    /// Removes a program; what it keeps stays.
    pub(crate) async fn remove(&mut self, program: &str) {
        match self.format {
            Format::Deb => drop(self.run(&format!("dpkg --remove {program}")).await),
            Format::Rpm => assert_eq!(self.run(&format!("rpm --erase --force-debian {program}")).await, ""),
        }
    }

    async fn dpkg(&mut self, program: &str, version: Version) {
        // The one need that this machine lacks, and has no network to fetch.
        let install = "dpkg --ignore-depends=ca-certificates --install";
        self.run(&format!("{install} {}", place(program, version, "deb"))).await;
    }

    async fn rpm(&mut self, what: &str, program: &str, version: Version) {
        let package = place(program, version, "rpm");
        // Debian's rpm wants to be told that it is meant, and knows of no other package.
        let said = self.run(&format!("rpm {what} --force-debian --nodeps {package}")).await;
        // What systemd-sysusers does, it says.
        let others: Vec<&str> = said.lines().filter(|line| !line.starts_with("Creating ")).collect();
        assert_eq!(others, [""; 0], "rpm warns");
    }

    /// Whether each file of a package is as the package says: content, owner, mode.
    pub(crate) async fn assert_unchanged(&mut self, program: &str) {
        let said = match self.format {
            Format::Deb => self.run(&format!("dpkg --verify {program}")).await,
            Format::Rpm => self.run(&format!("rpm --verify --nodeps {program}")).await,
        };
        assert_eq!(said, "");
    }

    /// What systemd says of a service, each as NAME=VALUE: whether it runs, has failed, or goes round in circles.
    pub(crate) async fn assert_state(&mut self, service: &str, expected: &[&str]) {
        let asked = "--property=ActiveState,Result,NRestarts,UnitFileState,ConditionResult,AssertResult";
        let said = self.run(&format!("systemctl show {service} {asked}")).await;
        for line in expected {
            if !said.lines().any(|one| one == *line) {
                let journal = self.run(&format!("journalctl --no-pager --lines 40 --unit {service}")).await;
                panic!("{line} expected:\n{said}\n{journal}");
            }
        }
    }

    /// That no service of the whole machine has failed.
    pub(crate) async fn assert_nothing_failed(&mut self) {
        assert_eq!(self.run("systemctl --failed --no-legend").await, "");
    }

    /// The first process of a service.
    pub(crate) async fn process(&mut self, service: &str) -> String {
        self.run(&format!("systemctl show {service} --property=MainPID")).await
    }

    /// Waits until a command prints something else than nothing and `not`.
    pub(crate) async fn until_says(&mut self, what: &str, commands: &str, not: &str) -> String {
        let machine = tokio::sync::Mutex::new(&mut self.debian);
        wait::until(what, STARTS_WITHIN, || async {
            let said = machine.lock().await.run(commands).await;
            Some(said).filter(|said| !said.is_empty() && said != not)
        })
        .await
    }

    /// Files and folders whose names have `name` in them, but of the package's own records, logs, and what was brought along.
    pub(crate) async fn left_of(&mut self, name: &str) -> String {
        let find = format!("find / -xdev -path /proc -prune -o -path /sys -prune -o -name '*{name}*' -print");
        let apart =
            ["/root", "/var/log", "/var/lib/dpkg", "/var/lib/rpm", "/var/cache"].map(|path| format!("-e ^{path}"));
        self.run(&format!("{find} | grep -v {} | sort", apart.join(" "))).await
    }
}

fn place(program: &str, version: Version, extension: &str) -> String {
    let folder = match version {
        Version::Old => "old",
        Version::New => "new",
    };
    format!("/root/{folder}/{program}.{extension}")
}

/// The one package of a program in a folder.
fn package(folder: &Path, program: &str, extension: &str) -> PathBuf {
    let found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        // node-agent_0.1.0-1_amd64.deb, node-agent-0.1.0-1.x86_64.rpm
        .filter(|path| {
            let rest = path.file_name().unwrap().to_str().unwrap().strip_prefix(program);
            rest.is_some_and(|rest| rest[1..].starts_with(|first: char| first.is_ascii_digit()))
        })
        .collect();
    let [one] = found.as_slice() else { panic!("one .{extension} of {program} in {}: {found:?}", folder.display()) };
    one.clone()
}

fn with_rpm(added: Added) -> Added {
    let program = binaries::system("rpm");
    let listed = Command::new("ldd").arg(&program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries: Vec<&str> = listed.split_whitespace().filter(|word| word.starts_with('/')).collect();
    let loader = libraries.iter().find(|path| path.contains("/ld-linux")).expect("a loader");
    let loader = Path::new(loader).file_name().unwrap().to_str().unwrap();
    let start = format!("#!/bin/sh\nexec {RPM}/lib/{loader} --library-path {RPM}/lib {RPM}/rpm \"$@\"\n");
    let mut added = added.with_copy(&format!("{RPM}/rpm"), &program).with_text("/usr/local/bin/rpm", &start);
    for library in &libraries {
        let name = Path::new(library).file_name().unwrap().to_str().unwrap();
        added = added.with_copy(&format!("{RPM}/lib/{name}"), Path::new(library));
    }
    RPM_FILES
        .iter()
        .map(|file| format!("/usr/lib/rpm/{file}"))
        .fold(added, |added, path| added.with_copy(&path, Path::new(&path)))
}
