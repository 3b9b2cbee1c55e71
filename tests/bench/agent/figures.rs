//! Single figures, and what they come to.

use crate::{loads::Load, watchers::Watcher};
use serde_json::{Value, json};
use std::{
    fmt, fs,
    ops::Sub,
    path::Path,
    time::{Duration, SystemTime},
};

/// One run of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// How often it came round.
    pub(crate) rounds: u64,
    /// How long it took.
    pub(crate) wall: Duration,
    /// CPU time of its cgroup.
    pub(crate) cpu: Duration,
}

/// CPU time of a watcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Of its process.
    pub(crate) cpu: Duration,
    /// Of its programs inside the kernel; `None` where the kernel was not asked to measure them.
    pub(crate) bpf: Option<Duration>,
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        let bpf = self.bpf.zip(earlier.bpf).map(|(now, then)| now.saturating_sub(then));
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), bpf }
    }
}

/// A load without and with a watcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) alone: Run,
    pub(crate) watched: Run,
    pub(crate) cost: Cost,
}

impl Run {
    fn per_second(self) -> f64 {
        self.rounds as f64 / self.wall.as_secs_f64()
    }
}

impl Pair {
    /// Speed with the watcher as a share of the speed without; `None` for a load that does nothing.
    fn ratio(&self) -> Option<f64> {
        (self.alone.rounds > 0).then(|| self.watched.per_second() / self.alone.per_second())
    }

    /// CPU time per round with the watcher, as a multiple of that without.
    fn effort(&self) -> Option<f64> {
        let per_round = |run: Run| (run.rounds > 0).then(|| run.cpu.as_secs_f64() / run.rounds as f64);
        Some(per_round(self.watched)? / per_round(self.alone)?)
    }

    /// Run time of BPF programs per round, in nanoseconds, by the kernel's own count; `None` where that was not asked for.
    fn bpf_per_round(&self) -> Option<f64> {
        let bpf = self.cost.bpf.filter(|_| self.watched.rounds > 0)?;
        Some(bpf.as_nanos() as f64 / self.watched.rounds as f64)
    }

    /// What the watcher took of all CPUs, in per cent.
    fn share(&self) -> f64 {
        let cost = self.cost.cpu + self.cost.bpf.unwrap_or_default();
        100.0 * cost.as_secs_f64() / (self.watched.wall.as_secs_f64() * cpus() as f64)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = self.ratio().map_or_else(|| "nothing to slow down".to_owned(), |ratio| format!("speed {ratio:.4}"));
        write!(f, "{speed}, {:.3} % of the host", self.share())?;
        self.bpf_per_round().map_or(Ok(()), |ns| write!(f, ", {ns:.0} ns of BPF a round"))
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Figures {
    about: Value,
    pairs: Vec<(Load, Watcher, Pair)>,
    /// See [`crate::sizes::memory`].
    pub(crate) memory: Vec<Value>,
    /// See [`crate::sizes::heartbeat`].
    pub(crate) sizes: Vec<Value>,
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The middle value; the mean of the two in the middle of an even number.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    if values.len() % 2 == 1 { Some(*upper) } else { Some((values[middle - 1] + upper) / 2.0) }
}

/// Median, and the middle half of the values.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    let (low, high) = (values.get(quarter).copied(), values.get(values.len().saturating_sub(1 + quarter)).copied());
    match (median(values), low, high) {
        (Some(median), Some(low), Some(high)) => format!("{median:.4} ({low:.3} to {high:.3})"),
        _ => "–".to_owned(),
    }
}

impl Figures {
    pub(crate) fn about_this_machine() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let about = json!({
            "unix_s": now,
            "kernel": rustix::system::uname().release().to_string_lossy(),
            "cpus": cpus(),
            "load_average_at_start": load.split(' ').next(),
        });
        Self { about, pairs: Vec::new(), memory: Vec::new(), sizes: Vec::new() }
    }

    pub(crate) fn add(&mut self, load: Load, watcher: Watcher, pair: Pair) {
        self.pairs.push((load, watcher, pair));
    }

    /// Writes every single figure.
    pub(crate) fn write(&self, path: &Path) {
        let run = |run: Run| json!({"rounds": run.rounds, "wall_ns": run.wall.as_nanos() as u64, "cpu_ns": run.cpu.as_nanos() as u64});
        let pairs: Vec<Value> = (self.pairs.iter())
            .map(|(load, watcher, pair)| {
                json!({
                    "load": format!("{load:?}"),
                    "watcher": format!("{watcher:?}"),
                    "alone": run(pair.alone),
                    "watched": run(pair.watched),
                    "watcher_cpu_ms": pair.cost.cpu.as_millis() as u64,
                    "watcher_bpf_us": pair.cost.bpf.map(|bpf| bpf.as_micros() as u64),
                })
            })
            .collect();
        let all = json!({"machine": self.about, "pairs": pairs, "memory": self.memory, "heartbeats": self.sizes});
        fs::write(path, format!("{all:#}\n")).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.about)?;
        let mut at = self.pairs.as_slice();
        if !at.is_empty() {
            writeln!(
                f,
                "\n| load | watcher | pairs | speed with/without | CPU per round with/without | BPF per round, ns | watcher's share of the host's CPU |"
            )?;
            writeln!(f, "| --- | --- | ---: | ---: | ---: | ---: | ---: |")?;
        }
        while let Some((load, watcher, _)) = at.first() {
            let same = at.iter().take_while(|(l, w, _)| l == load && w == watcher).count();
            let (group, rest) = at.split_at(same);
            let of = |figure: fn(&Pair) -> Option<f64>| {
                spread(group.iter().filter_map(|(_, _, pair)| figure(pair)).collect())
            };
            let share = median(group.iter().map(|(_, _, pair)| pair.share()).collect()).unwrap_or_default();
            writeln!(
                f,
                "| {load:?} | {watcher:?} | {same} | {} | {} | {} | {share:.3} % |",
                of(Pair::ratio),
                of(Pair::effort),
                of(Pair::bpf_per_round)
            )?;
            at = rest;
        }
        for (name, values) in [("memory", &self.memory), ("heartbeats", &self.sizes)] {
            for value in values {
                writeln!(f, "\n{name}: {value}")?;
            }
        }
        Ok(())
    }
}
