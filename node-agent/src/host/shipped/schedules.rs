//! Which timers of systemd and which crontabs exist: how many the distribution ships as they are, and how many others there are.
//!
//! A timer exists if a `.wants` or `.requires` folder of a unit's load path names it and its fragment is there, or if it was made at run time
//! (`systemd-run --on-calendar`). When it elapses next only [systemd itself](super::timers) knows. Contents are hashed, to tell what a package
//! ships, and never kept or sent.
//!
//! Cost: the folders' times of change at each sample, about 25 calls; all else only after one of them has changed.

use super::{
    Count,
    crontabs::Crontabs,
    packages::Packages,
    timers::{Elapse, Timers},
    units,
};
use crate::coverage::Status;
use jiff::Timestamp;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Where systemd looks for units: systemd.unit(5), "Unit File Load Path".
const LOAD_PATH: [&str; 13] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];
const TRANSIENT: &str = "/run/systemd/transient";

/// What exists; `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    /// Enabled timers.
    pub timers: Option<Count>,
    /// Tables and jobs of cron and anacron.
    pub crontabs: Option<Count>,
    /// When the first of the timers elapses next; `None` also if none will.
    pub next: Next,
}

/// Times in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Of those that the distribution ships as they are.
    pub shipped_unix_ms: Option<i64>,
    /// Of all others.
    pub others_unix_ms: Option<i64>,
}

/// Counts them again after a change.
#[derive(Debug)]
pub(super) struct Schedules {
    /// When each folder last changed, for the last counts.
    state: Vec<(i64, i64)>,
    last: Existing,
    timers: Timers,
}

impl Schedules {
    pub(super) fn new(root: &Path) -> Self {
        Self { state: Vec::new(), last: Existing::default(), timers: Timers::new(root) }
    }

    /// `is_new` says that the package database was read anew. Beside what exists: whether it is known when timers elapse, or why it is not.
    pub(super) fn read(
        &mut self,
        packages: &mut Packages,
        crontabs: &Crontabs,
        is_new: bool,
    ) -> (Existing, Result<(), (Status, String)>) {
        let mut state = crontabs.state();
        for folder in folders(packages) {
            let metadata = fs::metadata(&folder).ok();
            state.push(metadata.map_or((0, 0), |metadata| (metadata.ctime(), metadata.ctime_nsec())));
        }
        let has_changed = is_new || state != self.state;
        if has_changed {
            self.last.timers = timers(packages);
            self.last.crontabs = crontabs.count(packages);
            self.state = state;
        }
        let known = match self.timers.read(has_changed) {
            None => Err((Status::Broken, "systemd has not answered yet".to_owned())),
            Some(Err(refusal)) => Err(refusal.clone()),
            Some(Ok(elapses)) => {
                self.last.next = next(packages, elapses, Timestamp::now().as_millisecond());
                return (self.last, Ok(()));
            }
        };
        self.last.next = Next::default();
        (self.last, known)
    }
}

/// The first of each kind that is still to come.
fn next(packages: &Packages, elapses: &[Elapse], now_unix_ms: i64) -> Next {
    let mut next = Next::default();
    for elapse in elapses.iter().filter(|elapse| elapse.unix_ms > now_unix_ms) {
        let is_shipped = units::is_shipped(packages, &elapse.unit);
        let first = if is_shipped { &mut next.shipped_unix_ms } else { &mut next.others_unix_ms };
        *first = Some(first.map_or(elapse.unix_ms, |first| first.min(elapse.unix_ms)));
    }
    next
}

/// The load path, and the folders in it that say what is enabled.
fn folders(packages: &Packages) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in LOAD_PATH {
        let folder = packages.on_disk(folder);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        folders
            .extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "wants" || kind == "requires")));
        folders.push(folder);
    }
    folders
}

fn timers(packages: &mut Packages) -> Option<Count> {
    let has_systemd = LOAD_PATH.iter().any(|folder| packages.on_disk(folder).is_dir());
    if !has_systemd {
        return Some(Count::default());
    }
    let mut names = BTreeSet::new();
    let transient = packages.on_disk(TRANSIENT);
    for folder in folders(packages) {
        let says_what_is_enabled = folder.extension().is_some() && folder.parent() != Some(transient.as_path());
        if says_what_is_enabled || folder == transient {
            names.extend(timers_in(&folder)?);
        }
    }
    let mut count = Count::default();
    for name in names {
        if has_fragment(packages, &name) {
            count.add(units::is_shipped(packages, &name));
        }
    }
    Some(count)
}

/// Names of timers in a folder; `None` if it cannot be listed.
fn timers_in(folder: &Path) -> Option<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let names = entries.map(|entry| entry.ok().map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.filter(|name| name.as_ref().is_none_or(|name| name.ends_with(".timer"))).collect()
}

/// Whether systemd would find it, and nobody masked it.
fn has_fragment(packages: &Packages, name: &str) -> bool {
    let template = name.split_once('@').map(|(base, _)| format!("{base}@.timer"));
    let names: Vec<&str> = std::iter::once(name).chain(template.as_deref()).collect();
    let found = names.iter().find_map(|name| {
        LOAD_PATH.iter().find_map(|folder| {
            let path = packages.on_disk(&format!("{folder}/{name}"));
            fs::symlink_metadata(&path).is_ok().then_some(path)
        })
    });
    // What is masked is a link to /dev/null.
    found.is_some_and(|path| fs::read_link(&path).map_or(true, |to| to != Path::new("/dev/null")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct System(tempfile::TempDir);

    impl System {
        fn new() -> Self {
            let system = Self(tempfile::tempdir().unwrap());
            fs::set_permissions(system.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
            fs::create_dir_all(system.on_disk("/var/lib/dpkg/info")).unwrap();
            system.file("/var/lib/dpkg/status", "");
            system
        }

        fn on_disk(&self, path: &str) -> PathBuf {
            self.0.path().join(path.trim_start_matches('/'))
        }

        fn file(&self, path: &str, content: &str) {
            fs::create_dir_all(self.on_disk(path).parent().unwrap()).unwrap();
            fs::write(self.on_disk(path), content).unwrap();
        }

        fn enable(&self, name: &str) {
            let folder = self.on_disk("/etc/systemd/system/timers.target.wants");
            fs::create_dir_all(&folder).unwrap();
            symlink(format!("/lib/systemd/system/{name}"), folder.join(name)).unwrap();
        }

        fn read(&self) -> Existing {
            let mut packages = Packages::read(self.0.path(), &BTreeSet::new());
            let crontabs = Crontabs::watch(self.0.path());
            Schedules::new(self.0.path()).read(&mut packages, &crontabs, true).0
        }
    }

    #[test]
    fn a_timer_counts_if_it_is_enabled_and_there_and_not_masked() {
        let system = System::new();
        assert_eq!(
            system.read(),
            Existing { timers: Some(Count::default()), crontabs: Some(Count::default()), next: Next::default() }
        );
        system.file("/etc/systemd/system/backup.timer", "[Timer]\nOnCalendar=hourly\n");
        system.file("/usr/lib/systemd/system/off.timer", "");
        assert_eq!(system.read().timers, Some(Count::default()), "nobody enabled them");
        system.enable("backup.timer");
        system.enable("gone.timer");
        system.enable("off.timer");
        symlink("/dev/null", system.on_disk("/etc/systemd/system/off.timer")).unwrap();
        assert_eq!(system.read().timers, Some(Count { shipped: 0, others: 1 }));
        system.file("/run/systemd/transient/run-r1.timer", "");
        assert_eq!(system.read().timers, Some(Count { shipped: 0, others: 2 }));
        system.file("/usr/lib/systemd/system/poll@.timer", "");
        system.enable("poll@hourly.timer");
        assert_eq!(system.read().timers, Some(Count { shipped: 0, others: 3 }), "its fragment is its template's");
    }

    #[test]
    fn each_table_and_job_counts_and_nobody_reads_what_no_package_ships() {
        let system = System::new();
        for file in ["/etc/crontab", "/etc/cron.d/.placeholder", "/etc/cron.d/mine", "/var/spool/cron/crontabs/someone"]
        {
            system.file(file, "* * * * * root job\n");
        }
        assert_eq!(system.read().crontabs, Some(Count { shipped: 0, others: 3 }));
    }

    #[test]
    fn the_first_elapse_that_is_still_to_come_is_told_by_whether_the_timer_is_shipped() {
        let system = System::new();
        system.file("/etc/systemd/system/nightly.timer", "");
        let elapse = |unit: &str, unix_ms| Elapse { unit: unit.to_owned(), unix_ms };
        let elapses = [elapse("nightly.timer", 3000), elapse("run-r1.timer", 2000), elapse("gone.timer", 1000)];
        let packages = Packages::read(system.0.path(), &BTreeSet::new());
        let others = |unix_ms| Next { shipped_unix_ms: None, others_unix_ms: unix_ms };
        assert_eq!(next(&packages, &elapses, 999), others(Some(1000)));
        assert_eq!(next(&packages, &elapses, 1000), others(Some(2000)));
        assert_eq!(next(&packages, &elapses, 3000), others(None));
    }

    #[test]
    fn a_machine_without_a_system_bus_says_so() {
        let system = System::new();
        let mut packages = Packages::read(system.0.path(), &BTreeSet::new());
        let crontabs = Crontabs::watch(system.0.path());
        let (_, known) = Schedules::new(system.0.path()).read(&mut packages, &crontabs, true);
        let (status, why) = known.unwrap_err();
        assert_eq!(status, Status::NotApplicable, "{why}");
        assert!(why.contains("/run/dbus/system_bus_socket"), "{why}");
    }
}
