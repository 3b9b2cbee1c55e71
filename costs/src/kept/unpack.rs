//! Kept days, unpacked. Nothing of what is damaged is told: it is seen before anything is taken up.

use super::{
    DaySum, Fingerprint, KeptDay, Packed, Row, View,
    bytes::{Damaged, Left, decompress},
    index,
    pack::FORMAT,
    sum::Of,
};
use crate::{Dimension, Kind, Value};
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// What is kept of a machine's day, as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Of what it rests on.
    pub fingerprint: Fingerprint,
    /// The names of the machine's versions that its lines are of.
    pub versions: Vec<i64>,
    pub(crate) bill_micros: u64,
    pub(crate) billed_s: u64,
    /// Seconds and micro-dollars.
    pub(crate) reasons: Vec<(Kind, Arc<str>, u64, u64)>,
}

/// Some machines' days, unpacked as far as a question needs it.
#[derive(Debug)]
pub struct Days {
    heads: Vec<Head>,
    /// Of each line the place of its version among those of its machine.
    versions: Vec<u32>,
    kinds: Vec<Kind>,
    amounts: Vec<u64>,
    texts: BTreeMap<Dimension, (Vec<Value>, Vec<u32>)>,
}

#[derive(Debug)]
struct Head {
    key: String,
    whole: Whole,
    /// Its lines; none if the day is not kept.
    lines: Option<Range<usize>>,
}

/// On what each machine's day rests, by the machine's key.
///
/// # Errors
/// If it is damaged, or of another version.
pub fn fingerprints(machines: &[u8]) -> Result<Vec<(String, Fingerprint)>, Damaged> {
    Ok(heads(machines)?.into_iter().map(|head| (head.key, head.whole.fingerprint)).collect())
}

impl Days {
    /// Unpacks whose days these are, what each line comes to, and the texts of these dimensions.
    ///
    /// # Errors
    /// If any of it is damaged, of another version, or not there.
    pub fn unpack(packed: &Packed, dimensions: &[Dimension]) -> Result<Self, Damaged> {
        let heads = heads(&packed.machines)?;
        let expected = heads.iter().filter_map(|head| head.lines.as_ref()).map(|lines| lines.end).max().unwrap_or(0);
        let what = "what kept costs come to";
        let bytes = decompress(&packed.amounts, what)?;
        let mut left = begin(&bytes, what)?;
        if left.length()? != expected {
            return Err(left.damaged());
        }
        let mut versions = Vec::with_capacity(expected);
        for head in &heads {
            for _ in head.lines.clone().unwrap_or_default() {
                versions.push(left.below(head.whole.versions.len())?);
            }
        }
        let kinds = (0..expected).map(|_| kind(&mut left)).collect::<Result<_, _>>()?;
        let amounts = (0..expected).map(|_| left.number()).collect::<Result<_, _>>()?;
        left.end()?;
        let mut texts = BTreeMap::new();
        for dimension in dimensions {
            let packed = packed.texts.get(dimension).ok_or(Damaged("the texts of kept costs"))?;
            texts.insert(*dimension, column(packed, expected)?);
        }
        Ok(Self { heads, versions, kinds, amounts, texts })
    }

    /// Each machine's day that is kept: its key, the day as a whole, and its lines.
    pub(crate) fn told(&self) -> impl Iterator<Item = (&str, &Whole, Range<usize>)> {
        self.heads.iter().filter_map(|head| Some((&*head.key, &head.whole, head.lines.clone()?)))
    }

    /// The place of a line's version among those of its machine, on what it was spent, and micro-dollars or seconds.
    pub(crate) fn line(&self, at: usize) -> (usize, Kind, u64) {
        (index(self.versions[at]), self.kinds[at], self.amounts[at])
    }

    /// The texts of a dimension, and of each line which of them it is of; none if the dimension was not unpacked.
    pub(crate) fn column(&self, dimension: Dimension) -> Option<(&[Value], &[u32])> {
        self.texts.get(&dimension).map(|(texts, lines)| (&**texts, &**lines))
    }

    /// All days as they were before they were packed.
    ///
    /// # Errors
    /// If any of it is damaged, of another version or view.
    pub fn row(view: View, packed: &Packed) -> Result<Row, Damaged> {
        let days = Self::unpack(packed, view.dimensions())?;
        let columns: Vec<_> = view.dimensions().iter().filter_map(|dimension| days.column(*dimension)).collect();
        let mut row = Row::new();
        for Head { key, whole, lines } in &days.heads {
            let sum = lines.clone().map(|lines| {
                let mut sum = DaySum::new(view);
                (sum.bill_micros, sum.billed_s) = (whole.bill_micros, whole.billed_s);
                for (kind, why, seconds, micros) in &whole.reasons {
                    sum.reasons.insert((*kind, Arc::clone(why)), (*seconds, *micros));
                }
                for at in lines {
                    let (version, kind, amount) = days.line(at);
                    let values = columns.iter().map(|(texts, of_lines)| texts[index(of_lines[at])].clone());
                    let of = Of { version: whole.versions[version], values: values.collect(), kind };
                    sum.lines.insert(of, amount);
                }
                sum
            });
            row.insert(key.as_str().into(), KeptDay { fingerprint: whole.fingerprint, sum });
        }
        Ok(row)
    }
}

fn begin<'a>(bytes: &'a [u8], what: &'static str) -> Result<Left<'a>, Damaged> {
    let mut left = Left::of(bytes, what);
    if left.byte()? == FORMAT { Ok(left) } else { Err(left.damaged()) }
}

fn kind(left: &mut Left<'_>) -> Result<Kind, Damaged> {
    Kind::ALL.get(usize::from(left.byte()?)).copied().ok_or(left.damaged())
}

/// The texts of a dimension, and which of them each of so many lines is of.
fn column(packed: &[u8], lines: usize) -> Result<(Vec<Value>, Vec<u32>), Damaged> {
    let what = "what kept costs are of";
    let bytes = decompress(packed, what)?;
    let mut left = begin(&bytes, what)?;
    let texts = left.texts()?;
    let lines = (0..lines).map(|_| left.below(texts.len())).collect::<Result<_, _>>()?;
    left.end()?;
    Ok((texts, lines))
}

fn heads(machines: &[u8]) -> Result<Vec<Head>, Damaged> {
    let what = "whose kept costs these are";
    let bytes = decompress(machines, what)?;
    let mut left = begin(&bytes, what)?;
    let whys = left.texts()?;
    let count = left.length()?;
    let mut keys: Vec<String> = Vec::with_capacity(count);
    for _ in 0..count {
        let same = usize::try_from(left.number()?).map_err(|_| left.damaged())?;
        let before = keys.last().map_or("", String::as_str).get(..same).ok_or(left.damaged())?;
        keys.push(format!("{before}{}", left.text()?));
    }
    let mut fingerprints = Vec::with_capacity(count);
    for _ in 0..count {
        fingerprints.push(left.exactly(size_of::<Fingerprint>())?);
    }
    let (mut heads, mut end) = (Vec::with_capacity(count), 0_usize);
    for (key, fingerprint) in keys.into_iter().zip(fingerprints) {
        let fingerprint = fingerprint.try_into().map_err(|_| left.damaged())?;
        let mut whole = Whole { fingerprint, versions: Vec::new(), bill_micros: 0, billed_s: 0, reasons: Vec::new() };
        let lines = match left.byte()? {
            0 => None,
            1 => {
                let lines = totals(&mut left, &mut whole, &whys)?;
                let begin = end;
                end = end.checked_add(lines).ok_or(left.damaged())?;
                Some(begin..end)
            }
            _ => return Err(left.damaged()),
        };
        heads.push(Head { key, whole, lines });
    }
    left.end()?;
    Ok(heads)
}

/// What a day comes to as a whole, and how many lines it has.
fn totals(left: &mut Left<'_>, whole: &mut Whole, whys: &[Value]) -> Result<usize, Damaged> {
    (whole.bill_micros, whole.billed_s) = (left.number()?, left.number()?);
    for _ in 0..left.length()? {
        whole.versions.push(left.signed()?);
    }
    let lines = usize::try_from(left.number()?).map_err(|_| left.damaged())?;
    for _ in 0..left.length()? {
        let kind = kind(left)?;
        let why = whys[index(left.below(whys.len())?)].clone().ok_or(left.damaged())?;
        whole.reasons.push((kind, why, left.number()?, left.number()?));
    }
    Ok(lines)
}
