//! Whether every table and every job of cron's came with the distribution.
//!
//! cron starts each job through a shell of its own, and what a shell does by itself nobody can tell from another shell's work. So its unit is upkeep
//! as long as there is nothing in it but what packages ship: `/etc/crontab`, `/etc/cron.d`, `/etc/cron.hourly` and its
//! sisters hold unchanged files of packages, and no user has a table. Contents are hashed, and never kept or sent.
//!
//! The folder of users' tables is hidden from all but root. It is listed when the agent starts, with the rights that it then has;
//! afterwards only the time of the folder's last change is looked at, which everybody may.

use super::{Count, packages::Packages};
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

const TABLE: [&str; 2] = ["/etc/crontab", "/etc/anacrontab"];
const FOLDERS: [&str; 5] =
    ["/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly"];
/// Debian's, and Red Hat's: the second holds the first where it is Debian's.
const OF_USERS: [&str; 2] = ["/var/spool/cron/crontabs", "/var/spool/cron"];
const DEBIANS_FOLDERS: [&str; 3] = ["crontabs", "atjobs", "atspool"];

/// The folders of users' tables, as they were when nobody had one.
#[derive(Debug)]
pub(super) struct Crontabs {
    root: PathBuf,
    /// Each folder with the time of its last change, or why it is not known to be empty.
    of_users: Vec<(&'static str, Result<Option<SystemTime>, String>)>,
    last: Option<Checked>,
}

/// The last answer.
#[derive(Debug)]
struct Checked {
    /// What it rests on: when each file and folder last changed.
    state: Vec<(i64, i64)>,
    answer: Result<(), String>,
}

impl Crontabs {
    pub(super) fn watch(root: &Path) -> Self {
        let of_users = OF_USERS.map(|folder| (folder, empty_since(&on_disk(root, folder), folder)));
        Self { root: root.to_owned(), of_users: of_users.to_vec(), last: None }
    }

    /// Says what is not the distribution's, if anything. Files are hashed again only after one of them, or one of the folders, has changed.
    pub(super) fn check(&mut self, packages: &Packages) -> Result<(), String> {
        self.check_users()?;
        let state = self.state();
        if let Some(last) = self.last.as_ref().filter(|last| last.state == state) {
            return last.answer.clone();
        }
        let answer = self.check_files(packages);
        self.last = Some(Checked { state, answer: answer.clone() });
        answer
    }

    /// Forgets the last answer, after packages came or went.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    fn check_users(&self) -> Result<(), String> {
        for (folder, known) in &self.of_users {
            let before = known.clone()?;
            let now = match fs::metadata(on_disk(&self.root, folder)) {
                Ok(metadata) => Some(metadata.modified().map_err(|error| format!("{folder}: {error}"))?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(format!("{folder} cannot be looked at: {error}")),
            };
            if now != before {
                return Err(format!("{folder} has changed: somebody may have a crontab"));
            }
        }
        Ok(())
    }

    /// How many tables and jobs there are; `None` if a folder cannot be listed. Files whose names begin with a dot are none to cron.
    pub(super) fn count(&self, packages: &Packages) -> Option<Count> {
        let mut count = Count::default();
        for table in TABLE {
            if fs::symlink_metadata(on_disk(&self.root, table)).is_ok() {
                count.add(packages.is_own_text(table));
            }
        }
        for folder in FOLDERS {
            for name in names_in(&on_disk(&self.root, folder))? {
                count.add(packages.is_own_text(&format!("{folder}/{name}")));
            }
        }
        for folder in OF_USERS {
            for name in names_in(&on_disk(&self.root, folder))? {
                if !DEBIANS_FOLDERS.contains(&name.as_str()) {
                    count.add(false);
                }
            }
        }
        Some(count)
    }

    /// When each table, folder and job last changed.
    pub(super) fn state(&self) -> Vec<(i64, i64)> {
        let mut state = Vec::new();
        let mut add = |path: &Path| {
            state.push(fs::metadata(path).map_or((0, 0), |metadata| (metadata.ctime(), metadata.ctime_nsec())));
        };
        TABLE.iter().chain(&OF_USERS).for_each(|table| add(&on_disk(&self.root, table)));
        for folder in FOLDERS {
            let folder = on_disk(&self.root, folder);
            add(&folder);
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                add(&entry.path());
            }
        }
        state
    }

    fn check_files(&self, packages: &Packages) -> Result<(), String> {
        for table in TABLE {
            if fs::symlink_metadata(on_disk(&self.root, table)).is_ok() && !packages.is_own_text(table) {
                return Err(format!("{table} is not as a package ships it"));
            }
        }
        for folder in FOLDERS {
            let entries = match fs::read_dir(on_disk(&self.root, folder)) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{folder} cannot be listed: {error}")),
            };
            for entry in entries {
                let entry = entry.map_err(|error| format!("{folder} cannot be listed: {error}"))?;
                let name = entry.file_name();
                if !packages.is_own_text(&format!("{folder}/{}", name.to_string_lossy())) {
                    return Err(format!("{folder} holds a job that no package ships"));
                }
            }
        }
        Ok(())
    }
}

/// When a folder without a table last changed; `None` if there is no such folder.
fn empty_since(folder: &Path, name: &str) -> Result<Option<SystemTime>, String> {
    let unreadable = |error: io::Error| format!("{name} cannot be listed: {error}");
    let metadata = match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(unreadable)?,
    };
    // Asked for before it is listed: what comes in between is noticed later.
    let changed = metadata.modified().map_err(unreadable)?;
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let is_folder = DEBIANS_FOLDERS.iter().any(|known| entry.file_name() == *known);
        if !is_folder {
            return Err(format!("{name} holds somebody's crontab"));
        }
    }
    Ok(Some(changed))
}

/// Names in a folder, but hidden ones; none if there is no such folder, `None` if it cannot be listed.
fn names_in(folder: &Path) -> Option<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let names: Option<Vec<String>> =
        entries.map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    Some(names?.into_iter().filter(|name| !name.starts_with('.')).collect())
}

fn on_disk(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
#[path = "crontabs_tests.rs"]
mod tests;
