//! `/proc/pressure`: time in which tasks waited for CPU, memory or I/O. Three reads of about 100 bytes.
//!
//! A kernel keeps these counters from 4.20 on, if built with `CONFIG_PSI` and not told otherwise: distributions that build with
//! `CONFIG_PSI_DEFAULT_DISABLED` need `psi=1` on the kernel's command line. <https://docs.kernel.org/accounting/psi.html>

use crate::coverage::{Capabilities, Status};
use heartbeat::wire;
use std::{fs, io, path::Path};

const CAPABILITY: &str = "pressure";

/// The `total` of one line, in microseconds.
fn total(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(' '))?;
    line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total=")?.parse().ok())
}

/// Reads the three files below `proc`; absent if the kernel keeps no such counters, and then the capability says why.
pub(super) fn read(proc: &Path, capabilities: &mut Capabilities) -> Option<wire::Pressure> {
    let file = |name: &str| fs::read_to_string(proc.join("pressure").join(name));
    match (file("cpu"), file("memory"), file("io")) {
        (Ok(cpu), Ok(memory), Ok(io)) => {
            let pressure = wire::Pressure {
                cpu_some_us: total(&cpu, "some"),
                memory_some_us: total(&memory, "some"),
                memory_full_us: total(&memory, "full"),
                io_some_us: total(&io, "some"),
                io_full_us: total(&io, "full"),
            };
            if pressure.cpu_some_us.is_some() && pressure.memory_some_us.is_some() && pressure.io_some_us.is_some() {
                capabilities.ok(CAPABILITY);
            } else {
                capabilities.set(CAPABILITY, Status::Broken, "/proc/pressure has an unknown shape");
            }
            Some(pressure)
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            let (status, reason) = refusal(&error);
            capabilities.set(CAPABILITY, status, reason);
            None
        }
    }
}

/// A kernel without these counters has no such files; one that was told `psi=0` has none or, if it is older, refuses to read
/// them (`EOPNOTSUPP`).
fn refusal(error: &io::Error) -> (Status, String) {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => (
            Status::Unsupported,
            "the kernel keeps no pressure counters: it was built without CONFIG_PSI, or they are off; psi=1 on its command line switches them on"
                .to_owned(),
        ),
        _ => (Status::of_io(error), format!("/proc/pressure cannot be read: {error}")),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> (Option<wire::Pressure>, Option<Status>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pressure")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("pressure").join(name), text).unwrap();
        }
        let mut capabilities = Capabilities::default();
        let pressure = read(folder.path(), &mut capabilities);
        (pressure, capabilities.status(CAPABILITY))
    }

    const SOME: &str = "some avg10=10.25 avg60=4.22 avg300=6.84 total=5452008435\n";
    const FULL: &str = "full avg10=0.00 avg60=0.00 avg300=0.00 total=67458499\n";

    #[test]
    fn the_totals_count_and_the_averages_do_not() {
        let both = format!("{SOME}{FULL}");
        // Before Linux 5.13 the CPU file has one line.
        for cpu in [SOME, both.as_str()] {
            let (pressure, status) = with(&[("cpu", cpu), ("memory", &both), ("io", &both)]);
            let expected = wire::Pressure {
                cpu_some_us: Some(5_452_008_435),
                memory_some_us: Some(5_452_008_435),
                memory_full_us: Some(67_458_499),
                io_some_us: Some(5_452_008_435),
                io_full_us: Some(67_458_499),
            };
            assert_eq!((pressure, status), (Some(expected), Some(Status::Ok)));
        }
    }

    #[test]
    fn a_kernel_without_them_says_what_switches_them_on() {
        assert_eq!(with(&[]), (None, Some(Status::Unsupported)));
        let (status, reason) = refusal(&io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        assert_eq!(status, Status::Unsupported);
        assert!(reason.contains("psi=1"), "{reason}");
        assert_eq!(refusal(&io::Error::from_raw_os_error(libc::EACCES)).0, Status::Denied);
    }

    #[test]
    fn an_unknown_shape_is_broken() {
        let (pressure, status) = with(&[("cpu", "nothing"), ("memory", SOME), ("io", SOME)]);
        assert_eq!(pressure.and_then(|pressure| pressure.cpu_some_us), None);
        assert_eq!(status, Some(Status::Broken));
    }
}
