//! `node-agent-gpu [MILLISECONDS]`: writes one line of JSON per sample to standard output, until nobody reads it.
//!
//! The node agent starts it where an NVIDIA GPU is on the bus. It drops every capability first, opens the library, and ends
//! when a line cannot be written (the agent is gone) or the library fails (the agent starts it again, later).

mod nvml;
mod samples;

use node_agent_gpu::Report;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use std::{
    io::{self, Write as _},
    process::ExitCode,
    thread,
    time::Duration,
};

/// The driver keeps its samples for at least 14 s (an H100): reading them less often would make what is told older, and reading more often cost more.
const EVERY: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // The library runs code of the driver's vendor: it gets no right that sample does not need. A plain user has none.
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    if let Err(error) = set_no_new_privs(true).and_then(|()| set_capabilities(None, none)) {
        return fail(format!("the helper cannot drop its rights: {error}"));
    }
    let every = std::env::args().nth(1).and_then(|text| text.parse().ok()).map_or(EVERY, Duration::from_millis);
    let mut reader = match nvml::open() {
        Ok(reader) => reader,
        Err(reason) => return fail(reason),
    };
    loop {
        let report = reader.read();
        let failed = matches!(report, Report::Failed { .. });
        if tell(&report).is_err() || failed {
            return ExitCode::FAILURE;
        }
        thread::sleep(every);
    }
}

fn fail(reason: String) -> ExitCode {
    // Whether or not somebody reads it: this ends here.
    let _ = tell(&Report::Failed { reason });
    ExitCode::FAILURE
}

fn tell(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
