//! What was lost, by name.

use super::Sampler;

impl Sampler {
    /// Since the start.
    pub(super) fn lost(&self) -> Vec<(&'static str, u64)> {
        let mut drops = self.drops.clone();
        drops.push(("lost_samples", self.lost_samples));
        drops.push(("detail_key_overflow", self.overflowed));
        drops.push(("detail_rules_refused", self.rules_store.refused()));
        drops.push(self.rows.drops());
        drops.push(self.lost_cpu.drops());
        drops.extend(self.runs.drops());
        drops
    }
}

/// What was lost between two moments, by name.
pub(super) fn lost_since(before: &[(&'static str, u64)], now: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    let count_before = |name| before.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    now.iter().map(|(name, count)| (*name, count.saturating_sub(count_before(*name)))).collect()
}
