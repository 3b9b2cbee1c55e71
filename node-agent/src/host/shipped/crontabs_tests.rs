//! Each place in which somebody's job can lie.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use md5::{Digest as _, Md5};
use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _};

const SHIPPED: [&str; 2] = ["/etc/crontab", "/etc/cron.daily/logrotate"];

struct System(tempfile::TempDir);

impl System {
    /// Tables that a package ships, and folders of users' tables that are empty.
    fn new() -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(system.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for file in SHIPPED {
            system.file(file, "a job");
        }
        fs::create_dir_all(system.on_disk("/var/spool/cron/crontabs")).unwrap();
        let digest = hex::encode(Md5::digest("a job"));
        let conffiles: String = SHIPPED.iter().map(|file| format!(" {file} {digest}\n")).collect();
        system.file("/var/lib/dpkg/status", &format!("Package: cron\nConffiles:\n{conffiles}"));
        fs::create_dir_all(system.on_disk("/var/lib/dpkg/info")).unwrap();
        system
    }

    fn on_disk(&self, path: &str) -> PathBuf {
        on_disk(self.0.path(), path)
    }

    fn file(&self, path: &str, content: &str) {
        fs::create_dir_all(self.on_disk(path).parent().unwrap()).unwrap();
        fs::write(self.on_disk(path), content).unwrap();
        fs::set_permissions(self.on_disk(path), fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn packages(&self) -> Packages {
        let owner = fs::metadata(self.0.path()).unwrap().uid();
        Packages::read_owned_by(self.0.path(), &BTreeSet::new(), owner)
    }
}

#[test]
fn tables_that_packages_ship_and_nobody_changed_are_the_distributions() {
    let system = System::new();
    let mut crontabs = Crontabs::watch(system.0.path());
    assert_eq!(crontabs.check(&system.packages()), Ok(()));
    assert_eq!(crontabs.check(&system.packages()), Ok(()), "the second time nothing is read again");
}

#[test]
fn any_job_of_somebody_is_noticed_whenever_it_comes() {
    type Change = fn(&System);
    let changes: [(&str, Change); 6] = [
        ("/etc/crontab is not", |system| system.file("/etc/crontab", "my job")),
        ("/etc/anacrontab is not", |system| system.file("/etc/anacrontab", "my job")),
        ("/etc/cron.d holds", |system| system.file("/etc/cron.d/mine", "my job")),
        ("/etc/cron.daily holds", |system| system.file("/etc/cron.daily/mine", "my job")),
        ("/etc/cron.daily holds", |system| system.file("/etc/cron.daily/logrotate", "changed")),
        ("/var/spool/cron/crontabs", |system| system.file("/var/spool/cron/crontabs/root", "my job")),
    ];
    for (what, change) in changes {
        let system = System::new();
        let mut before = Crontabs::watch(system.0.path());
        assert_eq!(before.check(&system.packages()), Ok(()));
        change(&system);
        for mut crontabs in [before, Crontabs::watch(system.0.path())] {
            let answer = crontabs.check(&system.packages());
            assert!(answer.as_ref().is_err_and(|reason| reason.starts_with(what)), "{what}: {answer:?}");
        }
    }
}

#[test]
fn a_table_that_came_and_went_again_is_not_forgotten() {
    let system = System::new();
    let mut crontabs = Crontabs::watch(system.0.path());
    system.file("/var/spool/cron/crontabs/root", "my job");
    fs::remove_file(system.on_disk("/var/spool/cron/crontabs/root")).unwrap();
    assert!(crontabs.check(&system.packages()).is_err());
}

#[test]
fn a_folder_that_cannot_be_listed_is_not_empty() {
    let system = System::new();
    fs::remove_dir(system.on_disk("/var/spool/cron/crontabs")).unwrap();
    fs::write(system.on_disk("/var/spool/cron/crontabs"), "no folder").unwrap();
    let answer = Crontabs::watch(system.0.path()).check(&system.packages());
    assert!(answer.is_err_and(|reason| reason.contains("cannot be listed")));
}
