//! Which GPUs are on the PCI bus. Their readings are another matter: without them a host with a GPU is never proven idle.

use std::{fs, io, path::Path};

/// NVIDIA and AMD, as PCI numbers them. What an emulated display or a server's own management chip offers is no GPU that
/// anybody rents.
const NVIDIA: &str = "0x10de";
const AMD: &str = "0x1002";
/// Display controllers of every kind (VGA compatible, 3D, and "other", which AMD's Instincts are), and processing accelerators:
/// <https://pci-ids.ucw.cz/read/PD/03>, <https://pci-ids.ucw.cz/read/PD/12>
const CLASSES: [&str; 2] = ["0x03", "0x1200"];

/// How many GPUs of each maker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// NVIDIA's.
    pub nvidia: usize,
    /// AMD's.
    pub amd: usize,
    /// Why the bus, or a device on it, could not be read: there may be more GPUs.
    pub unreadable: Option<String>,
}

impl Bus {
    /// Counts them below `devices`, which is `/sys/bus/pci/devices`. Where that folder is missing there is no PCI on this host; what cannot
    /// be read may be a GPU.
    #[must_use]
    pub fn read(devices: &Path) -> Self {
        let mut bus = Self::default();
        match bus.count_all(devices) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => bus.unreadable = Some(format!("{} cannot be listed: {error}", devices.display())),
            Ok(()) => {}
        }
        bus
    }

    fn count_all(&mut self, devices: &Path) -> io::Result<()> {
        for device in fs::read_dir(devices)? {
            // An entry that cannot be read is said; only the folder itself may be missing.
            let device = device.map_err(io::Error::other)?.path();
            let read = |file| fs::read_to_string(device.join(file));
            match read("vendor").and_then(|vendor| Ok((vendor, read("class")?))) {
                Ok((vendor, class)) => self.count(&vendor, &class),
                Err(error) => self.unreadable = Some(format!("{} cannot be read: {error}", device.display())),
            }
        }
        Ok(())
    }

    /// Whether there is any, or may be.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    fn count(&mut self, vendor: &str, class: &str) {
        if CLASSES.iter().any(|wanted| class.trim().starts_with(wanted)) {
            match vendor.trim() {
                NVIDIA => self.nvidia += 1,
                AMD => self.amd += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_a_display_of_a_gpu_maker() {
        let nvidia = &Bus { nvidia: 1, ..Bus::default() };
        let amd = &Bus { amd: 1, ..Bus::default() };
        let none = &Bus::default();
        for (vendor, class, expected) in [
            ("0x10de\n", "0x030200\n", nvidia),
            ("0x10de", "0x030000", nvidia),
            ("0x1002", "0x030000", amd),
            ("0x1002", "0x038000", amd),  // an Instinct MI100 to MI250
            ("0x1002", "0x120000", amd),  // an Instinct MI300
            ("0x1d0f", "0x030000", none), // an EC2 instance's emulated VGA
            ("0x1234", "0x030000", none), // QEMU's
            ("0x10de", "0x040300", none), // the sound device of an NVIDIA card
            ("0x10de", "0x068000", none), // an NVSwitch bridge
            ("0x8086", "0x120000", none), // an accelerator of another maker
            ("0x1002", "0x060400", none), // the bridge on an AMD card
            ("", "", none),
        ] {
            let mut bus = Bus::default();
            bus.count(vendor, class);
            assert_eq!(&bus, expected, "{vendor} {class}");
        }
    }

    #[test]
    fn a_host_without_pci_has_none() {
        assert!(!Bus::read(Path::new("/nonexistent")).any());
    }

    #[test]
    fn what_cannot_be_read_may_be_a_gpu() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("devices/0000:00:01.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("vendor"), "0x1002").unwrap();
        let bus = Bus::read(&folder.path().join("devices"));
        assert!(bus.any() && bus.unreadable.is_some_and(|why| why.contains("0000:00:01.0 cannot be read")));
        // A file where the folder should be.
        let bus = Bus::read(&device.join("vendor"));
        assert!(bus.any() && bus.unreadable.is_some_and(|why| why.contains("cannot be listed")));
    }
}
