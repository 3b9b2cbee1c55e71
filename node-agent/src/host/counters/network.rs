//! `/proc/1/net/dev`: what went over the wires of this machine.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// Bytes in and out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received.
    pub in_bytes: u64,
    /// Sent.
    pub out_bytes: u64,
}

/// The traffic of the network namespace that `dev` is of, each byte once.
///
/// A bridge, a bond, a VLAN or the host's end of a container's wire passes on what a network card counts already: counted are
/// interfaces with a device of their own (`/sys/class/net/X/device`), or, where none has one, all but loopback. `/sys` shows the
/// agent's own namespace: in another one than process 1, all but loopback count.
pub(super) fn of_the_host(dev: &str, proc: &Path, sys: &Path) -> Option<Traffic> {
    let inode = |process: &str| fs::metadata(proc.join(process).join("net/dev")).map(|file| file.ino()).ok();
    let is_own = inode("1").is_some_and(|inode_of_1| inode("self") == Some(inode_of_1));
    let has_device = |name: &str| is_own && sys.join("class/net").join(name).join("device").exists();
    let mut names = dev.lines().skip(2).filter_map(|line| line.rsplit_once(':')).map(|(name, _)| name.trim());
    if names.any(has_device) { parse(dev, has_device) } else { parse(dev, |name| name != "lo") }
}

/// Bytes over the interfaces that count.
fn parse(dev: &str, counts: impl Fn(&str) -> bool) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for line in dev.lines().skip(2) {
        let (name, counters) = line.rsplit_once(':')?;
        if !counts(name.trim()) {
            continue;
        }
        let counters: Vec<&str> = counters.split_ascii_whitespace().collect();
        sum.in_bytes = sum.in_bytes.saturating_add(counters.first()?.parse().ok()?);
        sum.out_bytes = sum.out_bytes.saturating_add(counters.get(8)?.parse().ok()?);
    }
    Some(sum)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_network() {
        let dev = "Inter-| Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n";
        assert_eq!(parse(dev, |name| name != "lo"), Some(Traffic { in_bytes: 100, out_bytes: 200 }));
        assert_eq!(parse("a\nb\neth0: x\n", |_| true), None);
    }

    #[test]
    fn what_a_card_counts_is_not_counted_again_by_bridge_bond_and_veth() {
        let folder = tempfile::tempdir().unwrap();
        let (proc, sys) = (folder.path().join("proc"), folder.path().join("sys"));
        let line = |name: &str| format!("  {name}:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n");
        let dev = ["lo", "eth0", "eth1", "bond0", "docker0", "veth12"].map(line).concat();
        let dev = format!("Inter-| Receive\n face |bytes\n{dev}");
        for process in ["1", "self"] {
            fs::create_dir_all(proc.join(process).join("net")).unwrap();
        }
        fs::write(proc.join("1/net/dev"), &dev).unwrap();
        fs::hard_link(proc.join("1/net/dev"), proc.join("self/net/dev")).unwrap();
        let traffic = |cards: u64| Some(Traffic { in_bytes: cards * 100, out_bytes: cards * 200 });
        assert_eq!(of_the_host(&dev, &proc, &sys), traffic(5), "without any card, all but loopback");
        for name in ["eth0", "eth1"] {
            fs::create_dir_all(sys.join("class/net").join(name).join("device")).unwrap();
        }
        assert_eq!(of_the_host(&dev, &proc, &sys), traffic(2));
        // Another file is another namespace, of which /sys says nothing.
        fs::remove_file(proc.join("self/net/dev")).unwrap();
        fs::write(proc.join("self/net/dev"), &dev).unwrap();
        assert_eq!(of_the_host(&dev, &proc, &sys), traffic(5));
    }
}
