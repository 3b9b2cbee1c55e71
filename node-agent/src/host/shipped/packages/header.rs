//! The files of one package, from its header as rpm's database holds it.
//!
//! Format: <https://rpm-software-management.github.io/rpm/manual/format_header.html>, in the database without its magic number: two counts, an
//! index of 16 bytes for each tag, and the data; all numbers are big-endian. What rpm adds when it installs (states, relocated paths) stands
//! behind the package's own tags and replaces them, so of two entries with one tag the last counts
//! (<https://github.com/rpm-software-management/rpm/blob/rpm-4.16.1.3-release/lib/header.c>, `hdrblobImport`).
//!
//! The bytes may be anybody's: nothing is allocated but one reference for each folder, and what does not fit ends the list.

use std::mem::size_of;

const FILE_STATES: u32 = 1029;
const FILE_MODES: u32 = 1030;
const FILE_DIGESTS: u32 = 1035;
const DIR_INDEXES: u32 = 1116;
const BASENAMES: u32 = 1117;
const DIR_NAMES: u32 = 1118;
const FILE_DIGEST_ALGORITHM: u32 = 5011;

const CHAR: u32 = 1;
const INT16: u32 = 3;
const INT32: u32 = 4;
const STRING_ARRAY: u32 = 8;

/// A file as its package says it was installed; others (replaced by another package's, left out, of another processor) are not listed.
const NORMAL: u8 = 0;
/// What rpm means where a package does not say.
const MD5: u32 = 1;
/// Packages have up to some 5,000; one with more is not read.
const MAX_FOLDERS: usize = 65_536;
/// Bytes of one entry of the index.
const ENTRY: usize = 16;

/// A file that a package installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Installed<'a> {
    /// With a slash at its end.
    pub(super) folder: &'a [u8],
    pub(super) name: &'a [u8],
    /// Type and permissions, as in `stat`.
    pub(super) mode: u16,
    /// In hexadecimal digits; empty if the package vouches for no content.
    pub(super) digest: &'a [u8],
}

/// The files of one package.
#[derive(Debug)]
pub(super) struct Files<'a> {
    /// By OpenPGP's numbers (RFC 9580, 9.5): 1 is MD5, 8 is SHA-256.
    pub(super) algorithm: u32,
    folders: Vec<&'a [u8]>,
    names: Strings<'a>,
    indexes: &'a [u8],
    modes: &'a [u8],
    digests: Strings<'a>,
    states: &'a [u8],
}

/// Reads a header; `None` if it is none. A package without files has an empty list.
pub(super) fn files(header: &[u8]) -> Option<Files<'_>> {
    let (entries, rest) = header.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let [entries, length] = [*entries, *length].map(|number| usize::try_from(u32::from_be_bytes(number)));
    let (index, data) = rest.split_at_checked(entries.ok()?.checked_mul(ENTRY)?)?;
    let tags = Tags { index, data: data.get(..length.ok()?)? };
    let none = Files {
        algorithm: MD5,
        folders: Vec::new(),
        names: Strings::default(),
        indexes: &[],
        modes: &[],
        digests: Strings::default(),
        states: &[],
    };
    if tags.find(BASENAMES).is_none() {
        return Some(none);
    }
    let folders = tags.strings(DIR_NAMES)?;
    if folders.left > MAX_FOLDERS {
        return None;
    }
    Some(Files {
        algorithm: match tags.find(FILE_DIGEST_ALGORITHM) {
            Some(_) => number(tags.numbers(FILE_DIGEST_ALGORITHM, INT32, size_of::<u32>())?, 0)?,
            None => MD5,
        },
        folders: folders.collect(),
        names: tags.strings(BASENAMES)?,
        indexes: tags.numbers(DIR_INDEXES, INT32, size_of::<u32>())?,
        modes: tags.numbers(FILE_MODES, INT16, size_of::<u16>())?,
        digests: tags.strings(FILE_DIGESTS)?,
        states: tags.numbers(FILE_STATES, CHAR, size_of::<u8>())?,
    })
}

impl<'a> Iterator for Files<'a> {
    type Item = Installed<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (name, digest) = (self.names.next()?, self.digests.next()?);
            let (state, states) = self.states.split_first()?;
            let (index, indexes) = self.indexes.split_first_chunk()?;
            let (mode, modes) = self.modes.split_first_chunk()?;
            (self.states, self.indexes, self.modes) = (states, indexes, modes);
            let folder = *self.folders.get(usize::try_from(u32::from_be_bytes(*index)).ok()?)?;
            if *state == NORMAL {
                return Some(Installed { folder, name, mode: u16::from_be_bytes(*mode), digest });
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Tags<'a> {
    index: &'a [u8],
    data: &'a [u8],
}

/// Where the values of a tag lie.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: u32,
    offset: usize,
    count: usize,
}

impl<'a> Tags<'a> {
    fn find(self, tag: u32) -> Option<Entry> {
        let entry = self.index.rchunks_exact(ENTRY).find(|entry| number(entry, 0) == Some(tag))?;
        let size = |at| usize::try_from(number(entry, at)?).ok();
        Some(Entry { kind: number(entry, 1)?, offset: size(2)?, count: size(3)? })
    }

    fn numbers(self, tag: u32, kind: u32, bytes: usize) -> Option<&'a [u8]> {
        let entry = self.find(tag).filter(|entry| entry.kind == kind)?;
        self.data.get(entry.offset..)?.get(..entry.count.checked_mul(bytes)?)
    }

    fn strings(self, tag: u32) -> Option<Strings<'a>> {
        let entry = self.find(tag).filter(|entry| entry.kind == STRING_ARRAY)?;
        Some(Strings { data: self.data.get(entry.offset..)?, left: entry.count })
    }
}

/// The number at this place of numbers of 32 bits.
fn number(numbers: &[u8], at: usize) -> Option<u32> {
    let (chunks, _) = numbers.as_chunks();
    chunks.get(at).map(|bytes| u32::from_be_bytes(*bytes))
}

/// Texts that end in a zero byte, one behind the other.
#[derive(Clone, Copy, Debug, Default)]
struct Strings<'a> {
    data: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let end = self.data.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.data.split_at_checked(end)?;
        self.data = rest.get(1..)?;
        Some(text)
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
