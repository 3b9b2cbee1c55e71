//! A database like dpkg's over files in a folder, and each way in which a file is not the system's own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{tree::devices, *};
use crate::procfs::process::executable_of;
use md5::{Digest as _, Md5};
use std::os::unix::fs::{PermissionsExt as _, symlink};

const SYSLOGD: &str = "/usr/sbin/syslogd";
const LISTS: &str = "/var/lib/dpkg/info";

struct System {
    folder: tempfile::TempDir,
}

impl System {
    /// Two packages, of which one ships a program and the other a unit.
    fn new() -> Self {
        let system = Self { folder: tempfile::tempdir().unwrap() };
        fs::set_permissions(system.root(), fs::Permissions::from_mode(0o755)).unwrap();
        system.file(SYSLOGD, "a program", 0o755);
        system.file("/usr/share/doc/syslogd", "text", 0o755);
        system.file("/usr/lib/systemd/system/syslog.service", "[Service]\n", 0o644);
        system.file("/usr/sbin/other", "another program", 0o755);
        system.package("syslogd:amd64", &[SYSLOGD, "/usr/share/doc/syslogd", "/usr/sbin", "/usr/sbin/gone"]);
        system.package("units", &["/usr/lib/systemd/system/syslog.service"]);
        system.file(
            "/var/lib/dpkg/status",
            "Package: cron\nConffiles:\n /etc/crontab 0123456789abcdef0123456789abcdef\n /etc/passwd 0123456789abcdef0123456789abcdef\n",
            0o644,
        );
        system
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn on_disk(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, content: &str, mode: u32) {
        let path = self.on_disk(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn package(&self, name: &str, files: &[&str]) {
        let sums = files.iter().filter_map(|file| {
            let content = fs::read(self.on_disk(file)).ok()?;
            Some(format!("{}  {}\n", hex::encode(Md5::digest(content)), &file[1..]))
        });
        self.file(&format!("{LISTS}/{name}.md5sums"), &sums.collect::<String>(), 0o644);
        self.file(&format!("{LISTS}/{name}.list"), &files.join("\n"), 0o644);
    }

    fn packages(&self) -> Packages {
        self.vouching(&[])
    }

    fn vouching(&self, paths: &[&str]) -> Packages {
        let owner = fs::metadata(self.root()).unwrap().uid();
        Packages::read_owned_by(self.root(), &paths.iter().map(|path| (*path).to_owned()).collect(), owner)
    }

    fn executable(&self, path: &str) -> Executable {
        executable_of(&fs::metadata(self.on_disk(path)).unwrap())
    }
}

#[test]
fn an_unchanged_file_of_a_package_is_the_systems_own() {
    let system = System::new();
    let mut packages = system.packages();
    let syslogd = system.executable(SYSLOGD);
    assert_eq!(packages.refusal(), None);
    assert_eq!(packages.locate(&syslogd), Some(SYSLOGD));
    assert!(packages.is_own(&syslogd) && packages.is_own(&syslogd));
    assert!(packages.is_own_text("/usr/lib/systemd/system/syslog.service"));
    let mut texts: Vec<_> = packages.index.texts.keys().collect();
    texts.sort();
    assert_eq!(texts, ["/etc/crontab", "/usr/lib/systemd/system/syslog.service"]);
}

#[test]
fn a_file_is_known_by_its_inode_and_not_by_its_name() {
    let system = System::new();
    let mut packages = system.packages();
    system.file("/usr/local/bin/syslogd", "a program", 0o755);
    let copied = system.executable("/usr/local/bin/syslogd");
    let own = system.executable(SYSLOGD);
    for stranger in [
        copied,
        system.executable("/usr/sbin/other"),
        Executable { changed_ns: own.changed_ns + 1, ..own },
        Executable { device: own.device + 1, ..own },
        Executable::default(),
    ] {
        assert_eq!(packages.locate(&stranger), None, "{stranger:?}");
        assert!(!packages.is_own(&stranger), "{stranger:?}");
    }
    // Links lead to the same file, also those that another package ships.
    symlink("syslogd", system.on_disk("/usr/sbin/link")).unwrap();
    assert!(packages.is_own(&system.executable("/usr/sbin/link")));
    system.package("alternatives", &["/usr/sbin/link"]);
    let mut with_link = system.packages();
    assert_eq!(with_link.locate(&own), Some(SYSLOGD));
    assert!(with_link.is_own(&own));
}

#[test]
fn whatever_somebody_could_have_changed_is_not_the_systems_own() {
    type Change = fn(&System);
    let change: [(&str, Change); 6] = [
        ("another content", |system| system.file(SYSLOGD, "another one", 0o755)),
        ("a file that all may write", |system| system.file(SYSLOGD, "a program", 0o757)),
        ("a file that a group may write", |system| system.file(SYSLOGD, "a program", 0o775)),
        ("a folder that all may write", |system| {
            fs::set_permissions(system.on_disk("/usr/sbin"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a package without digests", |system| {
            fs::remove_file(system.on_disk(&format!("{LISTS}/syslogd:amd64.md5sums"))).unwrap();
        }),
        ("a digest of something else", |system| {
            let sums = format!("{LISTS}/syslogd:amd64.md5sums");
            system.file(&sums, &format!("{}  usr/sbin/syslogd\n", "0".repeat(32)), 0o644);
        }),
    ];
    for (what, change) in change {
        let system = System::new();
        change(&system);
        let mut packages = system.packages();
        let syslogd = system.executable(SYSLOGD);
        assert_eq!(packages.locate(&syslogd), Some(SYSLOGD), "{what}");
        assert!(!packages.is_own(&syslogd), "{what}");
    }
    let system = System::new();
    let owner = fs::metadata(system.root()).unwrap().uid();
    let mut packages = Packages::read_owned_by(system.root(), &BTreeSet::new(), owner + 1);
    assert!(!packages.is_own(&system.executable(SYSLOGD)), "another owner");
    assert!(!packages.is_own_text("/usr/lib/systemd/system/syslog.service"));
}

#[test]
fn what_changes_after_the_database_was_read_is_noticed() {
    let system = System::new();
    let mut packages = system.packages();
    assert!(!packages.has_changed());
    let before = system.executable(SYSLOGD);
    assert!(packages.is_own(&before));
    let upgraded = system.on_disk("/usr/sbin/syslogd.new");
    system.file("/usr/sbin/syslogd.new", "a program, newer", 0o755);
    fs::rename(upgraded, system.on_disk(SYSLOGD)).unwrap();
    let after = system.executable(SYSLOGD);
    assert!(!packages.is_own(&after), "nobody has said that it is");
    system.package("another", &[]);
    system.package("syslogd:amd64", &[SYSLOGD]);
    assert!(packages.has_changed());
    assert!(system.packages().is_own(&after));
}

#[test]
fn a_rule_vouches_for_a_whole_path_if_nobody_else_may_write_there() {
    let system = System::new();
    system.file("/opt/acme/monitor", "a monitor", 0o755);
    let monitor = system.executable("/opt/acme/monitor");
    assert!(!system.packages().is_own(&monitor));
    let mut vouching = system.vouching(&["/opt/acme/monitor", "/opt/acme/gone"]);
    assert_eq!(vouching.locate(&monitor), Some("/opt/acme/monitor"));
    assert!(vouching.is_own(&monitor));
    fs::set_permissions(system.on_disk("/opt/acme"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!system.vouching(&["/opt/acme/monitor"]).is_own(&monitor));
}

#[test]
fn without_a_database_nothing_is_the_systems_own() {
    let system = System::new();
    fs::remove_dir_all(system.on_disk("/var/lib/dpkg")).unwrap();
    let mut packages = system.packages();
    assert_eq!(packages.refusal().map(|refusal| refusal.status), Some(Status::Unsupported));
    assert!(!packages.is_own(&system.executable(SYSLOGD)));
    let mut nowhere = Packages::read(Path::new("/nowhere"), &BTreeSet::new());
    assert!(!nowhere.is_own(&system.executable(SYSLOGD)));
}

#[test]
fn a_device_is_told_as_the_kernel_writes_it() {
    let mounts = "26 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
                  33 26 0:29 / /with\\040space rw - btrfs /dev/vdb rw\n27 26 bad line\n";
    assert_eq!(devices(mounts), [(PathBuf::from("/"), (259 << 20) | 1), (PathBuf::from("/with space"), 29)]);
}
