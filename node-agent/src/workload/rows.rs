//! Rows that add up: one per class and cgroup path, at most [`MAX_ROWS`], and behind them one `overflow` row per class.
//!
//! A counter never runs backwards, neither in a row nor in the sum over a class: what has no room is counted in `overflow` from its
//! first nanosecond on, and a row that makes room is added to `overflow` as a whole.

use super::{Activity, Class};
use crate::model::Delta;
use node_agent_ebpf::{Totals, counter};
use std::collections::BTreeMap;

/// Key of the row for all that has no row of its own; no cgroup path reads like this, since paths begin with `/`.
pub const OVERFLOW: &str = "overflow";
/// Most rows with a name; four more are the overflow rows of the classes.
pub const MAX_ROWS: usize = heartbeat::envelope::MAX_WORKLOADS - 4;
/// A row without processes and without news for this many samples may make room: 8 hours at 30 s.
pub const QUIET_SAMPLES: u32 = 960;

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Executable name of the processes that used the most CPU time since the sample before.
    pub top_command: String,
    /// Its sums, and who lives.
    pub activity: Activity,
    quiet_samples: u32,
    commands: BTreeMap<String, u64>,
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    rows: BTreeMap<(Class, String), Row>,
    /// Deltas that had a path and no room for it, and rows that made room: what is told under less than its own name.
    not_listed: u64,
}

impl Rows {
    /// Sets all sums to zero: the readers subtract nothing across this moment. Losses are counted on.
    pub fn begin_anew(&mut self) {
        self.rows.clear();
    }

    /// What found no row of its own, by name.
    #[must_use]
    pub const fn drops(&self) -> (&'static str, u64) {
        ("detail_rows_not_listed", self.not_listed)
    }

    /// Begins a sample: nobody has been seen alive yet.
    pub fn begin(&mut self) {
        for row in self.rows.values_mut() {
            row.activity.begin();
            row.quiet_samples = row.quiet_samples.saturating_add(1);
            row.commands.clear();
        }
    }

    /// Adds one delta. Without a path it goes to the overflow row of its class.
    pub fn add(&mut self, class: Class, path: Option<&str>, command: &str, delta: &Delta) {
        let row = self.row(class, path);
        let is_news = delta.live_processes > 0
            || delta.live_threads > 0
            || Totals { peak_resident_bytes: 0, ..delta.totals } != Totals::default();
        if is_news {
            row.quiet_samples = 0;
        }
        row.activity.add(delta);
        // A flood of names would cost memory for a row's caption: the first thousand will do.
        if row.commands.len() < 1_000 || row.commands.contains_key(command) {
            let cpu_ns = row.commands.entry(command.to_owned()).or_default();
            *cpu_ns = cpu_ns.saturating_add(delta.totals.counters[counter::CPU_NS]);
        }
    }

    /// Adds CPU time that no task's own path told of: whose it was is known by the cgroup alone.
    pub fn take_up(&mut self, class: Class, path: &str, cpu_ns: u64) {
        let row = self.row(class, Some(path));
        row.quiet_samples = 0;
        let sum = &mut row.activity.totals.counters[counter::CPU_NS];
        *sum = sum.saturating_add(cpu_ns);
    }

    /// Counts ends of one kind, other than with exit code 0.
    pub fn add_failures(&mut self, class: Class, path: Option<&str>, wait_status: u32, count: u64) {
        self.row(class, path).activity.failures.add(wait_status, count);
    }

    fn row(&mut self, class: Class, path: Option<&str>) -> &mut Row {
        let path = match path {
            Some(path) if self.has_room_for(class, path) => path,
            Some(_) => {
                self.not_listed = self.not_listed.saturating_add(1);
                OVERFLOW
            }
            None => OVERFLOW,
        };
        self.rows.entry((class, row_key(path))).or_default()
    }

    /// Ends a sample: each row gets its caption. A row without news keeps the one it had.
    pub fn end(&mut self) {
        for row in self.rows.values_mut() {
            let top = row.commands.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
            if let Some((command, cpu_ns)) = top
                && (*cpu_ns > 0 || row.top_command.is_empty())
            {
                row.top_command.clone_from(command);
            }
            row.commands.clear();
        }
    }

    /// Every row that ever had something to say.
    pub fn iter(&self) -> impl Iterator<Item = (Class, &str, &Row)> {
        self.rows.iter().map(|((class, key), row)| (*class, key.as_str(), row))
    }

    fn has_room_for(&mut self, class: Class, path: &str) -> bool {
        if self.rows.contains_key(&(class, row_key(path))) {
            return true;
        }
        let named = self.rows.keys().filter(|(_, key)| key != OVERFLOW).count();
        named < MAX_ROWS || self.make_room()
    }

    fn make_room(&mut self) -> bool {
        let quietest = self
            .rows
            .iter()
            .filter(|((_, key), row)| key != OVERFLOW && row.quiet_samples >= QUIET_SAMPLES)
            .max_by_key(|(_, row)| row.quiet_samples)
            .map(|(key, _)| key.clone());
        let Some((class, key)) = quietest else { return false };
        if let Some(row) = self.rows.remove(&(class, key)) {
            self.not_listed = self.not_listed.saturating_add(1);
            self.rows.entry((class, OVERFLOW.to_owned())).or_default().activity.absorb(&row.activity);
        }
        true
    }
}

/// The key of a cgroup's row. The contract refuses longer names; cgroup paths may have 4,096 bytes. Two paths that differ only behind the cut share
/// a row.
pub fn row_key(path: &str) -> String {
    let end = (0..=heartbeat::envelope::MAX_NAME_BYTES.min(path.len())).rev().find(|end| path.is_char_boundary(*end));
    path[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delta(cpu_ns: u64, live_processes: u32) -> Delta {
        let mut totals = Totals::default();
        totals.counters[counter::CPU_NS] = cpu_ns;
        Delta { totals, live_processes, live_threads: live_processes, ..Delta::default() }
    }

    fn cpu_of(row: &Row) -> u64 {
        row.activity.totals.counters[counter::CPU_NS]
    }

    fn cpu_sum(rows: &Rows) -> u64 {
        rows.iter().map(|(_, _, row)| cpu_of(row)).sum()
    }

    #[test]
    fn the_busiest_name_heads_its_row_until_another_one_is_busier() {
        let mut rows = Rows::default();
        for (deltas, expected) in [
            (vec![("a", 5), ("b", 7), ("a", 3)], "a"),
            (vec![("a", 0), ("b", 0)], "a"),
            (vec![("a", 1), ("b", 2)], "b"),
        ] {
            rows.begin();
            for (name, cpu_ns) in deltas {
                rows.add(Class::Workload, Some("/x"), name, &delta(cpu_ns, 1));
            }
            rows.end();
            assert_eq!(rows.iter().next().map(|(_, _, row)| row.top_command.as_str()), Some(expected));
        }
    }

    #[test]
    fn who_is_gone_is_not_alive_but_its_sums_stay() {
        let mut rows = Rows::default();
        rows.begin();
        rows.add(Class::Workload, Some("/x"), "a", &delta(5, 2));
        rows.end();
        rows.begin();
        rows.end();
        let row = rows.iter().next().map(|(_, _, row)| (row.activity.live_processes, cpu_of(row)));
        assert_eq!(row, Some((0, 5)));
    }

    #[test]
    fn what_finds_no_row_is_counted_in_the_overflow_row_of_its_class() {
        let mut rows = Rows::default();
        rows.begin();
        for index in 0..1_000 {
            rows.add(Class::Workload, Some(&format!("/{index}")), "a", &delta(1, 1));
        }
        rows.add(Class::Housekeeping, None, "b", &delta(1, 0));
        rows.end();
        assert_eq!(rows.iter().count(), MAX_ROWS + 2);
        assert!(rows.iter().count() <= heartbeat::envelope::MAX_WORKLOADS);
        assert_eq!(cpu_sum(&rows), 1_001);
        let not_listed = 1_000 - MAX_ROWS as u64;
        assert_eq!(rows.drops(), ("detail_rows_not_listed", not_listed), "who has no path is not lost");
        rows.begin_anew();
        assert_eq!((rows.iter().count(), rows.drops().1), (0, not_listed));
    }

    #[test]
    fn a_row_that_was_quiet_for_long_makes_room_and_its_sum_stays_in_its_class() {
        let mut rows = Rows::default();
        rows.begin();
        for index in 0..MAX_ROWS {
            rows.add(Class::Workload, Some(&format!("/{index}")), "a", &delta(1, 0));
        }
        for _ in 0..QUIET_SAMPLES {
            rows.begin();
        }
        rows.add(Class::Workload, Some("/new"), "a", &delta(1, 1));
        rows.end();
        assert!(rows.iter().any(|(_, key, _)| key == "/new"));
        assert_eq!(rows.drops().1, 1, "the row that made room");
        assert_eq!(cpu_sum(&rows), MAX_ROWS as u64 + 1);
    }

    #[test]
    fn a_path_of_any_length_fits_the_contract() {
        let long = format!("/{}", "ä".repeat(2_000));
        assert!(row_key(&long).len() <= heartbeat::envelope::MAX_NAME_BYTES);
        assert_eq!(row_key("/short"), "/short");
    }

    proptest! {
        #[test]
        fn sums_never_run_backwards_and_nothing_is_lost(
            samples in prop::collection::vec(prop::collection::vec((0_u8..4, 0_u64..100), 0..20), 1..20)
        ) {
            let mut rows = Rows::default();
            let mut counted = 0;
            for sample in samples {
                let before = rows.clone();
                rows.begin();
                for (path, cpu_ns) in sample {
                    rows.add(Class::Workload, Some(&format!("/{path}")), "a", &delta(cpu_ns, 1));
                    counted += cpu_ns;
                }
                rows.end();
                for (class, key, row) in before.iter() {
                    let now = rows.rows.get(&(class, key.to_owned())).map(cpu_of);
                    prop_assert!(now >= Some(cpu_of(row)));
                }
                prop_assert_eq!(cpu_sum(&rows), counted);
            }
        }
    }
}
