//! What the GPU helper tells the node agent: one [`Report`] per line of JSON, at most [`MAX_LINE_BYTES`] long.
//!
//! The agent is a static binary and cannot load `libnvidia-ml.so.1`; this small program can, and does nothing else. It remembers
//! which of the driver's samples it has told of: what they come to over time is the agent's business. A driver that hangs takes this program with it
//! and not the agent, which takes silence for *not measured*.

use serde::{Deserialize, Serialize};

/// Longest line. 64 devices with 256 processes each come to 150 KiB.
pub const MAX_LINE_BYTES: usize = 256 * 1024;
/// Most devices of one report, as many as the wire contract has room for.
pub const MAX_DEVICES: usize = 64;
/// Most processes named for one device.
pub const MAX_PROCESSES: usize = 256;
/// Longest name or reason, in bytes.
pub const MAX_TEXT_BYTES: usize = 256;

/// One sample of all devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The library answered.
    Read {
        /// The devices that it knows.
        devices: Vec<Device>,
        /// Devices that it counts and cannot give a handle for: lost from the bus, or not permitted. One reason each.
        lost: Vec<String>,
    },
    /// The library cannot be used; the program ends after this line.
    Failed {
        /// What was tried, and what came of it.
        reason: String,
    },
}

/// One device, now. An absent number could not be read, and `unreadable` says why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `nvmlDeviceGetUUID`; a device without one is reported as lost.
    pub uuid: String,
    /// `nvmlDeviceGetName`; empty if it cannot be read.
    pub model: String,
    /// `nvmlDeviceGetUtilizationRates`: share of the last sample period (200 ms on an H100; 1/6 s to 1 s, by product) in which a kernel ran, in per cent. It says
    /// nothing about the periods before.
    pub utilization_percent: Option<u32>,
    /// For how long kernels ran since the report before, in microseconds, by all samples that the driver has taken since (`nvmlDeviceGetSamples`).
    pub busy_us: Option<u64>,
    /// Why `busy_us` does not cover all the time since the report before; the first report of a process has none before it, and says so.
    pub gap: Option<String>,
    /// `nvmlDeviceGetMemoryInfo_v2`, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Likewise.
    pub memory_total_bytes: Option<u64>,
    /// `nvmlDeviceGetPowerUsage`, in milliwatts.
    pub power_mw: Option<u64>,
    /// `nvmlDeviceGetTotalEnergyConsumption`, in millijoules since the driver was loaded.
    pub energy_mj: Option<u64>,
    /// Processes with a compute or a graphics context, at most [`MAX_PROCESSES`], each once.
    pub processes: Option<Vec<u32>>,
    /// How many there are.
    pub process_count: Option<u32>,
    /// `utilization: the requested operation is not available on the target device`, and so on.
    pub unreadable: Vec<String>,
}

/// `text` cut at [`MAX_TEXT_BYTES`].
#[must_use]
pub fn cut(text: &str) -> String {
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_report_fits_a_line() {
        // Control characters take six bytes each in JSON.
        let text = cut(&"\u{1}".repeat(1_000));
        assert_eq!(text.len(), MAX_TEXT_BYTES);
        let device = Device {
            uuid: cut(&"G".repeat(1_000)),
            model: cut(&"ä".repeat(1_000)),
            utilization_percent: Some(100),
            busy_us: Some(u64::MAX),
            gap: Some(format!("the driver's samples lack {} ms", u64::MAX)),
            memory_used_bytes: Some(u64::MAX),
            memory_total_bytes: Some(u64::MAX),
            power_mw: Some(u64::MAX),
            energy_mj: Some(u64::MAX),
            processes: Some(vec![u32::MAX; MAX_PROCESSES]),
            process_count: Some(u32::MAX),
            unreadable: vec![],
        };
        let report = Report::Read { devices: vec![device; MAX_DEVICES], lost: vec![] };
        let line = serde_json::to_string(&report).unwrap_or_default();
        assert!(line.len() < MAX_LINE_BYTES, "{}", line.len());
        assert_eq!(serde_json::from_str::<Report>(&line).ok(), Some(report));
        let lost = Report::Read { devices: vec![], lost: vec![text; MAX_DEVICES] };
        assert!(serde_json::to_string(&lost).is_ok_and(|line| line.len() < MAX_LINE_BYTES));
    }
}
