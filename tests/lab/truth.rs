//! A mixed load in cgroups of its own, as the agent and as every other counter of the kernel's tell of it.

use crate::short_lived::{Machine, assert_nothing_lost, drops, taken_up_ns};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What runs the load beside an agent; a shell's script, with its arguments at its top.
pub const SCRIPT: &str = concat!(include_str!("measuring.sh"), include_str!("mixed_load.sh"));

/// What the script asks of `load` and `thread_exec`: children by storm, threads, exec and exec by a thread, and commands.
const CHILDREN: u64 = 6_000 + 40 + 20 + 20;
const COMMANDS: u64 = 6;
const EXECS: u64 = COMMANDS + 20 + 20;
/// Processes in each cgroup that a thread other than their first one takes over.
const TAKEN_OVER: u64 = 20;
/// What each of them sends, the same amount before and after its exec.
const SENT_BYTES: u64 = 2 * 1_000;

/// What the agent and the other counters say about the same work.
#[derive(Clone, Debug)]
pub struct Truth {
    heartbeat: Value,
    counters: BTreeMap<String, String>,
}

impl Truth {
    /// Reads what the script left behind.
    ///
    /// # Panics
    ///
    /// When the heartbeat is none.
    #[must_use]
    pub fn of(heartbeat: &str, counters: &str) -> Self {
        Self {
            heartbeat: serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")),
            counters: counters
                .lines()
                .filter_map(|line| line.split_once(' '))
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
        }
    }

    /// A number of the other counters.
    ///
    /// # Panics
    ///
    /// When they do not have it.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let number = self.counters.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.counters));
        number.parse().unwrap_or_else(|error| panic!("{name}: {error}: {number}"))
    }

    /// What the interface's counter grew by.
    fn interface(&self, counter: &str) -> u64 {
        self.counter(&format!("after_{counter}")) - self.counter(&format!("before_{counter}"))
    }

    /// The row of the group's workload.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn row(&self, group: &str) -> &Value {
        let path = &self.counters[&format!("{group}_path")];
        let rows = self.heartbeat["workloads"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["key"] == **path && row["class"] == "CLASS_WORKLOAD");
        row.unwrap_or_else(|| panic!("no row {path}: {rows:#?}"))
    }

    /// Asserts that CPU time and disk bytes are within 1 % of the cgroup's own, but for CPU time that may have been taken up above it.
    ///
    /// # Panics
    ///
    /// When they are not.
    pub fn check_cpu_and_disk(&self, group: &str) {
        for (column, counter) in [("cpu_ns", "cpu"), ("disk_read_bytes", "read"), ("disk_written_bytes", "written")] {
            let counter = self.counter(&format!("{group}_{counter}"));
            assert!(counter > 0, "nothing happened: {group} {column}");
            let elsewhere = if column == "cpu_ns" { taken_up_ns(&self.heartbeat) } else { 0 };
            // Where a part is missing, it is in another row, or in none: all that have any say which.
            let rows = self.heartbeat["workloads"].as_array().expect("rows");
            let others = rows
                .iter()
                .filter(|row| row[column].as_u64() > Some(0))
                .map(|row| (&row["key"], &row["class"], &row[column]));
            let what = format!(
                "{group} {column} of {}, where {:?}, drops {}",
                self.row(group),
                others.collect::<Vec<_>>(),
                self.heartbeat["coverage"]["drops"]
            );
            agrees(&what, number(self.row(group), column), elsewhere, counter, 1);
        }
    }

    /// Asserts that each process was counted once, with the way in which it ended, and that nothing was lost.
    ///
    /// # Panics
    ///
    /// When they were not.
    pub fn check_processes(&self, machine: Machine) {
        let row = self.row("known");
        let forks = CHILDREN + COMMANDS;
        assert_eq!(
            [&row["forks"], &row["execs"], &row["exits"]],
            [forks, EXECS, forks].map(|count| json!(count)).each_ref()
        );
        // 3 and 5 are exit codes, 9 is SIGKILL. `threads` ends one of four children by one thread for all.
        let failures = json!([
            { "wait_status": 9, "count": 600 },
            { "wait_status": 3 * 256, "count": 600 },
            { "wait_status": 5 * 256, "count": 10 },
        ]);
        assert_eq!(row["failures"], failures);
        assert_nothing_lost(&self.heartbeat, machine);
        // On a shared machine some of others' ends may be missed. Were a process that one of its threads takes over taken for another one, each of
        // them would be.
        let missed = drops(&self.heartbeat, "missed_exits");
        assert!(missed < TAKEN_OVER, "{missed} missed exits");
    }

    /// Asserts that network bytes are within 2 % of the interface's. `header_bytes` of each packet are not the task's, and neither is what went over it more
    /// than once: `received_again` says the peer, and what was sent again the task's own socket. On two CPUs it was up to 3 % of all.
    ///
    /// # Panics
    ///
    /// When they are not.
    pub fn check_network(&self, header_bytes: u64, received_again: u64) {
        for (direction, again) in [("received", received_again), ("sent", self.counter("talk_retransmitted"))] {
            let headers = self.interface(&format!("packets_{direction}")) * header_bytes;
            let column = format!("network_{direction}_bytes");
            agrees(&column, number(self.row("known"), &column), 0, self.interface(direction) - headers - again, 2);
        }
    }

    /// Asserts that no row says how many bytes it moved, rather than none.
    ///
    /// # Panics
    ///
    /// When one does.
    pub fn check_unknown_network(&self) {
        for column in ["network_received_bytes", "network_sent_bytes"] {
            for row in ["known", "leave", "stay"].map(|group| self.row(group)) {
                assert_eq!(row[column], Value::Null, "{row}");
            }
        }
    }

    /// Asserts that a process which another of its threads took over is still the same one: no new process, CPU time within 1 % of
    /// what the cgroup's own counter grew by since the first sample, and every byte that it sent before and after, where bytes are counted.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn check_thread_execs(&self, counts_bytes: bool) {
        let failures = json!([{ "wait_status": 7 * 256, "count": TAKEN_OVER }]);
        for (group, exits, failures) in [("leave", TAKEN_OVER, failures), ("stay", 0, json!([]))] {
            let row = self.row(group);
            let counts = ["forks", "execs", "exits"].map(|column| number(row, column));
            assert_eq!(counts, [0, TAKEN_OVER, exits], "{group}: {row}");
            if counts_bytes {
                assert_eq!(number(row, "network_sent_bytes"), TAKEN_OVER * SENT_BYTES, "{group}: {row}");
            }
            assert_eq!(row["failures"], failures, "{group}");
            // And who made them.
            let live = 1 + TAKEN_OVER - exits;
            assert_eq!(["live_processes", "live_threads"].map(|column| number(row, column)), [live; 2], "{group}");
            let counter = self.counter(&format!("{group}_cpu")) - self.counter(&format!("{group}_before_cpu"));
            agrees(&format!("{group} cpu_ns"), number(row, "cpu_ns"), taken_up_ns(&self.heartbeat), counter, 1);
        }
    }
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("{column} was not measured: {row}"))
}

/// `elsewhere`: so much of it at most the agent may have in another row.
fn agrees(what: &str, agent: u64, elsewhere: u64, counter: u64, per_cent: u64) {
    let tolerance = counter * per_cent / 100;
    assert!(
        agent <= counter + tolerance && agent + elsewhere + tolerance >= counter,
        "{what}: the agent says {agent}, and up to {elsewhere} elsewhere; the other counter {counter}"
    );
}
