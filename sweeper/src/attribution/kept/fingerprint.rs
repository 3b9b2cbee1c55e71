//! On what a machine's day rests, but its rollups.

use super::{super::machines::Machine, DAY_S};
use costs::{Billed, Fingerprint, Weights};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

/// Raised whenever the same stretches and rollups come to other sums than before: by the crate `costs`, by what is read of a rollup, or by a word of why something is not known.
const RULE: u32 = 1;

/// Makes fingerprints. One day of a machine mostly rests on the same as the next, so the last one of each is remembered.
#[derive(Debug)]
pub(super) struct Fingerprints {
    of_all: Vec<u8>,
    last: HashMap<u64, (Vec<u8>, Fingerprint)>,
}

impl Fingerprints {
    pub(super) fn new(weights: Weights) -> Self {
        let Weights { core, gib, gpu } = weights;
        let of_all = [RULE, core, gib, gpu].iter().flat_map(|number| number.to_le_bytes()).collect();
        Self { of_all, last: HashMap::new() }
    }

    /// That of a machine's day; none if nothing of it is to be told.
    pub(super) fn of(&mut self, machine: &Machine, day: i64) -> Option<Fingerprint> {
        let from_s = day * DAY_S;
        let mut bytes = self.of_all.clone();
        bytes.push(machine.is_node.into());
        let before = bytes.len();
        for stretch in machine.within(from_s, from_s + DAY_S) {
            let name = machine.name(stretch.version).map_or(i64::MIN, |name| name);
            for number in [stretch.from_s - from_s, stretch.until_s - from_s, name] {
                bytes.extend(number.to_le_bytes());
            }
            match stretch.billed {
                Billed::Yes => bytes.push(0),
                Billed::At(price) => {
                    bytes.push(1);
                    bytes.extend(price.per_hour().micros().to_le_bytes());
                }
                Billed::NotKnown(why) => {
                    bytes.push(2);
                    bytes.extend((why.len() as u64).to_le_bytes());
                    bytes.extend(why.as_bytes());
                }
            }
        }
        if bytes.len() == before {
            return None;
        }
        if let Some((_, last)) = self.last.get(&machine.number).filter(|(of, _)| *of == bytes) {
            return Some(*last);
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.iter_mut().zip(Sha256::digest(&bytes)).for_each(|(byte, of)| *byte = of);
        self.last.insert(machine.number, (bytes, fingerprint));
        Some(fingerprint)
    }
}
