//! zstd with the contract's dictionary. To take that in costs more than to pack a heartbeat, and to make a context more than to unpack one: each thread does both once.

use std::{cell::RefCell, io, sync::LazyLock};
use zstd::{
    bulk::{Compressor, Decompressor},
    dict::{DecoderDictionary, EncoderDictionary},
    zstd_safe::get_frame_content_size,
};

/// What most envelopes share, for zstd to refer to: names of capabilities, reasons, the shape of a row. It is a part of the contract's version 1 and
/// never changes within it. It makes a heartbeat with five workloads a fourth as long, one with fifty half as long.
pub const DICTIONARY: &[u8] = include_bytes!("../proto/heartbeat-v1.dictionary");
/// zstd's own default.
pub(crate) const COMPRESSION_LEVEL: i32 = 3;

static PACKING: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, COMPRESSION_LEVEL));
pub(crate) static UNPACKING: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs bytes; the frame tells their number.
///
/// # Errors
/// Only if zstd cannot get memory.
pub(crate) fn pack(plain: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        let compressor = match compressor {
            Some(compressor) => compressor,
            None => compressor.insert(Compressor::with_prepared_dictionary(&PACKING)?),
        };
        compressor.compress(plain)
    })
}

/// How many bytes a frame says that it holds. A liar is found out when it is unpacked.
pub(crate) fn told_bytes(packed: &[u8]) -> Option<usize> {
    get_frame_content_size(packed).ok().flatten().and_then(|bytes| usize::try_from(bytes).ok())
}

/// Unpacks at most so many bytes, for which room is made at once.
///
/// # Errors
/// If it is damaged, or there are more.
pub(crate) fn unpack(packed: &[u8], most: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            None => decompressor.insert(Decompressor::with_prepared_dictionary(&UNPACKING)?),
        };
        decompressor.decompress(packed, most)
    })
}
