//! Empties what a hash map holds of one buffer: a few calls for a thousand entries, in place of three for each.
//!
//! The kernel walks the map bucket by bucket (`BPF_MAP_LOOKUP_BATCH`, since Linux 5.6), so that what programs add meanwhile keeps nobody busy for ever.

use super::{bpf, error::ObjectError};
use aya::{
    Pod,
    maps::{HashMap, Map, MapData},
};
use std::os::fd::{AsFd as _, OwnedFd};

/// Entries of one call, of about 300 bytes each.
const ENTRIES: usize = 256;

/// A hash map of these keys and values.
pub(super) struct Drain<K, V> {
    map: OwnedFd,
    keys: Vec<K>,
    values: Vec<V>,
}

impl<K: Pod, V: Pod> Drain<K, V> {
    /// Takes the map over.
    ///
    /// # Errors
    /// If it is no hash map, or of another shape.
    pub(super) fn of(map: Map) -> Result<Self, ObjectError> {
        let Map::HashMap(data) = &map else { return Err(ObjectError::Incomplete("hash map")) };
        let descriptor = data.fd().as_fd().try_clone_to_owned().map_err(ObjectError::Entries)?;
        // This compares the sizes of keys and values with the map's, on which the calls below rest.
        let _: HashMap<MapData, K, V> = map.try_into()?;
        Ok(Self { map: descriptor, keys: Vec::with_capacity(ENTRIES), values: Vec::with_capacity(ENTRIES) })
    }

    /// Takes out each entry that `is_wanted`. Nobody else may write to these meanwhile; others may come and go.
    ///
    /// # Errors
    /// If the kernel refuses. `each` has had what was taken until then.
    pub(super) fn take(
        &mut self,
        is_wanted: impl Fn(&K) -> bool,
        mut each: impl FnMut(K, V),
    ) -> Result<(), ObjectError> {
        let mut from = None;
        loop {
            let next = match bpf::look_up_batch(self.map.as_fd(), from, &mut self.keys, &mut self.values) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    // One bucket holds more than there is room for.
                    let more = self.keys.capacity().max(ENTRIES);
                    self.keys.reserve(2 * more);
                    self.values.reserve(2 * more);
                    continue;
                }
                next => next.map_err(ObjectError::Entries)?,
            };
            let entries = self.keys.iter().copied().zip(self.values.iter().copied());
            let wanted: Vec<(K, V)> = entries.filter(|(key, _)| is_wanted(key)).collect();
            self.keys.clear();
            self.keys.extend(wanted.iter().map(|(key, _)| *key));
            // What may still be there would be told again.
            bpf::delete_batch(self.map.as_fd(), &self.keys).map_err(ObjectError::Entries)?;
            wanted.into_iter().for_each(|(key, value)| each(key, value));
            let Some(next) = next else { return Ok(()) };
            from = Some(next);
        }
    }
}
