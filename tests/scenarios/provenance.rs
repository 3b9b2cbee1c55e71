//! Whose program it is, on a machine with rpm: packages that rpmbuild made and rpm installed into a root of its own, processes that execute
//! their files, and what the real agent calls each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    once::{Group, Seen},
    process::Running,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// Whom no package knows: `nobody`.
const STRANGER: u32 = 65_534;
const DATABASE: &str = "/var/lib/rpm";

/// A root with rpm's database.
struct Machine {
    scratch: tempfile::TempDir,
    /// A program that works a little for ever.
    program: PathBuf,
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Machine {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let program = binaries::compiled("work.c", scratch.path());
        let machine = Self { scratch, program };
        fs::create_dir_all(machine.on_disk("/usr/sbin")).unwrap();
        machine
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("root")
    }

    fn on_disk(&self, path: &str) -> PathBuf {
        self.root().join(&path[1..])
    }

    /// Makes a package of programs and of a table of cron's, and leaves it in the scratch folder.
    fn build(&self, name: &str, programs: &[&str], table: Option<&str>) -> PathBuf {
        let mut spec = format!(
            "Name: {name}\nVersion: 1\nRelease: 1\nSummary: none\nLicense: none\n%global debug_package %{{nil}}\n\
             %global __os_install_post %{{nil}}\n%description\nnone\n%install\n"
        );
        let mut files = "%files\n".to_owned();
        for program in programs {
            spec += &format!("install -D -m 755 {} %{{buildroot}}{program}\n", self.program.display());
            files += &format!("%attr(755,root,root) {program}\n");
        }
        if let Some(table) = table {
            spec += &format!("mkdir -p %{{buildroot}}/etc/cron.d\necho '# {name}' >%{{buildroot}}{table}\n");
            files += &format!("%config(noreplace) %attr(644,root,root) {table}\n");
        }
        let folder = self.scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("package.spec"), spec + &files).unwrap();
        run(Command::new(binaries::system("rpmbuild"))
            .args(["-bb", "--define", &format!("_topdir {}", folder.display())])
            .args(["--define", &format!("_rpmdir {}", folder.display()), "--define", "_rpmfilename package.rpm"])
            .arg(folder.join("package.spec"))
            .env("HOME", &folder));
        folder.join("package.rpm")
    }

    fn install(&self, package: &Path) {
        run(Command::new(binaries::system("rpm"))
            .args(["--install", "--nodeps", "--dbpath", DATABASE, "--root"])
            .args([&self.root(), package])
            .env("HOME", self.scratch.path()));
    }

    /// Runs a file of the machine's in a cgroup of its own.
    fn start(&self, path: &str) -> (Group, Running) {
        let name = path.replace('/', "-");
        // Each test has a machine of its own, with files of the same names.
        let machine = self.scratch.path().file_name().unwrap().to_string_lossy();
        let group = Group::new(&format!("rpm{machine}{name}"));
        let mut command = group.inside(&self.on_disk(path));
        (group, Running::start(&name[1..], command.arg("burn"), self.scratch.path()))
    }

    /// What the agent says of one second.
    fn seen(&self) -> Seen {
        let config = format!(
            "identity = \"host\"\nlog = \"warn\"\nsource = \"ebpf\"\nhost_root = \"{}\"\n",
            self.root().display()
        );
        let agent = Agent::prepare(&self.scratch.path().join("agent"), &config, &[]);
        let done = agent.command().args(["once", "--interval", "1s"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8(done.stdout).unwrap();
        Seen(serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}")))
    }
}

/// A squashfs that is mounted read-only by a loop device; it goes with this value.
struct Squashfs(PathBuf);

impl Squashfs {
    /// Packs the machine's program under these names into `file`, and mounts that.
    fn mount(machine: &Machine, programs: &[&str], file: &str, point: &str) -> Self {
        let content = tempfile::tempdir().unwrap();
        fs::set_permissions(content.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for program in programs {
            fs::copy(&machine.program, content.path().join(program)).unwrap();
        }
        let [file, point] = [file, point].map(|path| machine.on_disk(path));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::create_dir_all(&point).unwrap();
        run(Command::new(binaries::system("mksquashfs")).args([content.path(), &file]).args([
            "-all-root",
            "-quiet",
            "-no-progress",
        ]));
        run(Command::new(binaries::system("mount")).args(["-t", "squashfs", "-o", "loop,ro"]).args([&file, &point]));
        Self(point)
    }
}

impl Drop for Squashfs {
    fn drop(&mut self) {
        // At once, also while a failed test's process still runs from it.
        let _ = Command::new(binaries::system("umount")).arg("-l").arg(&self.0).status();
    }
}

fn class<'a>(seen: &'a Seen, group: &Group) -> &'a str {
    let rows = seen.0["workloads"].as_array().unwrap();
    let mut own = rows.iter().filter(|row| row["key"] == group.key().as_str());
    let row = own.next().unwrap_or_else(|| panic!("no row of {}: {rows:#?}", group.key()));
    assert!(own.next().is_none(), "one program is of one class");
    row["class"].as_str().unwrap()
}

fn capability<'a>(seen: &'a Seen, name: &str) -> (&'a str, &'a str) {
    let all = seen.0["coverage"]["capabilities"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"] == name).unwrap();
    (one["status"].as_str().unwrap(), one["reason"].as_str().unwrap())
}

#[test]
fn what_rpm_installed_and_nobody_changed_is_housekeeping_and_all_else_is_work() {
    let machine = Machine::new();
    let installed = [
        "/usr/sbin/chronyd",
        "/usr/lib64/lab/auditd",
        "/usr/sbin/trainer",
        "/usr/sbin/rngd",
        "/usr/sbin/irqbalance",
        "/usr/libexec/lab/acpid",
        "/usr/sbin/lsmd",
        "/usr/sbin/rsyslogd",
        "/usr/sbin/sshd",
    ];
    machine.install(&machine.build("daemons", &installed, Some("/etc/cron.d/0hourly")));
    // A package that a user built, and a root of the user's own into which rpm installed it.
    let gssproxy = machine.build("users", &["/home/user/root/usr/sbin/gssproxy"], None);
    fs::create_dir_all(machine.on_disk("/home/user/root")).unwrap();
    run(Command::new(binaries::system("rpm"))
        .args(["--install", "--nodeps", "--dbpath", "/home/user/root/var/lib/rpm", "--root"])
        .args([&machine.root(), &gssproxy])
        .env("HOME", machine.scratch.path()));

    let change = |path: &str| {
        let mut bytes = fs::read(machine.on_disk(path)).unwrap();
        bytes.push(0);
        bytes
    };
    // Changed where it lies, and replaced by another file.
    fs::write(machine.on_disk("/usr/sbin/rngd"), change("/usr/sbin/rngd")).unwrap();
    fs::write(machine.on_disk("/usr/sbin/new"), change("/usr/sbin/lsmd")).unwrap();
    fs::set_permissions(machine.on_disk("/usr/sbin/new"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(machine.on_disk("/usr/sbin/new"), machine.on_disk("/usr/sbin/lsmd")).unwrap();
    chown(machine.on_disk("/usr/sbin/irqbalance"), Some(STRANGER), None).unwrap();
    fs::set_permissions(machine.on_disk("/usr/libexec/lab"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(machine.on_disk("/usr/sbin/rsyslogd"), fs::Permissions::from_mode(0o775)).unwrap();
    // The same content under the same name elsewhere, and a link to that.
    fs::create_dir_all(machine.on_disk("/usr/local/sbin")).unwrap();
    fs::copy(&machine.program, machine.on_disk("/usr/local/sbin/chronyd")).unwrap();
    fs::remove_file(machine.on_disk("/usr/sbin/sshd")).unwrap();
    symlink("../local/sbin/chronyd", machine.on_disk("/usr/sbin/sshd")).unwrap();
    // One more name of a package's own file is that file.
    fs::hard_link(machine.on_disk("/usr/sbin/chronyd"), machine.on_disk("/usr/sbin/chronyd-linked")).unwrap();

    let expected = [
        ("/usr/sbin/chronyd", true),
        ("/usr/sbin/chronyd-linked", true),
        ("/usr/lib64/lab/auditd", true),
        ("/usr/sbin/trainer", false),
        ("/usr/sbin/rngd", false),
        ("/usr/sbin/lsmd", false),
        ("/usr/sbin/irqbalance", false),
        ("/usr/libexec/lab/acpid", false),
        ("/usr/sbin/rsyslogd", false),
        ("/usr/sbin/sshd", false),
        ("/usr/local/sbin/chronyd", false),
        ("/home/user/root/usr/sbin/gssproxy", false),
    ];
    let running = expected.map(|(path, _)| machine.start(path));
    let seen = machine.seen();
    assert_eq!(capability(&seen, "provenance"), ("CAPABILITY_STATUS_OK", ""));
    assert_eq!(capability(&seen, "crontabs"), ("CAPABILITY_STATUS_OK", ""));
    for ((path, is_own), (group, _)) in expected.iter().zip(&running) {
        let class_of = if *is_own { "CLASS_HOUSEKEEPING" } else { "CLASS_WORKLOAD" };
        assert_eq!(class(&seen, group), class_of, "{path}");
    }
    for (group, process) in running {
        drop(process);
        drop(group);
    }
}

#[test]
fn a_database_that_cannot_be_read_makes_everything_work() {
    let machine = Machine::new();
    machine.install(&machine.build("daemons", &["/usr/sbin/chronyd"], None));
    let database = machine.on_disk(&format!("{DATABASE}/rpmdb.sqlite"));
    let whole = fs::read(&database).unwrap();
    type Damage = fn(&Path, &[u8]);
    let damages: [(Damage, &str, &str); 3] = [
        (
            |database, whole| fs::write(database, &whole[..whole.len() / 2]).unwrap(),
            "CAPABILITY_STATUS_BROKEN",
            "malformed",
        ),
        (
            |database, _| fs::write(database.with_file_name("rpmdb.sqlite-wal"), "unfinished").unwrap(),
            "CAPABILITY_STATUS_BROKEN",
            "a transaction of rpm's is under way",
        ),
        (
            |database, whole| {
                fs::remove_file(database).unwrap();
                fs::write(database.with_file_name("Packages"), whole).unwrap();
            },
            "CAPABILITY_STATUS_UNSUPPORTED",
            "Berkeley DB",
        ),
    ];
    for (damage, status, reason) in damages {
        fs::write(&database, &whole).unwrap();
        let _ = fs::remove_file(database.with_file_name("rpmdb.sqlite-wal"));
        damage(&database, &whole);
        let (group, process) = machine.start("/usr/sbin/chronyd");
        let seen = machine.seen();
        let said = capability(&seen, "provenance");
        assert!(said.0 == status && said.1.contains(reason), "{said:?} instead of {status}: {reason}");
        assert_eq!(class(&seen, &group), "CLASS_WORKLOAD", "{reason}");
        drop(process);
        drop(group);
    }
}

#[test]
fn a_listed_snap_is_its_publishers_and_any_other_is_work() {
    let machine = Machine::new();
    let snaps = "/var/lib/snapd/snaps/amazon-ssm-agent";
    let agent = "amazon-ssm-agent";
    let mounts = [
        (format!("{snaps}_7993.snap"), "/snap/amazon-ssm-agent/7993"),
        // Installed unsigned; from a file of somebody's own; from one that somebody else may write; another snap.
        (format!("{snaps}_x1.snap"), "/snap/amazon-ssm-agent/x1"),
        ("/srv/amazon-ssm-agent_7.snap".to_owned(), "/snap/amazon-ssm-agent/7"),
        (format!("{snaps}_8.snap"), "/snap/amazon-ssm-agent/8"),
        ("/var/lib/snapd/snaps/train_1.snap".to_owned(), "/snap/train/1"),
    ];
    let mounts = mounts.map(|(file, point)| {
        let mount = Squashfs::mount(&machine, &[agent, "trainer", "chronyd"], &file, point);
        (mount, file, point)
    });
    chown(machine.on_disk(&format!("{snaps}_8.snap")), Some(STRANGER), None).unwrap();
    let running = mounts.each_ref().map(|(_, _, point)| machine.start(&format!("{point}/{agent}")));
    let others = ["trainer", "chronyd"].map(|other| machine.start(&format!("/snap/amazon-ssm-agent/7993/{other}")));
    let seen = machine.seen();
    for (number, ((group, _), (_, file, _))) in running.iter().zip(&mounts).enumerate() {
        let class_of = if number == 0 { "CLASS_HOUSEKEEPING" } else { "CLASS_WORKLOAD" };
        assert_eq!(class(&seen, group), class_of, "{file}");
    }
    for (group, _) in &others {
        assert_eq!(class(&seen, group), "CLASS_WORKLOAD", "another program of the snap's");
    }
    for (group, process) in running.into_iter().chain(others) {
        drop(process);
        drop(group);
    }
}
