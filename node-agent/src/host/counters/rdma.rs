//! `/sys/class/infiniband`: bytes that RDMA adapters (InfiniBand, RoCE, iWARP, EFA) moved past the sockets, where no counter of a
//! process and none of an interface shows them.
//!
//! Every adapter and every port counts, or none is told: a sum without one port would be a figure that is wrong in silence. Traffic
//! of IP over InfiniBand is in these counters and in its interface's, too.
//!
//! Layout: <https://github.com/torvalds/linux/blob/v6.12/Documentation/ABI/stable/sysfs-class-infiniband>. `counters/port_*_data` are
//! in words of four bytes. Adapters without them count bytes in `hw_counters`: EFA and Broadcom's
//! (<https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/hw/efa/efa_verbs.c#L39>), Intel's and Google's by IP version
//! (<https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/hw/irdma/verbs.c>). Whether EFA's `tx_bytes` hold what RDMA reads and
//! writes moved is not documented, so the larger of it and of the sum of its parts counts.
//!
//! Cost: two to eight small files for each port; an adapter answers at most once in 10 ms (`lifespan`).

use super::Traffic;
use crate::coverage::{Capabilities, Status};
use std::{fs, io, path::Path};

/// Old adapters count in 32 bits and stop at the end.
const FULL: u64 = u32::MAX as u64;
/// What EFA received, by operation.
const RECEIVED: [&str; 3] = ["recv_bytes", "rdma_read_bytes", "rdma_write_recv_bytes"];
/// What EFA sent, by operation.
const SENT: [&str; 3] = ["send_bytes", "rdma_read_resp_bytes", "rdma_write_bytes"];

/// The sum over all ports below `class`, which is `/sys/class/infiniband`; absent without an adapter.
pub(super) fn read(class: &Path, capabilities: &mut Capabilities) -> Option<Traffic> {
    match sum(class) {
        Ok(Some(traffic)) => {
            capabilities.ok("rdma");
            Some(traffic)
        }
        Ok(None) => {
            capabilities.set("rdma", Status::NotApplicable, "this host has no RDMA adapter");
            None
        }
        Err((status, reason)) => {
            capabilities.set("rdma", status, reason);
            None
        }
    }
}

type Refusal = (Status, String);

fn refusal(path: &Path, error: &io::Error) -> Refusal {
    (Status::of_io(error), format!("{} cannot be read: {error}", path.display()))
}

/// The names in a folder; none where it is missing.
fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, Refusal> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| refusal(folder, &error)),
    }
}

fn sum(class: &Path) -> Result<Option<Traffic>, Refusal> {
    let adapters = entries(class)?;
    let mut sum = Traffic::default();
    for adapter in &adapters {
        let ports = entries(&adapter.join("ports"))?;
        if ports.is_empty() {
            return Err((Status::Unsupported, format!("the RDMA adapter {} shows no port", name(adapter))));
        }
        for port in ports {
            let traffic = of_port(&port)?.ok_or_else(|| {
                let reason = format!("port {} of the RDMA adapter {} counts no bytes", name(&port), name(adapter));
                (Status::Unsupported, reason)
            })?;
            sum.in_bytes = sum.in_bytes.saturating_add(traffic.in_bytes);
            sum.out_bytes = sum.out_bytes.saturating_add(traffic.out_bytes);
        }
    }
    Ok((!adapters.is_empty()).then_some(sum))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn of_port(port: &Path) -> Result<Option<Traffic>, Refusal> {
    let pair = |received: Option<u64>, sent: Option<u64>| {
        let (in_bytes, out_bytes) = received.zip(sent)?;
        Some(Traffic { in_bytes, out_bytes })
    };
    let words = |file: &str| Ok(number(&port.join("counters").join(file))?.map(|words| words.saturating_mul(4)));
    if let Some(traffic) = pair(words("port_rcv_data")?, words("port_xmit_data")?) {
        return Ok(Some(traffic));
    }
    let one = |file: &str| number(&port.join("hw_counters").join(file));
    let all = |files: &[&str]| -> Result<Option<u64>, Refusal> {
        let mut found: Option<u64> = None;
        for file in files {
            found = one(file)?.map(|bytes| bytes.saturating_add(found.unwrap_or(0))).or(found);
        }
        Ok(found)
    };
    if let (Some(received), Some(sent)) = (one("rx_bytes")?, one("tx_bytes")?) {
        let parts = (all(&RECEIVED)?.unwrap_or(0), all(&SENT)?.unwrap_or(0));
        return Ok(pair(Some(received.max(parts.0)), Some(sent.max(parts.1))));
    }
    Ok(pair(all(&["ip4InOctets", "ip6InOctets"])?, all(&["ip4OutOctets", "ip6OutOctets"])?))
}

/// One counter; absent where the adapter has none of that name.
fn number(file: &Path) -> Result<Option<u64>, Refusal> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| refusal(file, &error))?,
    };
    match text.trim().parse() {
        Ok(FULL) => Err((Status::Broken, format!("{} counts in 32 bits and is full", file.display()))),
        Ok(number) => Ok(Some(number)),
        // Some drivers say `N/A (no PMA)`.
        Err(_) => Err((Status::Unsupported, format!("{} holds no number", file.display()))),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A class folder with these counters.
    fn class(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, value) in files {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{value}\n")).unwrap();
        }
        folder
    }

    fn told(files: &[(&str, &str)]) -> (Option<(u64, u64)>, Status, String) {
        let mut capabilities = Capabilities::default();
        let traffic = read(class(files).path(), &mut capabilities);
        let capability = capabilities.to_wire().remove(0);
        assert_eq!(capability.name, "rdma");
        (
            traffic.map(|traffic| (traffic.in_bytes, traffic.out_bytes)),
            capabilities.status("rdma").unwrap(),
            capability.reason,
        )
    }

    const MLX5: [(&str, &str); 6] = [
        ("mlx5_0/ports/1/counters/port_rcv_data", "5000000000"),
        ("mlx5_0/ports/1/counters/port_xmit_data", "7"),
        ("mlx5_0/ports/1/counters/port_rcv_packets", "99"),
        ("mlx5_0/ports/1/hw_counters/lifespan", "10"),
        ("mlx5_0/ports/2/counters/port_rcv_data", "1"),
        ("mlx5_0/ports/2/counters/port_xmit_data", "2"),
    ];
    const EFA: [(&str, &str); 9] = [
        ("rdmap0s6/hw_counters/submitted_cmds", "31"),
        ("rdmap0s6/ports/1/hw_counters/tx_bytes", "100"),
        ("rdmap0s6/ports/1/hw_counters/rx_bytes", "900"),
        ("rdmap0s6/ports/1/hw_counters/send_bytes", "100"),
        ("rdmap0s6/ports/1/hw_counters/recv_bytes", "10"),
        ("rdmap0s6/ports/1/hw_counters/rdma_read_bytes", "20"),
        ("rdmap0s6/ports/1/hw_counters/rdma_read_resp_bytes", "300"),
        ("rdmap0s6/ports/1/hw_counters/rdma_write_bytes", "4000"),
        ("rdmap0s6/ports/1/hw_counters/rdma_write_recv_bytes", "30"),
    ];

    #[test]
    fn ports_are_summed_in_bytes() {
        assert_eq!(told(&MLX5).0, Some((20_000_000_004, 36)));
        assert_eq!(told(&EFA).0, Some((900, 4_400)), "received: the whole is larger; sent: the parts are");
        assert_eq!(told(&[&MLX5[..], &EFA[..]].concat()).0, Some((20_000_000_904, 4_436)));
        let intel = [
            ("irdma0/ports/1/hw_counters/ip4InOctets", "5"),
            ("irdma0/ports/1/hw_counters/ip6InOctets", "6"),
            ("irdma0/ports/1/hw_counters/ip4OutOctets", "7"),
        ];
        assert_eq!(told(&intel), (Some((11, 7)), Status::Ok, String::new()));
    }

    #[test]
    fn what_is_not_counted_makes_the_whole_absent_and_never_zero() {
        let without = |gone: &str| MLX5.iter().copied().filter(|(file, _)| *file != gone).collect::<Vec<_>>();
        let (traffic, status, reason) = told(&without("mlx5_0/ports/2/counters/port_xmit_data"));
        assert_eq!((traffic, status), (None, Status::Unsupported));
        assert!(reason.contains("port 2") && reason.contains("mlx5_0"), "{reason}");
        for (value, status, why) in
            [("4294967295", Status::Broken, "32 bits"), ("N/A (no PMA)", Status::Unsupported, "no number")]
        {
            let mut files = without("mlx5_0/ports/2/counters/port_xmit_data");
            files.push(("mlx5_0/ports/2/counters/port_xmit_data", value));
            let told = told(&files);
            assert!(told.0.is_none() && told.1 == status && told.2.contains(why), "{value}: {told:?}");
        }
        let soft = [("rxe0/ports/1/hw_counters/sent_pkts", "5"), ("rxe0/ports/1/state", "4: ACTIVE")];
        assert_eq!(told(&soft).1, Status::Unsupported);
        assert_eq!(told(&[("efa_0/fw_ver", "0.0.0.0")]).1, Status::Unsupported);
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_no_host_without_adapters() {
        assert_eq!(told(&[]), (None, Status::NotApplicable, "this host has no RDMA adapter".to_owned()));
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut capabilities = Capabilities::default();
        assert_eq!(read(file.path(), &mut capabilities), None);
        assert_eq!(capabilities.status("rdma"), Some(Status::Broken));
    }
}
