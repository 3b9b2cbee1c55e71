//! Whether the host's totals hold the traffic of every network device: one whose interface was moved into a container's network
//! namespace is in nobody's totals, and neither is one that a program drives past the kernel.
//!
//! A device is missing if and only if it is a network controller of PCI, virtio, Xen or Hyper-V, a driver is bound to it, and
//! it shows neither an interface nor an RDMA adapter (whose bytes have counters of their own) nor is it a radio. The kernel shows an
//! interface below its device only to the namespace that holds it (`device_namespace` in
//! <https://github.com/torvalds/linux/blob/v6.12/net/core/net-sysfs.c>). What it moved is not counted from here: `/proc/PID/net/dev` of
//! that namespace does not tell which of its interfaces has a device of its own.
//!
//! A device without a driver moves nothing. Functions of one adapter count each by itself; a bond, a bridge or a VLAN has no device.
//!
//! Cost: one listing of each bus, and three small lookups for each network device; what another PCI device is, is read once.

use crate::coverage::{Capabilities, Status};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Network controllers: <https://pci-ids.ucw.cz/read/PD/02>
const PCI_CLASS: &str = "0x02";
/// `VIRTIO_ID_NET`: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/virtio_ids.h>
const VIRTIO_NET: &str = "0x0001";
/// `HV_NIC_GUID`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/hyperv.h>
const HYPER_V_NET: &str = "{f8615163-df3e-46c5-913f-f2d2f965ed0e}";
/// The driver that only carries another bus, where the device is seen again.
const CARRIERS: [&str; 1] = ["virtio-pci"];
/// Drivers that hand a device to a program or a virtual machine begin so (`vfio-pci`, `uio_pci_generic`) or are these.
const PAST_THE_KERNEL: [&str; 4] = ["vfio", "uio", "igb_uio", "pciback"];
/// Most devices that a reason names.
const MOST_NAMED: usize = 4;

/// Looks for missing interfaces; remembers which PCI devices are network controllers.
#[derive(Debug)]
pub struct Interfaces {
    proc: PathBuf,
    sys: PathBuf,
    is_network: BTreeMap<OsString, bool>,
}

impl Default for Interfaces {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), is_network: BTreeMap::new() }
    }
}

impl Interfaces {
    /// Says in the capability `interfaces` whether the host's totals hold every device's traffic.
    pub fn state(&mut self, capabilities: &mut Capabilities) {
        let elsewhere = "the agent runs in a network namespace of its own: it does not see the host's interfaces; \
                         give it the host's network (docker --network=host, Kubernetes hostNetwork: true)";
        match self.missing() {
            _ if !self.is_in_the_hosts_network() => capabilities.set("interfaces", Status::Denied, elsewhere),
            Err(error) => capabilities.set("interfaces", Status::of_io(&error), error.to_string()),
            Ok(missing) if missing.is_empty() => capabilities.ok("interfaces"),
            Ok(missing) => {
                let named = missing.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join("; ");
                let more = missing.len().saturating_sub(MOST_NAMED);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                capabilities.set("interfaces", Status::Unsupported, format!("{named}{more}"));
            }
        }
    }

    /// Process 1 is in the host's. Each network namespace has an inode of this file of its own.
    fn is_in_the_hosts_network(&self) -> bool {
        let inode = |process: &str| fs::metadata(self.proc.join(process).join("net/dev")).map(|file| file.ino()).ok();
        inode("1").is_some_and(|of_1| inode("self") == Some(of_1))
    }

    fn missing(&mut self) -> io::Result<Vec<String>> {
        let net = self.sys.join("class/net");
        fs::read_dir(&net).map_err(|error| with_path(&net, &error))?;
        let mut missing = Vec::new();
        let text = |path: PathBuf| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let before = std::mem::take(&mut self.is_network);
        for device in devices(&self.sys, "pci")? {
            let name = device.file_name().unwrap_or_default().to_owned();
            let is_network = match before.get(&name) {
                Some(known) => *known,
                // Whose class cannot be read may be one.
                None => text(device.join("class")).map_or(true, |class| class.starts_with(PCI_CLASS)),
            };
            self.is_network.insert(name, is_network);
            if is_network {
                missing.extend(without_interface(&device));
            }
        }
        for device in devices(&self.sys, "virtio")? {
            if text(device.join("device")).is_ok_and(|id| id == VIRTIO_NET) {
                missing.extend(without_interface(&device));
            }
        }
        for device in devices(&self.sys, "vmbus")? {
            if text(device.join("class_id")).is_ok_and(|id| id == HYPER_V_NET) {
                missing.extend(without_interface(&device));
            }
        }
        for device in devices(&self.sys, "xen")? {
            if device.file_name().unwrap_or_default().to_string_lossy().starts_with("vif-") {
                missing.extend(without_interface(&device));
            }
        }
        Ok(missing)
    }
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be listed: {error}", path.display()))
}

/// The devices of a bus, by name; none where the host has no such bus.
fn devices(sys: &Path, bus: &str) -> io::Result<Vec<PathBuf>> {
    let folder = sys.join("bus").join(bus).join("devices");
    let list = || fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut found = match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        listed => listed.map_err(|error| with_path(&folder, &error))?,
    };
    found.sort();
    Ok(found)
}

/// Why this device's traffic is not in the host's totals; `None` if it is, or if the device moves nothing.
fn without_interface(device: &Path) -> Option<String> {
    let driver = fs::read_link(device.join("driver")).ok()?;
    let driver = driver.file_name()?.to_string_lossy().into_owned();
    let has = |kind: &str| fs::read_dir(device.join(kind)).is_ok_and(|mut entries| entries.next().is_some());
    if CARRIERS.contains(&driver.as_str()) || ["net", "infiniband", "ieee80211"].into_iter().any(has) {
        return None;
    }
    let name = device.file_name()?.to_string_lossy().into_owned();
    let why = if PAST_THE_KERNEL.iter().any(|past| driver.starts_with(past)) {
        "is driven past the kernel"
    } else {
        "has its interface in another network namespace"
    };
    Some(format!("the network device {name} (driver {driver}) {why}: its traffic is not counted"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A host on paper: `/proc` and `/sys` in a folder.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            for process in ["1", "self"] {
                fs::create_dir_all(host.path("proc").join(process).join("net")).unwrap();
            }
            fs::write(host.path("proc/1/net/dev"), "").unwrap();
            fs::hard_link(host.path("proc/1/net/dev"), host.path("proc/self/net/dev")).unwrap();
            fs::create_dir_all(host.path("sys/class/net")).unwrap();
            host
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        /// A device with a file, a driver if any, and these folders below it.
        fn with(self, device: &str, file: (&str, &str), driver: &str, children: &[&str]) -> Self {
            let folder = self.path("sys/bus").join(device);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file.0), format!("{}\n", file.1)).unwrap();
            if !driver.is_empty() {
                symlink(format!("../../drivers/{driver}"), folder.join("driver")).unwrap();
            }
            children.iter().for_each(|child| fs::create_dir_all(folder.join(child)).unwrap());
            self
        }

        fn told(&self) -> (Status, String) {
            let mut interfaces = Interfaces { proc: self.path("proc"), sys: self.path("sys"), ..Interfaces::default() };
            let mut capabilities = Capabilities::default();
            interfaces.state(&mut capabilities);
            let first = capabilities.clone();
            interfaces.state(&mut capabilities);
            assert_eq!(first, capabilities, "what is remembered changes nothing");
            (capabilities.status("interfaces").unwrap(), capabilities.to_wire().remove(0).reason)
        }
    }

    const ETHERNET: (&str, &str) = ("class", "0x020000");

    #[test]
    fn a_device_with_its_interface_here_is_counted() {
        let host = Host::new()
            .with("pci/devices/0000:00:05.0", ETHERNET, "ena", &["net/ens5"])
            .with("pci/devices/0000:00:06.0", ETHERNET, "efa", &["infiniband/rdmap0s6"])
            .with("pci/devices/0000:00:07.0", ETHERNET, "", &[])
            .with("pci/devices/0000:00:08.0", ("class", "0x028000"), "iwlwifi", &["ieee80211/phy0"])
            .with("pci/devices/0000:00:09.0", ETHERNET, "virtio-pci", &["virtio0/net/eth0"])
            .with("pci/devices/0000:00:0a.0", ("class", "0x010802"), "nvme", &[])
            .with("virtio/devices/virtio0", ("device", "0x0001"), "virtio_net", &["net/eth0"])
            .with("virtio/devices/virtio1", ("device", "0x0002"), "virtio_blk", &[])
            .with("vmbus/devices/f8615163-0000", ("class_id", HYPER_V_NET), "hv_netvsc", &["net/eth1"])
            .with("xen/devices/vif-0", ("nodename", "device/vif/0"), "vif", &["net/eth2"])
            .with("xen/devices/vbd-768", ("nodename", "device/vbd/768"), "vbd", &[]);
        assert_eq!(host.told(), (Status::Ok, String::new()));
        assert_eq!(Host::new().told(), (Status::Ok, String::new()), "a host without any");
    }

    #[test]
    fn an_interface_that_was_moved_away_is_missed_on_every_bus() {
        let moved = "has its interface in another network namespace: its traffic is not counted";
        // The kernel leaves the folder `net` behind, empty.
        for (device, file, driver) in [
            ("pci/devices/0000:00:05.0", ETHERNET, "ena"),
            ("virtio/devices/virtio3", ("device", "0x0001"), "virtio_net"),
            ("vmbus/devices/f8615163-0000", ("class_id", HYPER_V_NET), "hv_netvsc"),
            ("xen/devices/vif-0", ("nodename", "device/vif/0"), "vif"),
        ] {
            let name = device.rsplit('/').next().unwrap();
            let (status, reason) = Host::new().with(device, file, driver, &["net"]).told();
            assert_eq!(status, Status::Unsupported, "{device}");
            assert_eq!(reason, format!("the network device {name} (driver {driver}) {moved}"));
        }
    }

    #[test]
    fn a_device_that_a_program_drives_is_missed_and_many_are_counted() {
        for driver in ["vfio-pci", "uio_pci_generic", "igb_uio"] {
            let (status, reason) = Host::new().with("pci/devices/0000:00:05.0", ETHERNET, driver, &[]).told();
            assert!(status == Status::Unsupported && reason.contains("past the kernel"), "{reason}");
        }
        let host = (0..9).fold(Host::new(), |host, number| {
            host.with(&format!("pci/devices/0000:01:00.{number}"), ETHERNET, "vfio-pci", &[])
        });
        let (_, reason) = host.told();
        assert!(
            reason.contains("0000:01:00.3") && !reason.contains("0000:01:00.4") && reason.ends_with("; and 5 more")
        );
    }

    #[test]
    fn another_network_namespace_and_a_missing_sysfs_are_said() {
        let host = Host::new().with("pci/devices/0000:00:05.0", ETHERNET, "ena", &["net/ens5"]);
        fs::remove_dir(host.path("sys/class/net")).unwrap();
        assert_eq!(host.told().0, Status::Broken);
        fs::remove_file(host.path("proc/self/net/dev")).unwrap();
        fs::write(host.path("proc/self/net/dev"), "").unwrap();
        let (status, reason) = host.told();
        assert!(status == Status::Denied && reason.contains("hostNetwork: true"), "{reason}");
    }
}
