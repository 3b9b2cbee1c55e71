//! A price list on disk, read once for as long as it stays what it is. AWS's offer file of all regions has gigabytes: it takes half a minute to read, and each sweep of each account and region asks it.

use super::{
    ASKED_EACH, PriceKey, PriceTable, UnitKey, UnitTable, Unpriced,
    aws::list::{self, Rows, Wanted},
    unavailable,
};
use std::{
    collections::BTreeSet,
    fs::{File, Metadata},
    io::{self, BufReader},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Mutex;

/// A file that was changed less long ago is read again: what changes within a tick of the file system's clock has one and the same time. Some count in whole seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// What this process last read of a price list on disk. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OfferFile(Arc<Mutex<Option<Read>>>);

#[derive(Debug)]
struct Read {
    path: PathBuf,
    at: SystemTime,
    version: Version,
    machines: BTreeSet<PriceKey>,
    units: BTreeSet<UnitKey>,
    /// Those of these keys that the file has.
    rows: Rows,
}

/// What tells one content of a file from another: it changes when the file is written to, and when another file takes its name.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When content or name last changed, by the file system: unlike the time of the content, nobody can set it.
    changed: Duration,
}

impl Version {
    fn of(metadata: &Metadata) -> Option<Self> {
        let changed = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
        Some(Self { device: metadata.dev(), inode: metadata.ino(), bytes: metadata.size(), changed })
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(self.changed).is_some_and(|since| since > SETTLED)
    }
}

impl OfferFile {
    /// What the file says of these keys. It is read if it is another one than before, or has never been asked for one of them; who asks beside waits meanwhile.
    pub(super) async fn ask(
        &self,
        path: &Path,
        machines: &BTreeSet<PriceKey>,
        units: &BTreeSet<UnitKey>,
    ) -> (PriceTable, UnitTable) {
        let mut held = Arc::clone(&self.0).lock_owned().await;
        let (path, machines, units) = (path.to_owned(), machines.clone(), units.clone());
        let asked = tokio::task::spawn_blocking(move || {
            let answer = answer(&mut held, &path, &machines, &units, SystemTime::now());
            answer.unwrap_or_else(|why| unavailable(Unpriced::Source(format!("{}: {why}", path.display()))))
        });
        asked.await.unwrap_or_else(|error| unavailable(Unpriced::Source(error.to_string())))
    }
}

/// The rows of a price list that are wanted.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn rows(path: &Path, wanted: &Wanted<'_>) -> Result<Rows, String> {
    let read = File::open(path).map_err(|error| error.to_string()).and_then(|file| read(&file, wanted));
    read.map_err(|why| format!("{}: {why}", path.display()))
}

fn read(file: &File, wanted: &Wanted<'_>) -> Result<Rows, String> {
    list::read(BufReader::new(file), wanted).map_err(|error| error.to_string())
}

fn answer(
    held: &mut Option<Read>,
    path: &Path,
    machines: &BTreeSet<PriceKey>,
    units: &BTreeSet<UnitKey>,
    now: SystemTime,
) -> Result<(PriceTable, UnitTable), String> {
    // A file system of a network may tell other times than its server has: after a day it is read in any case.
    let is_of_today = |read: &Read| now.duration_since(read.at).is_ok_and(|since| since < ASKED_EACH.unsigned_abs());
    let before = held.take().filter(|read| read.path == path);
    let in_words = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(in_words)?;
    let version = Version::of(&file.metadata().map_err(in_words)?);
    if let Some(read) = before.as_ref().filter(|read| is_of_today(read) && Some(&read.version) == version.as_ref())
        && machines.is_subset(&read.machines)
        && units.is_subset(&read.units)
    {
        let tables = tables(&read.rows, machines, units);
        *held = before;
        return Ok(tables);
    }
    // What was asked before will be again, by another account and region: all of it at once.
    let (mut all_machines, mut all_units) = (machines.clone(), units.clone());
    if let Some(read) = before {
        all_machines.extend(read.machines);
        all_units.extend(read.units);
    }
    let wanted = Wanted { machines: &|key| all_machines.contains(key), units: &|key| all_units.contains(key) };
    let rows = read(&file, &wanted)?;
    tracing::debug!(path = %path.display(), machines = all_machines.len(), units = all_units.len(), "the price list was read");
    let tables = tables(&rows, machines, units);
    let still = Version::of(&file.metadata().map_err(in_words)?);
    *held = version.filter(|version| Some(version) == still.as_ref() && version.is_settled(now)).map(|version| Read {
        path: path.to_owned(),
        at: now,
        version,
        machines: all_machines,
        units: all_units,
        rows,
    });
    Ok(tables)
}

fn tables(rows: &Rows, machines: &BTreeSet<PriceKey>, units: &BTreeSet<UnitKey>) -> (PriceTable, UnitTable) {
    let (mut of_machines, mut of_units) = (PriceTable::default(), UnitTable::default());
    rows.machines.iter().filter(|row| machines.contains(&row.key)).for_each(|row| of_machines.add(row.clone()));
    rows.units.iter().filter(|row| units.contains(&row.key)).for_each(|row| of_units.add(row.clone()));
    (of_machines, of_units)
}

#[cfg(test)]
mod tests;
