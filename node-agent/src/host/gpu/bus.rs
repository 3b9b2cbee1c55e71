//! Which GPUs are on the PCI bus. Their readings are another matter: without them a host with a GPU is never proven idle.

use std::{fs, path::Path};

/// NVIDIA and AMD, as PCI numbers them. What an emulated display or a server's own management chip offers is no GPU that
/// anybody rents.
const NVIDIA: &str = "0x10de";
const AMD: &str = "0x1002";
/// Display controllers: VGA compatible, and 3D (<https://pci-ids.ucw.cz/read/PD/03>).
const CLASSES: [&str; 2] = ["0x0300", "0x0302"];

/// How many GPUs of each maker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// NVIDIA's.
    pub nvidia: usize,
    /// AMD's.
    pub amd: usize,
}

impl Bus {
    /// Counts them below `devices`, which is `/sys/bus/pci/devices`. A bus that cannot be listed has none: there is no PCI
    /// on this host.
    #[must_use]
    pub fn read(devices: &Path) -> Self {
        let mut bus = Self::default();
        let Ok(devices) = fs::read_dir(devices) else { return bus };
        for device in devices.filter_map(Result::ok) {
            let read = |file| fs::read_to_string(device.path().join(file)).unwrap_or_default();
            bus.count(&read("vendor"), &read("class"));
        }
        bus
    }

    /// Whether there is any.
    #[must_use]
    pub fn any(self) -> bool {
        self != Self::default()
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
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_a_display_of_a_gpu_maker() {
        let nvidia = Bus { nvidia: 1, amd: 0 };
        let amd = Bus { nvidia: 0, amd: 1 };
        for (vendor, class, expected) in [
            ("0x10de\n", "0x030200\n", nvidia),
            ("0x10de", "0x030000", nvidia),
            ("0x1002", "0x030000", amd),
            ("0x1d0f", "0x030000", Bus::default()), // an EC2 instance's emulated VGA
            ("0x1234", "0x030000", Bus::default()), // QEMU's
            ("0x10de", "0x040300", Bus::default()), // the sound device of an NVIDIA card
            ("0x10de", "0x068000", Bus::default()), // an NVSwitch bridge
            ("", "", Bus::default()),
        ] {
            let mut bus = Bus::default();
            bus.count(vendor, class);
            assert_eq!(bus, expected, "{vendor} {class}");
        }
    }

    #[test]
    fn a_host_without_pci_has_none() {
        assert!(!Bus::read(Path::new("/nonexistent")).any());
    }
}
