//! Each place in which somebody can change a unit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use md5::{Digest as _, Md5};
use std::{
    collections::BTreeSet,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

const UNIT: &str = "routes@eth0.service";
const SHIPPED: [&str; 3] = [
    "/usr/lib/systemd/system/routes@.service",
    "/usr/lib/systemd/system/service.d/10-timeout.conf",
    "/usr/lib/systemd/system/plain.service",
];

struct System(tempfile::TempDir);

impl System {
    /// A template, a unit, and a drop-in for all services, each of a package.
    fn new() -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(system.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut sums = String::new();
        for path in SHIPPED {
            system.file(path, "[Service]\n");
            sums += &format!("{}  {}\n", hex::encode(Md5::digest("[Service]\n")), &path[1..]);
        }
        system.file("/var/lib/dpkg/info/units.list", &SHIPPED.join("\n"));
        system.file("/var/lib/dpkg/info/units.md5sums", &sums);
        system.file("/var/lib/dpkg/status", "");
        system
    }

    fn file(&self, path: &str, content: &str) {
        let path = self.0.path().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn ships(&self, unit: &str) -> bool {
        let owner = fs::metadata(self.0.path()).unwrap().uid();
        is_shipped(&Packages::read_owned_by(self.0.path(), &BTreeSet::new(), owner), unit)
    }
}

#[test]
fn a_unit_is_the_distributions_with_drop_ins_of_packages_only() {
    let system = System::new();
    for unit in [UNIT, "routes@.service", "plain.service"] {
        assert!(system.ships(unit), "{unit}");
    }
    assert!(!system.ships("other.service") && !system.ships("routes.service"));
    system.file("/etc/systemd/system/plain.service.d/README", "no configuration");
    assert!(system.ships("plain.service"));
}

#[test]
fn whatever_somebody_could_have_added_makes_it_somebodys() {
    for (path, content) in [
        ("/usr/lib/systemd/system/routes@.service", "[Service]\nExecStart=mine\n"),
        ("/usr/lib/systemd/system/service.d/10-timeout.conf", "[Service]\nExecStart=mine\n"),
        ("/usr/lib/systemd/system/service.d/20-mine.conf", "[Service]\n"),
        ("/usr/lib/systemd/system/routes@.service.d/mine.conf", "[Service]\n"),
        ("/usr/lib/systemd/system/routes@eth0.service.d/mine.conf", "[Service]\n"),
        ("/usr/local/lib/systemd/system/routes@.service", "[Service]\n"),
        ("/etc/systemd/system/routes@eth0.service", "[Service]\n"),
        // The very content that the package ships, where anybody who administers the machine puts his own.
        ("/etc/systemd/system/service.d/10-timeout.conf", "[Service]\n"),
        ("/run/systemd/system/routes@.service.d/10-timeout.conf", "[Service]\n"),
        ("/run/systemd/transient/routes@eth0.service", "[Service]\n"),
    ] {
        let system = System::new();
        system.file(path, content);
        assert!(!system.ships(UNIT), "{path}");
    }
}
