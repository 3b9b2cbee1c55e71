//! Which GPUs and other accelerators this host has. What they do is another matter: without that a host with one is never proven idle.

use super::accelerators::{self, Kind};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// How many GPUs of each maker, and what else computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// NVIDIA's.
    pub nvidia: usize,
    /// AMD's.
    pub amd: usize,
    /// Accelerators that this version does not read, AMD's GPUs among them: how many of each, by maker and number.
    pub unread: BTreeMap<String, usize>,
    /// Why the bus, or a device on it, could not be read: there may be more.
    pub unreadable: Option<String>,
}

impl Bus {
    /// Counts them below `devices`, which is `/sys/bus/pci/devices`, and what has no place there below `class`, which is `/sys/class`. Where
    /// a folder is missing there is nothing of its kind on this host; what cannot be read may be an accelerator.
    #[must_use]
    pub fn read(devices: &Path, class: &Path) -> Self {
        let mut bus = Self::default();
        for device in bus.entries(devices) {
            let read = |file| fs::read_to_string(device.join(file));
            match read("vendor").and_then(|vendor| Ok((vendor, read("class")?))) {
                Ok((vendor, class)) => bus.count(&vendor, &read("device").unwrap_or_default(), &class),
                Err(error) => bus.unreadable = Some(format!("{} cannot be read: {error}", device.display())),
            }
        }
        bus.count_beside(class);
        bus
    }

    fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
        match list() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.unreadable = Some(format!("{} cannot be listed: {error}", folder.display()));
                Vec::new()
            }
            Ok(entries) => entries,
        }
    }

    /// Whether there is any GPU, or may be.
    #[must_use]
    pub fn any_gpu(&self) -> bool {
        self.nvidia > 0 || self.amd > 0 || self.unreadable.is_some()
    }

    fn count(&mut self, vendor: &str, device: &str, class: &str) {
        let kind = accelerators::kind(vendor, device, class);
        match kind {
            Some(Kind::Nvidia) => self.nvidia += 1,
            Some(Kind::Amd) => self.amd += 1,
            Some(Kind::Other) | None => {}
        }
        if matches!(kind, Some(Kind::Amd | Kind::Other)) {
            *self.unread.entry(accelerators::named(vendor, device)).or_default() += 1;
        }
    }

    /// What the kernel calls an accelerator (`/sys/class/accel`) or a compute device of AMD's (`/sys/class/kfd`) and the bus does not show
    /// as one: <https://docs.kernel.org/accel/introduction.html>
    fn count_beside(&mut self, class: &Path) {
        for accelerator in self.entries(&class.join("accel")) {
            let read = |file| fs::read_to_string(accelerator.join("device").join(file)).unwrap_or_default();
            if accelerators::kind(&read("vendor"), &read("device"), &read("class")).is_none() {
                *self.unread.entry("a device in /sys/class/accel".to_owned()).or_default() += 1;
            }
        }
        let computes = |node: &PathBuf| {
            let properties = fs::read_to_string(node.join("properties")).unwrap_or_default();
            properties.lines().any(|line| line.strip_prefix("simd_count ").is_some_and(|count| count.trim() != "0"))
        };
        let nodes = self.entries(&class.join("kfd/kfd/topology/nodes")).iter().filter(|node| computes(node)).count();
        if self.amd == 0 && nodes > 0 {
            *self.unread.entry("a device in /sys/class/kfd".to_owned()).or_default() += nodes;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn device(folder: &Path, vendor: &str, device: &str, class: &str) {
        fs::create_dir_all(folder).unwrap();
        for (file, text) in [("vendor", vendor), ("device", device), ("class", class)] {
            fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn gpus_are_counted_by_maker_and_what_is_not_read_by_number() {
        let folder = tempfile::tempdir().unwrap();
        let pci = folder.path().join("pci");
        for (index, (vendor, number, class)) in [
            ("0x10de", "0x2330", "0x030200"),
            ("0x1002", "0x74a1", "0x120000"),
            ("0x8086", "0x0bda", "0x038000"),
            ("0x8086", "0x0bda", "0x038000"),
            ("0x1d0f", "0x1111", "0x030000"),
        ]
        .into_iter()
        .enumerate()
        {
            device(&pci.join(format!("0000:00:{index:02x}.0")), vendor, number, class);
        }
        let bus = Bus::read(&pci, &folder.path().join("class"));
        let unread = BTreeMap::from([("AMD 1002:74a1".to_owned(), 1), ("Intel 8086:0bda".to_owned(), 2)]);
        assert_eq!(bus, Bus { nvidia: 1, amd: 1, unread, unreadable: None });
    }

    #[test]
    fn what_the_kernel_calls_an_accelerator_is_one_wherever_it_is_plugged_in() {
        let folder = tempfile::tempdir().unwrap();
        let class = folder.path().join("class");
        let read = || Bus::read(&folder.path().join("pci"), &class);
        // The same device on the bus and in its class.
        device(&folder.path().join("pci/0000:00:01.0"), "0x1da3", "0x1020", "0x120000");
        device(&class.join("accel/accel0/device"), "0x1da3", "0x1020", "0x120000");
        assert_eq!(read().unread, BTreeMap::from([("Habana 1da3:1020".to_owned(), 1)]));
        fs::create_dir_all(class.join("accel/accel1/device")).unwrap();
        for (node, count) in [("0", "0"), ("1", "304")] {
            let node = class.join("kfd/kfd/topology/nodes").join(node);
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("properties"), format!("cpu_cores_count 8\nsimd_count {count}\n")).unwrap();
        }
        let unread: Vec<_> = read().unread.into_iter().collect();
        let beside = [("a device in /sys/class/accel".to_owned(), 1), ("a device in /sys/class/kfd".to_owned(), 1)];
        assert_eq!(unread[1..], beside);
        assert!(!read().any_gpu());
    }

    #[test]
    fn a_host_without_pci_has_none() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(Bus::read(nowhere, nowhere), Bus::default());
    }

    #[test]
    fn what_cannot_be_read_may_be_a_gpu() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("devices/0000:00:01.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("vendor"), "0x1002").unwrap();
        let class = folder.path().join("class");
        let bus = Bus::read(&folder.path().join("devices"), &class);
        assert!(bus.any_gpu() && bus.unreadable.is_some_and(|why| why.contains("0000:00:01.0 cannot be read")));
        // A file where the folder should be.
        let bus = Bus::read(&device.join("vendor"), &class);
        assert!(bus.any_gpu() && bus.unreadable.is_some_and(|why| why.contains("cannot be listed")));
    }
}
