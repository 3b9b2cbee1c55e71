//! Programs of snaps that come with a cloud's images.
//!
//! A snap is one read-only file of squashfs, and the store's name of it belongs to one publisher: snapd checks its signature when it installs
//! it, and mounts it at `/snap/NAME/REVISION`. So a program there is its publisher's if and only if the mount is a read-only squashfs of a
//! loop device whose file is `/var/lib/snapd/snaps/NAME_REVISION.snap`, that file is root's alone, and the revision is a number: a snap that
//! somebody installed unsigned has one that begins with `x`
//! (<https://snapcraft.io/docs/explanation/how-snaps-work/revisions/>). Other snaps, and other programs of these, are somebody's work.
//!
//! Cost: the list of mounts, which is read anyway, whenever packages are read.

use super::tree::{Stamp, Tree};
use std::{fs, path::Path};

/// Snaps, and the daemons in them. Whether they are housekeeping is for the rules to say, by their names.
const DAEMONS: [(&str, &[&str]); 2] = [
    // Ubuntu's images for EC2 (https://snapcraft.io/amazon-ssm-agent).
    ("amazon-ssm-agent", &["amazon-ssm-agent", "ssm-agent-worker"]),
    // snapd runs its own newest version out of a snap (https://snapcraft.io/snapd).
    ("snapd", &["usr/lib/snapd/snapd"]),
];

/// What changes when a snap does: the link to the revision that runs.
pub(super) fn stamps(tree: &Tree) -> Vec<Stamp> {
    DAEMONS.iter().map(|(snap, _)| tree.stamp(&format!("/snap/{snap}/current"))).collect()
}

/// The daemons of the mounted revisions, by their paths.
pub(super) fn daemons(tree: &Tree, mountinfo: &str) -> Vec<String> {
    let Ok(root) = fs::canonicalize(&tree.root) else { return Vec::new() };
    let mounted = mountinfo.lines().filter_map(|line| mounted(&root, line));
    let mounted = mounted.filter(|snap| is_publishers(tree, snap));
    mounted
        .flat_map(|snap| {
            let (name, programs) = snap.daemons;
            programs.iter().map(move |program| format!("/snap/{name}/{}/{program}", snap.revision))
        })
        .collect()
}

/// A listed snap that is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mounted<'a> {
    daemons: (&'static str, &'static [&'static str]),
    revision: &'a str,
    /// The device, as `MAJOR:MINOR`.
    device: &'a str,
}

/// The snap of a line of mountinfo: <https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>.
fn mounted<'a>(root: &Path, line: &'a str) -> Option<Mounted<'a>> {
    let (mount, file_system) = line.split_once(" - ")?;
    let fields: Vec<&str> = mount.split(' ').collect();
    let (device, mounted, point, options) = (*fields.get(2)?, *fields.get(3)?, *fields.get(4)?, *fields.get(5)?);
    let is_read_only = options.split(',').any(|option| option == "ro");
    if mounted != "/" || !is_read_only || !file_system.starts_with("squashfs ") {
        return None;
    }
    let place = Path::new(point).strip_prefix(root).ok()?.to_str()?;
    let (name, revision) = place.strip_prefix("snap/")?.split_once('/')?;
    let daemons = DAEMONS.into_iter().find(|(snap, _)| *snap == name)?;
    let is_signed = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
    is_signed.then_some(Mounted { daemons, revision, device })
}

fn is_publishers(tree: &Tree, snap: &Mounted<'_>) -> bool {
    let file = format!("/var/lib/snapd/snaps/{}_{}.snap", snap.daemons.0, snap.revision);
    let backing = fs::read_to_string(format!("/sys/dev/block/{}/loop/backing_file", snap.device));
    // In a container that has the host's root elsewhere, the kernel may tell the path on the host.
    let is_file = backing.is_ok_and(|path| {
        let path = Path::new(path.trim_end_matches('\n'));
        path == Path::new(&file) || path == tree.on_disk(&file)
    });
    is_file && tree.guarded(&file).is_ok_and(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signed_revision_of_a_listed_snap_on_a_read_only_squashfs_is_one() {
        let line = |place: &str, kind: &str| format!("55 27 7:3 / {place} ro,nodev shared:9 - {kind} /dev/loop3 ro");
        let good = line("/snap/amazon-ssm-agent/7993", "squashfs");
        let snap = mounted(Path::new("/"), &good).expect("a snap");
        assert_eq!((snap.daemons.0, snap.revision, snap.device), ("amazon-ssm-agent", "7993", "7:3"));
        let elsewhere = line("/host/snap/snapd/1", "squashfs");
        assert_eq!(mounted(Path::new("/host"), &elsewhere).map(|snap| snap.daemons.0), Some("snapd"));
        for bad in [
            line("/snap/amazon-ssm-agent/x1", "squashfs"),
            line("/snap/amazon-ssm-agent/", "squashfs"),
            line("/snap/amazon-ssm-agent/1/2", "squashfs"),
            line("/snap/train/1", "squashfs"),
            line("/srv/snap/amazon-ssm-agent/1", "squashfs"),
            line("/snap/amazon-ssm-agent/7993", "ext4"),
            line("/snap/amazon-ssm-agent/7993", "fuse.squashfuse"),
            good.replace("ro,nodev", "rw,nodev"),
            good.replace("7:3 / ", "7:3 /part "),
            "55 27 7:3".to_owned(),
        ] {
            assert_eq!(mounted(Path::new("/"), &bad), None, "{bad}");
        }
    }
}
