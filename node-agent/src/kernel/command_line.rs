//! Command lines of programs that may drive runs.

use crate::workload::engines::Argv;
use node_agent_ebpf::runs::Program;
use std::{fs::File, io::Read as _};

/// Longest command line that is read from `/proc`, in bytes.
const MAX_CMDLINE_BYTES: u64 = 128 * 1024;

/// The command line of a living process.
pub(super) fn cmdline(pid: u32) -> Option<Argv> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(MAX_CMDLINE_BYTES).read_to_end(&mut bytes).ok()?;
    let is_cut = u64::try_from(bytes.len()).is_ok_and(|length| length >= MAX_CMDLINE_BYTES);
    Some(Argv::parse(&bytes, is_cut))
}

/// The command line that the programs told of, from `/proc` where they saw only its beginning.
pub(super) fn argv(told: &Program) -> Argv {
    let length = usize::try_from(told.argv_bytes).unwrap_or(usize::MAX);
    let held = &told.argv[..length.min(told.argv.len())];
    let is_cut = length > told.argv.len();
    let whole = if is_cut { cmdline(told.event.pid) } else { None };
    whole.filter(|whole| whole.get(0).is_some()).unwrap_or_else(|| Argv::parse(held, is_cut))
}
