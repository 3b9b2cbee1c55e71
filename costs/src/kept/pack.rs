//! Kept days as columns: whose they are, what each line comes to, and for each dimension its texts and which of them each line is of. Each is packed by itself,
//! so that a question unpacks those of its own dimensions and no others.

use super::{
    DaySum, MAX_BYTES, Row, View,
    bytes::{compress, put, put_length, put_signed, put_text},
};
use crate::{Dimension, Kind, texts::Texts};
use std::{collections::BTreeMap, io};

/// How what follows is written. Whoever writes it otherwise counts on.
pub(super) const FORMAT: u8 = 1;

/// A row as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Whose days these are, on what each rests, and its bill.
    pub machines: Vec<u8>,
    /// What each line comes to.
    pub amounts: Vec<u8>,
    /// For each dimension of the view its texts, and which of them each line is of.
    pub texts: BTreeMap<Dimension, Vec<u8>>,
}

/// Packs days. A sum that is of another view, or beyond what a row may hold, is told as one that cannot be kept.
///
/// # Errors
/// If the library refuses to compress.
pub fn pack(view: View, row: &Row) -> io::Result<Packed> {
    let mut left = MAX_BYTES;
    let mut told: Vec<(&str, &[u8], Option<&DaySum>)> = Vec::with_capacity(row.len());
    for (key, day) in row {
        let sum = day.sum.as_ref().filter(|sum| sum.view() == view && sum.bytes() <= left);
        left -= sum.map_or(0, DaySum::bytes);
        told.push((key, &day.fingerprint, sum));
    }
    let sums: Vec<&DaySum> = told.iter().filter_map(|(_, _, sum)| *sum).collect();
    let mut texts = BTreeMap::new();
    for (at, dimension) in view.dimensions().iter().enumerate() {
        texts.insert(*dimension, compress(&texts_of(&sums, at))?);
    }
    Ok(Packed { machines: compress(&machines(&told))?, amounts: compress(&amounts(&sums))?, texts })
}

fn machines(told: &[(&str, &[u8], Option<&DaySum>)]) -> Vec<u8> {
    let (mut whys, mut heads) = (Texts::default(), Vec::new());
    let mut before = "";
    for (key, ..) in told {
        // Keys in their order begin as the one before.
        let same = key.char_indices().zip(before.chars()).find(|((_, one), other)| one != other);
        let same = same.map_or(key.len().min(before.len()), |((at, _), _)| at);
        put_length(&mut heads, same);
        put_text(&mut heads, &key[same..]);
        before = key;
    }
    told.iter().for_each(|(_, fingerprint, _)| heads.extend(*fingerprint));
    for (_, _, sum) in told {
        let Some(sum) = sum else {
            heads.push(0);
            continue;
        };
        heads.push(1);
        put(&mut heads, sum.bill_micros);
        put(&mut heads, sum.billed_s);
        let versions = versions(sum);
        put_length(&mut heads, versions.len());
        versions.iter().for_each(|version| put_signed(&mut heads, *version));
        put_length(&mut heads, sum.lines.len());
        put_length(&mut heads, sum.reasons.len());
        for ((kind, why), (seconds, micros)) in &sum.reasons {
            heads.push(code(*kind));
            put(&mut heads, whys.number(&Some(why.clone())).into());
            put(&mut heads, *seconds);
            put(&mut heads, *micros);
        }
    }
    let mut bytes = vec![FORMAT];
    put_texts(&mut bytes, &whys);
    put_length(&mut bytes, told.len());
    bytes.extend(heads);
    bytes
}

/// The versions that lines are of, in their order.
fn versions(sum: &DaySum) -> Vec<i64> {
    let mut versions: Vec<i64> = sum.lines.keys().map(|of| of.version).collect();
    versions.dedup();
    versions
}

fn amounts(sums: &[&DaySum]) -> Vec<u8> {
    let (mut of_versions, mut kinds, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for sum in sums {
        let versions = versions(sum);
        for (of, amount) in &sum.lines {
            put_length(&mut of_versions, versions.partition_point(|version| *version < of.version));
            kinds.push(code(of.kind));
            put(&mut amounts, *amount);
        }
    }
    let mut bytes = vec![FORMAT];
    put_length(&mut bytes, kinds.len());
    bytes.extend(of_versions.into_iter().chain(kinds).chain(amounts));
    bytes
}

/// The texts of the dimension at this place, and which of them each line is of.
fn texts_of(sums: &[&DaySum], at: usize) -> Vec<u8> {
    let (mut texts, mut lines) = (Texts::default(), Vec::new());
    for of in sums.iter().flat_map(|sum| sum.lines.keys()) {
        put(&mut lines, texts.number(&of.values.get(at).cloned().flatten()).into());
    }
    let mut bytes = vec![FORMAT];
    put_texts(&mut bytes, &texts);
    bytes.extend(lines);
    bytes
}

fn put_texts(bytes: &mut Vec<u8>, texts: &Texts) {
    put_length(bytes, texts.values().len() - 1);
    texts.values().iter().flatten().for_each(|text| put_text(bytes, text));
}

/// The place of a kind among all.
fn code(kind: Kind) -> u8 {
    let at = Kind::ALL.iter().position(|one| *one == kind);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}
