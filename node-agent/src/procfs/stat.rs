//! One line of `/proc/PID/stat`: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
//!
//! The line is checked for its shape once; each reader asks for the fields that it needs, by their numbers in the manual page.

use crate::model::{comm_bytes, comm_text};
use std::{fs, io, path::Path};

/// Number of the first field behind the name.
const STATE: usize = 3;
const PARENT: usize = 4;
const SESSION: usize = 6;
const TERMINAL: usize = 7;

/// What one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    name: Vec<u8>,
    /// From field 3 on.
    fields: String,
}

impl Stat {
    /// Reads it below `proc`.
    ///
    /// # Errors
    /// If the process is gone, or hidden from this user.
    pub fn read(proc: &Path, pid: u32) -> io::Result<Self> {
        let line = fs::read(proc.join(pid.to_string()).join("stat"))?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has an unknown shape");
        Self::parse(&line).ok_or_else(unknown)
    }

    /// The name may hold anything, parentheses and spaces too: the last parenthesis ends it.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(line.get(close + 1..)?).ok()?.to_owned();
        Some(Self { name: line.get(open + 1..close)?.to_vec(), fields })
    }

    /// Executable name, as the kernel has it.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Executable name, fit for a terminal.
    #[must_use]
    pub fn visible_name(&self) -> String {
        comm_text(&comm_bytes(&self.name))
    }

    /// Whether it has ended, as its parent has not asked yet: of a process whose first thread alone ended, too.
    #[must_use]
    pub fn is_zombie(&self) -> Option<bool> {
        self.field(STATE).map(|state| matches!(state, "Z" | "X"))
    }

    /// The parent.
    #[must_use]
    pub fn parent(&self) -> Option<u32> {
        self.field(PARENT)?.parse().ok()
    }

    /// The session's first process.
    #[must_use]
    pub fn session(&self) -> Option<u32> {
        self.field(SESSION)?.parse().ok()
    }

    /// The controlling terminal as the kernel numbers devices; 0 is none.
    #[must_use]
    pub fn terminal(&self) -> Option<u32> {
        // Printed as a signed number.
        self.field(TERMINAL)?.parse().ok().map(i32::cast_unsigned)
    }

    /// Fields that are numbers without a sign, by their numbers from 3 on; `None` if one of them is missing.
    #[must_use]
    pub fn numbers<const N: usize>(&self, fields: [usize; N]) -> Option<[u64; N]> {
        let all: Vec<&str> = self.fields.split_ascii_whitespace().collect();
        let mut found = [0; N];
        for (found, field) in found.iter_mut().zip(fields) {
            *found = all.get(field.checked_sub(STATE)?)?.parse().ok()?;
        }
        Some(found)
    }

    fn field(&self, number: usize) -> Option<&str> {
        self.fields.split_ascii_whitespace().nth(number.checked_sub(STATE)?)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse(b"17 (a) b\x1b[31m(c) S 12 17 16 34819 -1 4194560 1 2 3").unwrap();
        assert_eq!((stat.name(), stat.visible_name().as_str()), (&b"a) b\x1b[31m(c"[..], "a) b\\u{1b}[31m(c"));
        assert_eq!((stat.parent(), stat.session(), stat.terminal()), (Some(12), Some(16), Some(34_819)));
        assert_eq!((stat.is_zombie(), stat.numbers([4, 9, 12])), (Some(false), Some([12, 4_194_560, 3])));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        for broken in [&b""[..], b"17 (a S 1", b"17 (a) \xff"] {
            assert_eq!(Stat::parse(broken), None);
        }
        let stat = Stat::parse(b"17 (a) Z 1 x").unwrap();
        assert_eq!(
            (stat.is_zombie(), stat.parent(), stat.session(), stat.terminal()),
            (Some(true), Some(1), None, None)
        );
        for unknown in [5, 6, 2] {
            assert_eq!(stat.numbers([4, unknown]), None, "{unknown}");
        }
        assert_eq!(Stat::parse(b"17 (a)").unwrap().is_zombie(), None);
        let negative = Stat::parse(b"17 (a) S 1 1 1 -2147483648 -1").unwrap();
        assert_eq!((negative.terminal(), negative.numbers([8])), (Some(1 << 31), None));
    }
}
