//! Whether a GPU is on the PCI bus. Its readings are another matter: without them a host with a GPU is never proven idle.

use std::{fs, path::Path};

/// Vendors of data-centre GPUs, as PCI numbers them: NVIDIA and AMD. What an emulated display or a server's own
/// management chip offers is no GPU that anybody rents.
const VENDORS: [&str; 2] = ["0x10de", "0x1002"];
/// Display controllers: VGA compatible, and 3D (<https://pci-ids.ucw.cz/read/PD/03>).
const CLASSES: [&str; 2] = ["0x0300", "0x0302"];

fn is_gpu(vendor: &str, class: &str) -> bool {
    VENDORS.contains(&vendor.trim()) && CLASSES.iter().any(|wanted| class.trim().starts_with(wanted))
}

/// Whether any device on the bus is a GPU. A bus that cannot be listed has none: there is no PCI on this host.
#[must_use]
pub fn is_present() -> bool {
    is_present_under(Path::new("/sys/bus/pci/devices"))
}

fn is_present_under(devices: &Path) -> bool {
    let Ok(devices) = fs::read_dir(devices) else { return false };
    devices.filter_map(Result::ok).any(|device| {
        let read = |file| fs::read_to_string(device.path().join(file)).unwrap_or_default();
        is_gpu(&read("vendor"), &read("class"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_a_display_of_a_gpu_maker() {
        for (vendor, class, expected) in [
            ("0x10de\n", "0x030200\n", true),
            ("0x10de", "0x030000", true),
            ("0x1002", "0x030000", true),
            ("0x1d0f", "0x030000", false), // an EC2 instance's emulated VGA
            ("0x1234", "0x030000", false), // QEMU's
            ("0x10de", "0x040300", false), // the sound device of an NVIDIA card
            ("0x10de", "0x068000", false), // an NVSwitch bridge
            ("", "", false),
        ] {
            assert_eq!(is_gpu(vendor, class), expected, "{vendor} {class}");
        }
    }

    #[test]
    fn a_host_without_pci_has_none() {
        assert!(!is_present_under(Path::new("/nonexistent")));
    }
}
