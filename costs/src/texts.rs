//! Each text once, by its number.

use crate::Value;
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Texts by the order in which they came; what is *not known* is 0.
#[derive(Debug)]
pub(crate) struct Texts {
    numbers: HashMap<Value, u32>,
    values: Vec<Value>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { numbers: HashMap::from([(None, 0)]), values: vec![None] }
    }
}

impl Texts {
    /// The number of a text, from now on.
    pub(crate) fn number(&mut self, value: &Value) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        // So many texts fit into no memory.
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.numbers.insert(value.clone(), number);
        self.values.push(value.clone());
        number
    }

    /// The text of a number; of one that was not given, none.
    pub(crate) fn value(&self, number: u32) -> Value {
        self.values.get(usize::try_from(number).unwrap_or(usize::MAX)).cloned().flatten()
    }

    /// All texts in the order of their numbers.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }
}

/// Hashes numbers that were given one by one, as nobody can choose them: each line that is taken up is looked for once.
pub(crate) type ByNumber = BuildHasherDefault<Numbers>;

/// See [`ByNumber`].
#[derive(Debug, Default)]
pub(crate) struct Numbers(u64);

impl Numbers {
    fn take(&mut self, number: u64) {
        // By an odd number whose bits follow no rule: the fraction of the golden ratio.
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        // The table looks at the lowest bits, and a product has the best ones on top.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for few in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..few.len()].copy_from_slice(few);
            self.take(u64::from_le_bytes(eight));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.take(number.into());
    }

    fn write_isize(&mut self, number: isize) {
        self.take(u64::from_ne_bytes(i64::try_from(number).unwrap_or(0).to_ne_bytes()));
    }

    fn write_usize(&mut self, number: usize) {
        self.take(u64::try_from(number).unwrap_or(u64::MAX));
    }
}
