//! Numbers and texts as bytes, and back without trust.

use super::MAX_COLUMN_BYTES;
use crate::Value;
use std::{fmt, io};

/// Mostly small numbers and names.
const COMPRESSION_LEVEL: i32 = 3;

/// What is kept cannot be read: it is damaged, or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub(super) &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged, or of another version", self.0)
    }
}

impl std::error::Error for Damaged {}

/// Seven bits a byte, the lowest first; the highest bit says that another byte follows.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(low(number) | 0x80);
        number >>= 7;
    }
    bytes.push(low(number));
}

fn low(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or(0)
}

pub(super) fn put_length(bytes: &mut Vec<u8>, length: usize) {
    put(bytes, u64::try_from(length).unwrap_or(u64::MAX));
}

/// Small ones, of either sign, as small ones.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_length(bytes, text.len());
    bytes.extend(text.as_bytes());
}

/// Packs a column.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, COMPRESSION_LEVEL)
}

/// A packed column, of which no more is unpacked than one may have.
pub(super) fn decompress(packed: &[u8], what: &'static str) -> Result<Vec<u8>, Damaged> {
    let told = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    let length = told.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= MAX_COLUMN_BYTES);
    zstd::bulk::decompress(packed, length.ok_or(Damaged(what))?).map_err(|_| Damaged(what))
}

/// What is left of a column.
#[derive(Debug)]
pub(super) struct Left<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Left<'a> {
    pub(super) fn of(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(super) fn damaged(&self) -> Damaged {
        Damaged(self.what)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.exactly(1)?[0])
    }

    pub(super) fn exactly(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (bytes, left) = self.bytes.split_at_checked(length).ok_or(self.damaged())?;
        self.bytes = left;
        Ok(bytes)
    }

    pub(super) fn number(&mut self) -> Result<u64, Damaged> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && part > 1) {
                return Err(self.damaged());
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    pub(super) fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: usize) -> Result<u32, Damaged> {
        let number = u32::try_from(self.number()?).map_err(|_| self.damaged())?;
        if super::index(number) < end { Ok(number) } else { Err(self.damaged()) }
    }

    /// The length of something of which each part has a byte at least.
    pub(super) fn length(&mut self) -> Result<usize, Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| self.damaged())?;
        if length <= self.bytes.len() { Ok(length) } else { Err(self.damaged()) }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        let length = self.length()?;
        std::str::from_utf8(self.exactly(length)?).map_err(|_| self.damaged())
    }

    /// Several texts, and what is *not known* before them.
    pub(super) fn texts(&mut self) -> Result<Vec<Value>, Damaged> {
        let length = self.length()?;
        let mut texts = Vec::with_capacity(length + 1);
        texts.push(None);
        for _ in 0..length {
            texts.push(Some(self.text()?.into()));
        }
        Ok(texts)
    }

    pub(super) fn end(self) -> Result<(), Damaged> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.damaged()) }
    }
}
