//! `/proc/diskstats`: what went through the disks of this machine.

use std::{fs, path::Path};

/// `/proc/diskstats` counts in sectors of this size, whatever the disk's own:
/// <https://docs.kernel.org/admin-guide/iostats.html>
const SECTOR_BYTES: u64 = 512;

/// What block devices did, over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read operations completed, after merging.
    pub reads: u64,
    /// Write operations completed, after merging.
    pub writes: u64,
}

/// Sums over whole disks that stand on nothing else: a partition, a mapped, striped or looped device would count
/// the same bytes twice, and memory disks are no storage.
pub(super) fn parse(diskstats: &str, is_own_disk: impl Fn(&str) -> bool) -> Option<Disk> {
    let mut sum = Disk::default();
    for line in diskstats.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = *fields.get(2)?;
        if !is_own_disk(name) {
            continue;
        }
        let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
        sum.reads = sum.reads.saturating_add(field(3)?);
        sum.read_bytes = sum.read_bytes.saturating_add(field(5)?.saturating_mul(SECTOR_BYTES));
        sum.writes = sum.writes.saturating_add(field(7)?);
        sum.written_bytes = sum.written_bytes.saturating_add(field(9)?.saturating_mul(SECTOR_BYTES));
    }
    Some(sum)
}

/// A whole disk has an entry of its own in `/sys/block`; it stands on others if `slaves` has entries.
pub(super) fn is_own_disk(sys_block: &Path, name: &str) -> bool {
    if ["loop", "ram", "zram", "dm-", "md", "sr", "fd"].iter().any(|kind| {
        name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
    }) {
        return false;
    }
    // A name with a slash (`cciss/c0d0`) is written with an exclamation mark here.
    let dir = sys_block.join(name.replace('/', "!"));
    dir.is_dir() && fs::read_dir(dir.join("slaves")).map_or(true, |mut slaves| slaves.next().is_none())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_whole_disks_count() {
        // Linux 6.18 (20 fields), 4.14 (14 fields), 6.1.
        let diskstats = "   8       0 sda 100 7 2000 1 50 9 1000 1 0 0 0 0 0 0 0 0 0\n   8       1 sda1 90 0 1900 1 50 0 900 1 0 0 0\n 253       0 dm-0 9 0 9 9 9 0 9 9 0 0 0\n 259       0 nvme0n1 10 0 20 1 5 0 10 1 0 0 0\n";
        let expected = Disk { read_bytes: 1_034_240, written_bytes: 517_120, reads: 110, writes: 55 };
        assert_eq!(parse(diskstats, |name| name == "sda" || name == "nvme0n1"), Some(expected));
        assert_eq!(parse("8 0 sda 1 2\n", |_| true), None);
        assert_eq!(parse("", |_| true), Some(Disk::default()));
    }

    #[test]
    fn what_stands_on_other_disks_counts_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["sda/slaves", "nvme0n1", "cciss!c0d0/slaves", "bcache0/slaves/sda", "loop0"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for (name, expected) in [
            ("sda", true),
            ("nvme0n1", true),
            ("cciss/c0d0", true),
            ("bcache0", false),
            ("loop0", false),
            ("sda1", false),
            ("md127", false),
        ] {
            assert_eq!(is_own_disk(folder.path(), name), expected, "{name}");
        }
    }
}
