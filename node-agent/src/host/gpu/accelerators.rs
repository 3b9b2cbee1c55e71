//! Which PCI devices compute beside the CPUs, and whether anybody reads what they do: pure.
//!
//! NVIDIA's GPUs are read (capability `gpu`). Of all other accelerators this version reads nothing, so a host that has one is not
//! wholly measured, and says so in the capability `accelerators` with the device's number and how many there are. An emulated display, or the one
//! of a server's own management chip, computes nothing: of other makers' display controllers only those count that
//! have no connector (3D controllers and "other").

use super::Bus;
use crate::coverage::Status;

/// What a PCI device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A GPU of NVIDIA's.
    Nvidia,
    /// A GPU of AMD's.
    Amd,
    /// Another device that computes.
    Other,
}

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const AMAZON: u16 = 0x1d0f;
const GOOGLE: u16 = 0x1ae0;
const HABANA: u16 = 0x1da3;
const INTEL: u16 = 0x8086;
/// Inferentia, Trainium 1, Inferentia 2, Trainium 2 and 3, which call themselves a system peripheral: `neuron_pci.c` of
/// <https://github.com/aws-neuron/aws-neuron-driver>
const NEURON: [u16; 8] = [0x7064, 0x7065, 0x7066, 0x7067, 0x7164, 0x7264, 0x7364, 0x7564];
/// TPUs from v2 on; up to v6e: <https://github.com/jax-ml/jax/blob/152099ee0ef31119f16f4c2dac50d84fcb1575ef/jax/_src/hardware_utils.py#L19-L55>
const TPU: [u16; 7] = [0x0027, 0x0056, 0x005e, 0x0062, 0x0063, 0x006f, 0x0076];
/// Makers of emulated displays and of management chips: QEMU, virtio, Red Hat, VMware, Cirrus, ASPEED, Matrox, Microsoft, Oracle, Amazon.
const DISPLAYS_ONLY: [u16; 10] = [0x1234, 0x1af4, 0x1b36, 0x15ad, 0x1013, 0x1a03, 0x102b, 0x1414, 0x80ee, AMAZON];

/// Tells from vendor, device and class, as sysfs writes them; `None` is nothing that computes.
///
/// Classes: <https://pci-ids.ucw.cz/read/PD/03> (display: 00 VGA, 02 3D, 80 other, which AMD's Instincts and Intel's Data Center GPUs
/// are), <https://pci-ids.ucw.cz/read/PD/0b> (40 co-processor), <https://pci-ids.ucw.cz/read/PD/12> (processing accelerator).
pub(super) fn kind(vendor: &str, device: &str, class: &str) -> Option<Kind> {
    let number = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let vendor = u16::try_from(number(vendor)?).ok()?;
    let device = number(device).and_then(|device| u16::try_from(device).ok());
    let class = number(class)? >> 8;
    let is_display = class >> 8 == 0x03;
    let is_one_of = |devices: &[u16]| device.is_some_and(|device| devices.contains(&device));
    match vendor {
        NVIDIA if is_display || class >> 8 == 0x12 => Some(Kind::Nvidia),
        AMD if is_display || class >> 8 == 0x12 => Some(Kind::Amd),
        AMAZON if is_one_of(&NEURON) => Some(Kind::Other),
        GOOGLE if is_one_of(&TPU) => Some(Kind::Other),
        HABANA => Some(Kind::Other),
        _ if class >> 8 == 0x12 || class == 0x0b40 => Some(Kind::Other),
        _ if class == 0x0302 => Some(Kind::Other),
        _ if class == 0x0380 && !DISPLAYS_ONLY.contains(&vendor) => Some(Kind::Other),
        _ => None,
    }
}

/// A device as a reason names it: maker if it is known, vendor and device number.
pub(super) fn named(vendor: &str, device: &str) -> String {
    let bare = |text: &str| text.trim().trim_start_matches("0x").to_owned();
    let (vendor, device) = (bare(vendor), bare(device));
    let maker = match u16::from_str_radix(&vendor, 16) {
        Ok(AMAZON) => "Amazon ",
        Ok(GOOGLE) => "Google ",
        Ok(HABANA) => "Habana ",
        Ok(INTEL) => "Intel ",
        Ok(AMD) => "AMD ",
        _ => "",
    };
    format!("{maker}{vendor}:{device}")
}

/// The capability `accelerators`: whether every device that computes is read; `gpu` is how reading NVIDIA's went.
pub(super) fn state(bus: &Bus, gpu: (Status, &str)) -> (Status, String) {
    let unread: Vec<String> = bus.unread.iter().map(|(name, count)| format!("{count} of {name}")).collect();
    if !unread.is_empty() {
        let reason = format!("nobody reads what these accelerators do: {}", unread.join(", "));
        return (Status::Unsupported, reason);
    }
    if let Some(reason) = &bus.unreadable {
        return (Status::Broken, format!("there may be an accelerator: {reason}"));
    }
    match gpu {
        _ if bus.nvidia == 0 => (Status::NotApplicable, "this host has no accelerator".to_owned()),
        (Status::Ok, _) => (Status::Ok, String::new()),
        (status, reason) => (status, format!("the GPUs are not read: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_is_told_from_what_only_shows_a_picture() {
        let (nvidia, amd, other) = (Some(Kind::Nvidia), Some(Kind::Amd), Some(Kind::Other));
        for (vendor, device, class, expected, what) in [
            ("0x10de\n", "0x2330\n", "0x030200\n", nvidia, "H100"),
            ("0x10de", "0x1eb8", "0x030000", nvidia, "a GPU with a connector"),
            ("0x10de", "0x10fa", "0x040300", None, "the sound device of an NVIDIA card"),
            ("0x10de", "0x22a3", "0x068000", None, "an NVSwitch bridge"),
            ("0x1002", "0x7362", "0x030000", amd, "Radeon Pro V520"),
            ("0x1002", "0x740f", "0x038000", amd, "Instinct MI210"),
            ("0x1002", "0x74a1", "0x120000", amd, "Instinct MI300X"),
            ("0x1002", "0x1478", "0x060400", None, "the bridge on an AMD card"),
            ("0x8086", "0x0bda", "0x038000", other, "Intel Data Center GPU Max"),
            ("0x8086", "0x56c0", "0x038000", other, "Intel Data Center GPU Flex"),
            ("0x8086", "0x7d1d", "0x120000", other, "an Intel NPU"),
            ("0x8086", "0x4940", "0x0b4000", other, "Intel QuickAssist"),
            ("0x8086", "0x3e98", "0x030000", None, "the display of an Intel processor"),
            ("0x1da3", "0x1020", "0x120000", other, "Gaudi 2"),
            ("0x1d0f", "0x7064", "0x088000", other, "Inferentia"),
            ("0x1d0f", "0x7164", "0x088000", other, "Trainium"),
            ("0x1d0f", "0x1111", "0x030000", None, "an EC2 instance's emulated display"),
            ("0x1d0f", "0xec20", "0x020000", None, "an EC2 network interface"),
            ("0x1ae0", "0x0063", "0xff0000", other, "TPU v5e"),
            ("0x1ae0", "0x0042", "0x020000", None, "a Compute Engine network interface"),
            ("0x10ee", "0x5020", "0x120000", other, "a Xilinx card"),
            ("0x1234", "0x1111", "0x038000", None, "QEMU's bochs-display"),
            ("0x1af4", "0x1050", "0x038000", None, "QEMU's virtio-gpu"),
            ("0x1a03", "0x2000", "0x030000", None, "an ASPEED management chip"),
            ("0x102b", "0x0522", "0x030000", None, "a Matrox management chip"),
            ("0x1013", "0x00b8", "0x030000", None, "a Cirrus of Xen's"),
            ("", "", "", None, "nothing"),
        ] {
            assert_eq!(kind(vendor, device, class), expected, "{what}");
        }
    }

    #[test]
    fn an_accelerator_that_nobody_reads_is_named_with_its_number_and_count() {
        let bus = |nvidia: usize, unread: &[(&str, usize)]| Bus {
            nvidia,
            unread: unread.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Bus::default()
        };
        let ok = (Status::Ok, "");
        let unread = [("Amazon 1d0f:7164", 16), ("Intel 8086:4940", 1)];
        let reason = "nobody reads what these accelerators do: 16 of Amazon 1d0f:7164, 1 of Intel 8086:4940".to_owned();
        assert_eq!(state(&bus(8, &unread), ok), (Status::Unsupported, reason));
        assert_eq!(state(&bus(8, &[]), ok), (Status::Ok, String::new()));
        assert_eq!(state(&bus(0, &[]), (Status::NotApplicable, "none")).0, Status::NotApplicable);
        let (status, reason) = state(&bus(8, &[]), (Status::Broken, "no driver"));
        assert!(status == Status::Broken && reason.contains("no driver"), "{reason}");
        let unreadable = Bus { unreadable: Some("x cannot be read".to_owned()), ..Bus::default() };
        assert_eq!(state(&unreadable, ok).0, Status::Broken);
        assert_eq!(named("0x1d0f\n", "0x7164\n"), "Amazon 1d0f:7164");
        assert_eq!(named("0x10ee", "0x5020"), "10ee:5020");
    }
}
