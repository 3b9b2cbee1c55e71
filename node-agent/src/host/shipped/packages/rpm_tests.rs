//! Databases that rpm itself wrote about packages that rpmbuild made, whole, unfinished, damaged and forged.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{super::Packages, *};
use crate::procfs::process::executable_of;
use std::{
    collections::BTreeSet,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::PathBuf,
    process::Command,
};

const CHRONYD: &str = "/usr/sbin/chronyd";
const UNIT: &str = "/usr/lib/systemd/system/chronyd.service";
const DROP_IN: &str = "/usr/lib/systemd/system/service.d/10-all.conf";
const TABLE: &str = "/etc/cron.d/0hourly";
const FILES: [(&str, &str, u32); 5] = [
    (CHRONYD, "a program", 0o755),
    (UNIT, "[Service]\n", 0o644),
    (DROP_IN, "[Service]\n", 0o644),
    (TABLE, "a table", 0o644),
    ("/usr/share/doc/chronyd", "text", 0o755),
];

/// A system of one package, whose files lie there as it says.
struct System(tempfile::TempDir);

fn run(command: &mut Command) {
    let program = command.get_program().to_owned();
    let done = command.output().unwrap_or_else(|error| panic!("{}: {error} (apt-get install rpm)", program.display()));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl System {
    fn new() -> Self {
        let system = Self::empty();
        for (path, content, mode) in FILES {
            system.file(path, content, mode);
        }
        system.install("chrony", &FILES, "");
        system
    }

    fn empty() -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(system.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(system.on_disk("/var/lib/rpm")).unwrap();
        system
    }

    fn on_disk(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn database(&self) -> PathBuf {
        self.on_disk("/var/lib/rpm/rpmdb.sqlite")
    }

    fn file(&self, path: &str, content: &str, mode: u32) {
        let path = self.on_disk(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Has rpmbuild make a package and rpm take it into the database alone, which needs no rights.
    fn install(&self, name: &str, files: &[(&str, &str, u32)], preamble: &str) {
        self.install_with("--nodeps", name, files, preamble);
    }

    fn install_with(&self, option: &str, name: &str, files: &[(&str, &str, u32)], preamble: &str) {
        let scratch = tempfile::tempdir().unwrap();
        let mut spec = format!(
            "Name: {name}\nVersion: 1\nRelease: 1\nSummary: none\nLicense: none\n%global debug_package %{{nil}}\n\
             %global __os_install_post %{{nil}}\n{preamble}\n%description\nnone\n%install\n"
        );
        for (path, content, _) in files {
            let content = content.replace('\n', "\\n");
            spec += &format!("mkdir -p $(dirname %{{buildroot}}{path})\nprintf '{content}' >%{{buildroot}}{path}\n");
        }
        spec += "%files\n";
        for (path, _, mode) in files {
            let config = if path.starts_with("/etc/") { "%config(noreplace) " } else { "" };
            spec += &format!("{config}%attr({mode:o},root,root) {path}\n");
        }
        fs::write(scratch.path().join("package.spec"), spec).unwrap();
        let define = |name: &str, value: &Path| format!("{name} {}", value.display());
        let built = scratch.path().join("built");
        run(Command::new("rpmbuild")
            .args(["-bb", "--define", &define("_topdir", scratch.path()), "--define", &define("_rpmdir", &built)])
            .args(["--define", "_rpmfilename package.rpm"])
            .arg(scratch.path().join("package.spec"))
            .env("HOME", scratch.path()));
        run(Command::new("rpm")
            .args(["--install", "--justdb", option, "--ignorearch", "--dbpath"])
            .arg(self.on_disk("/var/lib/rpm"))
            .arg(built.join("package.rpm"))
            .env("HOME", scratch.path()));
    }

    /// Does something to the database that rpm would not.
    fn forge(&self, change: &str) {
        let change = format!("PRAGMA foreign_keys = OFF; {change}");
        Connection::open(self.database()).unwrap().execute_batch(&change).unwrap();
    }

    fn packages(&self) -> Packages {
        let owner = fs::metadata(self.0.path()).unwrap().uid();
        Packages::read_owned_by(self.0.path(), &BTreeSet::new(), owner)
    }

    fn executable(&self, path: &str) -> node_agent_ebpf::Executable {
        executable_of(&fs::metadata(self.on_disk(path)).unwrap())
    }

    fn is_own(&self, path: &str) -> bool {
        self.packages().is_own(&self.executable(path))
    }

    fn refusal(&self) -> (Status, String) {
        let packages = self.packages();
        let refusal = packages.refusal().expect("a refusal");
        assert!(!self.is_own(CHRONYD), "what a database said before it failed counts for nothing: {refusal:?}");
        (refusal.status, refusal.reason.clone())
    }
}

#[test]
fn unchanged_files_of_a_package_are_the_systems_own() {
    let system = System::new();
    let mut packages = system.packages();
    assert_eq!(packages.refusal(), None);
    let chronyd = system.executable(CHRONYD);
    assert_eq!(packages.locate(&chronyd), Some(CHRONYD));
    assert!(packages.is_own(&chronyd));
    for text in [UNIT, DROP_IN, TABLE] {
        assert!(packages.is_own_text(text), "{text}");
    }
    assert!(!packages.has_changed());
    assert!(!system.is_own("/usr/share/doc/chronyd"), "no executable lies there");
}

#[test]
fn a_unit_is_known_under_both_names_of_its_folder() {
    let system = System::empty();
    let unit = "/lib/systemd/system/chronyd.service";
    system.install("chrony", &[(unit, "[Service]\n", 0o644)], "");
    system.file(UNIT, "[Service]\n", 0o644);
    symlink("usr/lib", system.on_disk("/lib")).unwrap();
    let packages = system.packages();
    assert!(packages.is_own_text(unit) && packages.is_own_text(UNIT));
    system.file(UNIT, "[Service]\nExecStart=mine\n", 0o644);
    assert!(!packages.is_own_text(unit) && !packages.is_own_text(UNIT));
}

#[test]
fn whatever_somebody_could_have_changed_is_not_the_systems_own() {
    type Change = fn(&System);
    let changes: [(&str, Change); 6] = [
        ("another content", |system| system.file(CHRONYD, "another one", 0o755)),
        ("a file that all may write", |system| system.file(CHRONYD, "a program", 0o757)),
        ("a folder that a group may write", |system| {
            fs::set_permissions(system.on_disk("/usr/sbin"), fs::Permissions::from_mode(0o775)).unwrap();
        }),
        ("a link in its place", |system| {
            system.file("/srv/mine", "a program", 0o755);
            fs::remove_file(system.on_disk(CHRONYD)).unwrap();
            symlink("../../srv/mine", system.on_disk(CHRONYD)).unwrap();
        }),
        ("a database that others may write", |system| {
            fs::set_permissions(system.database(), fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("a database in a folder that others may write", |system| {
            fs::set_permissions(system.on_disk("/var/lib/rpm"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
    ];
    for (what, change) in changes {
        let system = System::new();
        change(&system);
        assert!(!system.is_own(CHRONYD), "{what}");
    }
    let system = System::new();
    let owner = fs::metadata(system.0.path()).unwrap().uid();
    let mut packages = Packages::read_owned_by(system.0.path(), &BTreeSet::new(), owner + 1);
    assert!(!packages.is_own(&system.executable(CHRONYD)), "another owner");
    assert_eq!(packages.refusal().map(|refusal| refusal.status), Some(Status::Denied));
}

#[test]
fn a_package_that_was_built_and_not_installed_makes_nothing_the_systems_own() {
    let system = System::empty();
    system.install("other", &[("/usr/sbin/other", "another program", 0o755)], "");
    system.file(CHRONYD, "a program", 0o755);
    // A database of one's own, where rpm is not told to look.
    let own = System::new();
    fs::create_dir_all(system.on_disk("/root/.rpmdb")).unwrap();
    fs::copy(own.database(), system.on_disk("/root/.rpmdb/rpmdb.sqlite")).unwrap();
    assert_eq!(system.packages().refusal(), None);
    assert!(!system.is_own(CHRONYD));
}

#[test]
fn old_packages_with_md5_count_and_unknown_algorithms_do_not() {
    for (algorithm, is_own) in [("1", true), ("8", true), ("2", false), ("10", false)] {
        let system = System::empty();
        system.file(CHRONYD, "a program", 0o755);
        let preamble = format!("%global _binary_filedigest_algorithm {algorithm}");
        system.install("chrony", &[(CHRONYD, "a program", 0o755)], &preamble);
        assert_eq!(system.is_own(CHRONYD), is_own, "algorithm {algorithm}");
        assert_eq!(system.packages().refusal(), None);
    }
}

#[test]
fn a_file_that_another_package_replaced_is_the_other_ones() {
    let system = System::new();
    system.install_with("--replacefiles", "other", &[(CHRONYD, "another one", 0o755)], "");
    assert!(!system.is_own(CHRONYD));
    system.file(CHRONYD, "another one", 0o755);
    assert!(system.is_own(CHRONYD));
}

#[test]
fn a_transaction_that_is_not_over_is_waited_for() {
    let system = System::new();
    let before = system.packages();
    let writer = Connection::open(system.database()).unwrap();
    writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE begun (at)").unwrap();
    let (status, reason) = system.refusal();
    assert_eq!(status, Status::Broken);
    assert!(reason.contains("rpmdb.sqlite-wal is not empty"), "{reason}");
    assert!(before.has_changed());
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert!(system.is_own(CHRONYD));
    drop(writer);
    fs::write(system.on_disk("/var/lib/rpm/rpmdb.sqlite-journal"), "to be undone").unwrap();
    assert!(system.refusal().1.contains("rpmdb.sqlite-journal is not empty"));
}

#[test]
fn a_database_that_changes_while_it_is_read_is_read_later() {
    let system = System::new();
    let tree = Tree::new(system.0.path(), fs::metadata(system.0.path()).unwrap().uid(), "");
    let mut touched = 0;
    let answer = read(&tree, &mut |_, _| {
        touched += 1;
        fs::write(system.on_disk("/var/lib/rpm/rpmdb.sqlite-wal"), "a transaction").unwrap();
    });
    assert!(touched > 0 && answer.is_err_and(|refusal| refusal.reason.contains("changed while it was read")));
}

#[test]
fn what_is_installed_later_is_noticed() {
    let system = System::new();
    let before = system.packages();
    system.file("/usr/sbin/rngd", "a generator", 0o755);
    assert!(!system.is_own("/usr/sbin/rngd"));
    system.install("rng-tools", &[("/usr/sbin/rngd", "a generator", 0o755)], "");
    assert!(before.has_changed());
    assert!(system.is_own("/usr/sbin/rngd") && system.is_own(CHRONYD));
}

#[test]
fn a_link_to_the_folder_is_followed_within_the_system_only() {
    let system = System::new();
    let moved = system.on_disk("/usr/lib/sysimage");
    fs::create_dir_all(&moved).unwrap();
    fs::rename(system.on_disk("/var/lib/rpm"), moved.join("rpm")).unwrap();
    symlink("../../usr/lib/sysimage/rpm", system.on_disk("/var/lib/rpm")).unwrap();
    assert!(system.is_own(CHRONYD), "as on Fedora");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(system.database(), elsewhere.path().join("rpmdb.sqlite")).unwrap();
    fs::remove_file(system.database()).unwrap();
    symlink(elsewhere.path().join("rpmdb.sqlite"), system.database()).unwrap();
    assert_eq!(system.refusal().0, Status::Denied);
}

#[test]
fn formats_that_are_not_read_are_named() {
    for (file, format) in [("Packages", "Berkeley DB"), ("Packages.db", "ndb")] {
        let system = System::empty();
        system.file(CHRONYD, "a program", 0o755);
        system.file(&format!("/var/lib/rpm/{file}"), "", 0o644);
        let (status, reason) = system.refusal();
        assert_eq!(status, Status::Unsupported);
        assert!(reason.contains(format), "{reason}");
    }
    let system = System::empty();
    system.file(CHRONYD, "a program", 0o755);
    let (status, reason) = system.refusal();
    assert_eq!((status, reason.contains("dpkg's or rpm's")), (Status::Unsupported, true), "{reason}");
}

#[test]
fn forged_databases_make_nothing_the_systems_own_and_end_in_bounds() {
    let forgeries = [
        ("an index beyond the end", "UPDATE Packages SET blob = CAST(x'ffffffff' || substr(blob, 5) AS BLOB)"),
        (
            "data beyond the end",
            "UPDATE Packages SET blob = CAST(substr(blob, 1, 4) || x'ffffffff' || substr(blob, 9) AS BLOB)",
        ),
        ("a header cut short", "UPDATE Packages SET blob = substr(blob, 1, length(blob) / 2)"),
        ("no bytes", "UPDATE Packages SET blob = x''"),
        ("a text", "UPDATE Packages SET blob = 'header'"),
        ("a text with a zero byte in front of 9 MiB", "UPDATE Packages SET blob = 'a' || char(0) || zeroblob(9 << 20)"),
        ("a number", "UPDATE Packages SET blob = 42"),
        ("no table", "ALTER TABLE Packages RENAME TO Others"),
        ("a header of 9 MiB", "UPDATE Packages SET blob = CAST(blob || zeroblob(9 << 20) AS BLOB)"),
        (
            "an endless table",
            "DROP TABLE Packages; CREATE VIEW Packages AS WITH RECURSIVE endless(blob) AS (VALUES (x'00') UNION ALL \
             SELECT blob FROM endless) SELECT blob FROM endless",
        ),
        (
            "an endless table without rows",
            "DROP TABLE Packages; CREATE VIEW Packages AS WITH RECURSIVE endless(blob) AS (VALUES (x'00') UNION ALL \
             SELECT blob FROM endless) SELECT blob FROM endless WHERE blob = 1",
        ),
    ];
    for (what, change) in forgeries {
        let system = System::new();
        system.forge(change);
        let begun = Instant::now();
        let answer = read_headers(&system.database(), Duration::from_secs(1), &mut |path, _| panic!("{what}: {path}"));
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
        let is_late = matches!(answer, Err(Failure::Late));
        assert_eq!(is_late, what.contains("endless"), "{what}: {answer:?}");
        assert!(answer.is_err(), "{what}");
    }
}

#[test]
fn a_broken_package_leaves_the_others_as_they_are() {
    let system = System::new();
    system.install("other", &[("/usr/sbin/other", "another program", 0o755)], "");
    system.file("/usr/sbin/other", "another program", 0o755);
    for change in ["substr(blob, 1, 40)", "CAST(blob || zeroblob(9 << 20) AS BLOB)"] {
        system.forge(&format!("UPDATE Packages SET blob = {change} WHERE hnum = 1"));
        assert_eq!(system.packages().refusal(), None);
        assert!(!system.is_own(CHRONYD) && system.is_own("/usr/sbin/other"), "{change}");
    }
}

#[test]
fn a_damaged_file_is_read_in_bounds_and_never_vouches_for_another_content() {
    let system = System::new();
    let whole = fs::read(system.database()).unwrap();
    system.file(CHRONYD, "another program", 0o755);
    // Cut anywhere, and with each 61st byte inverted: pages, cells, the schema and the header itself.
    for end in (0..whole.len()).step_by(1_999) {
        fs::write(system.database(), &whole[..end]).unwrap();
        assert!(!system.is_own(CHRONYD), "cut at {end}");
    }
    for at in (0..whole.len()).step_by(61 * 16) {
        let mut damaged = whole.clone();
        damaged.iter_mut().skip(at).step_by(61).take(16).for_each(|byte| *byte = !*byte);
        fs::write(system.database(), damaged).unwrap();
        assert!(!system.is_own(CHRONYD), "damaged at {at}");
    }
}
