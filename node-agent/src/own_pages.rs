//! Gives the pages of this program's own file back that only its start needed.
//!
//! To load programs, and to read type information and package databases, takes code that is hardly run again, and the kernel maps sixteen pages and more around
//! each that is touched: all of it counts as the agent's resident memory for as long as nobody wants it. What is run again is mapped again out of the page cache.

use rustix::mm::{Advice, madvise};
use std::{fs, io, ptr};

/// Gives them back.
///
/// # Errors
/// If the system refuses; then they stay mapped, and nothing else is different.
pub(crate) fn give_back() -> io::Result<()> {
    let smaps = fs::read_to_string("/proc/self/smaps")?;
    for (begin, length) in unchanged_parts(&smaps, give_back as *const () as usize) {
        // SAFETY: a mapping of this program's own file that cannot be written to and holds no page of its own: what is dropped is read from the file
        // again, the same bytes, wherever it is needed, this very function included.
        unsafe { madvise(ptr::with_exposed_provenance_mut(begin), length, Advice::LinuxDontNeed) }?;
    }
    Ok(())
}

/// A mapping, by its line in `/proc/PID/smaps`.
struct Mapping<'a> {
    begin: usize,
    end: usize,
    rights: &'a str,
    /// Device and inode of its file.
    file: (&'a str, &'a str),
    /// None of its pages differs from the file's.
    is_unchanged: bool,
}

impl<'a> Mapping<'a> {
    /// `55d0c0000000-55d0c0559000 r--p 00000000 fe:00 123 /usr/local/bin/node-agent`
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let [begin, end] = [begin, end].map(|hex| usize::from_str_radix(hex, 16).ok());
        let (rights, _, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Self { begin: begin?, end: end?, rights, file: (device, inode), is_unchanged: false })
    }
}

/// Where the file is mapped to which `code` belongs, in parts that cannot be written to and never were: begin and length.
fn unchanged_parts(smaps: &str, code: usize) -> Vec<(usize, usize)> {
    let mut mappings: Vec<Mapping<'_>> = Vec::new();
    for line in smaps.lines() {
        if let Some(kib) = line.strip_prefix("Anonymous:") {
            if let Some(last) = mappings.last_mut() {
                last.is_unchanged = kib.split_ascii_whitespace().next() == Some("0");
            }
        } else {
            mappings.extend(Mapping::of(line));
        }
    }
    let own = mappings.iter().find(|mapping| (mapping.begin..mapping.end).contains(&code)).map(|mapping| mapping.file);
    let is_own = |mapping: &&Mapping<'_>| Some(mapping.file) == own && mapping.file.1 != "0";
    let can_go = |mapping: &&Mapping<'_>| mapping.is_unchanged && ["r--p", "r-xp"].contains(&mapping.rights);
    let parts = mappings.iter().filter(is_own).filter(can_go);
    parts.map(|mapping| (mapping.begin, mapping.end.saturating_sub(mapping.begin))).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_written_to_and_never_was_is_given_back() {
        let smaps = "\
            500-600 rw-p 00000000 00:00 0\nSize: 1 kB\nAnonymous: 0 kB\n\
            1000-3000 r--p 00000000 fe:00 123 /usr/local/bin/node-agent\nSize: 8 kB\nAnonymous: 0 kB\n\
            3000-9000 r-xp 00002000 fe:00 123 /usr/local/bin/node-agent\nSize: 24 kB\nAnonymous: 0 kB\n\
            9000-a000 r--p 00008000 fe:00 123 /usr/local/bin/node-agent\nSize: 4 kB\nAnonymous: 4 kB\n\
            a000-b000 rw-p 00009000 fe:00 123 /usr/local/bin/node-agent\nSize: 4 kB\nAnonymous: 0 kB\n\
            c000-d000 r--p 00000000 fe:00 124 /usr/lib/other\nSize: 4 kB\nAnonymous: 0 kB\n\
            e000-f000 r--p 00000000 00:00 0 [vvar]\nSize: 4 kB\nAnonymous: 0 kB\n";
        assert_eq!(unchanged_parts(smaps, 0x3010), [(0x1000, 0x2000), (0x3000, 0x6000)]);
        assert_eq!(unchanged_parts(smaps, 0x550), [], "no file's code");
        assert_eq!(unchanged_parts(smaps, 0x700), [], "nobody's code");
    }

    #[test]
    fn this_program_goes_on_without_them() {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(!unchanged_parts(&smaps, give_back as *const () as usize).is_empty());
        give_back().unwrap();
        assert!(fs::metadata("/proc/self/exe").is_ok());
    }
}
