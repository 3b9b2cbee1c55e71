//! What the agent may cost, and what it sheds to stay within that. ◇ A state machine over what it cost in each interval.
//!
//! Above its budget of CPU time in three intervals in a row it sheds one thing, in the order of [`Step`], from what costs most for what
//! it tells; three more, and the next. Below 60 % of it in ten intervals in a row it restores the latest one: ten, so that it does not
//! swing, and 60 %, because what it restores must fit. No counter that a verdict about an idle machine needs is ever shed. How many steps
//! were taken travels with each heartbeat (`AgentCost.degraded_steps`), and the capability `self_budget` names them.
//!
//! More memory than its budget is said by the same capability and costs nothing of what is measured: the steps release next to none, because
//! the maps inside the kernel have their size and what grows grows with the processes of the host. The service manager's limit is what
//! ends an agent that leaks.

use crate::coverage::{Capabilities, Status};

/// Intervals in a row above the budget before something is shed.
const SHED_AFTER: u32 = 3;
/// Intervals in a row well below it before something is restored.
const RESTORE_AFTER: u32 = 10;
/// Well below is at most this much of it, in thousandths.
const WELL_BELOW: u64 = 600;
/// The budget itself, in thousandths.
const ALL_OF_IT: u64 = 1_000;

/// What the agent may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time of the agent and of its programs inside the kernel, in millionths of all the host's CPUs.
    pub cpu_ppm_of_host: u64,
    /// Resident memory, in bytes.
    pub memory_bytes: u64,
}

impl Limits {
    /// For people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} of the host's CPU time, {} MiB of memory", percent(self.cpu_ppm_of_host), self.memory_bytes >> 20)
    }
}

/// What it did cost in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time, in nanoseconds; `None` if it is not known.
    pub cpu_ns: Option<u64>,
    /// Length of the interval, in nanoseconds.
    pub interval_ns: u64,
    /// CPUs of the host.
    pub cpus: u32,
    /// Resident memory at its end, in bytes; `None` if it is not known.
    pub resident_bytes: Option<u64>,
}

impl Cost {
    /// In millionths of all the host's CPUs.
    #[must_use]
    pub fn cpu_ppm_of_host(&self) -> Option<u64> {
        let available_ns = self.interval_ns.checked_mul(u64::from(self.cpus))?;
        share(self.cpu_ns?, 1_000_000, available_ns)
    }
}

/// `part` × `scale` / `of`.
fn share(part: u64, scale: u64, of: u64) -> Option<u64> {
    let share = (u128::from(part) * u128::from(scale)).checked_div(u128::from(of))?;
    Some(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Millionths as per cent.
fn percent(ppm: u64) -> String {
    format!("{}.{:04} %", ppm / 10_000, ppm % 10_000)
}

/// What is shed, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Runs of pipelines, which cost each start and end of a process that belongs to one. A verdict then cannot say that nothing waits.
    Pipelines,
    /// System calls by class, which cost every call on the host.
    SyscallClasses,
    /// Bytes over the network by workload; the host's interfaces are still counted.
    Network,
    /// Samples: half as many.
    Interval,
}

impl Step {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Pipelines, Self::SyscallClasses, Self::Network, Self::Interval];

    const fn words(self) -> &'static str {
        match self {
            Self::Pipelines => "runs of pipelines are not followed",
            Self::SyscallClasses => "system calls by class are not counted",
            Self::Network => "network traffic is not told by workload",
            Self::Interval => "intervals are twice as long",
        }
    }
}

/// The state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    limits: Limits,
    steps: usize,
    above: u32,
    below: u32,
    /// What is above its limit, as of the last interval.
    excess: Option<String>,
}

impl Budget {
    /// Nothing shed yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, above: 0, below: 0, excess: None }
    }

    /// Takes notice of one interval; true if that changed what is shed.
    pub fn notice(&mut self, cost: &Cost) -> bool {
        let Limits { cpu_ppm_of_host, memory_bytes } = self.limits;
        let used_ppm = cost.cpu_ppm_of_host().unwrap_or(0);
        let resident_bytes = cost.resident_bytes.unwrap_or(0);
        let cpu = share(used_ppm, ALL_OF_IT, cpu_ppm_of_host.max(1)).unwrap_or(0);
        let in_words = || format!("{} of the host's CPU time, of {}", percent(used_ppm), percent(cpu_ppm_of_host));
        let too_much_cpu = (cpu > ALL_OF_IT).then(in_words);
        let in_words = || format!("{} KiB of memory, of {} KiB", resident_bytes / 1024, memory_bytes / 1024);
        let too_much_memory = (resident_bytes > memory_bytes).then(in_words);
        let excess = [too_much_cpu, too_much_memory].into_iter().flatten().collect::<Vec<_>>().join("; ");
        self.excess = (!excess.is_empty()).then_some(excess);
        self.above = if cpu > ALL_OF_IT { self.above.saturating_add(1) } else { 0 };
        self.below = if cpu <= WELL_BELOW { self.below.saturating_add(1) } else { 0 };
        if self.above >= SHED_AFTER && self.steps < Step::ALL.len() {
            self.steps += 1;
            self.above = 0;
            return true;
        }
        if self.below >= RESTORE_AFTER && self.steps > 0 {
            self.steps -= 1;
            self.below = 0;
            return true;
        }
        false
    }

    /// What is shed now.
    #[must_use]
    pub fn shed(&self) -> &'static [Step] {
        &Step::ALL[..self.steps]
    }

    /// Whether this is.
    #[must_use]
    pub fn has_shed(&self, step: Step) -> bool {
        self.shed().contains(&step)
    }

    /// How much is.
    #[must_use]
    pub fn steps(&self) -> u32 {
        u32::try_from(self.steps).unwrap_or(u32::MAX)
    }

    /// States the capability `self_budget`: *denied* means that something is shed.
    pub fn state(&self, capabilities: &mut Capabilities) {
        let shed: Vec<&str> = self.shed().iter().map(|step| step.words()).collect();
        let excess = self.excess.as_ref().map(|excess| format!("above the budget: {excess}"));
        match (shed.is_empty(), excess) {
            (true, None) => capabilities.ok("self_budget"),
            (true, Some(excess)) => capabilities.set("self_budget", Status::Ok, excess),
            (false, excess) => {
                let excess = excess.unwrap_or_else(|| "within the budget by this".to_owned());
                capabilities.set("self_budget", Status::Denied, format!("{}; {excess}", shed.join(", ")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { cpu_ppm_of_host: 5_000, memory_bytes: 1_000 };
    const SECOND: u64 = 1_000_000_000;

    /// One second on two CPUs, of which so many millionths were spent.
    fn cost(ppm: u64, resident_bytes: u64) -> Cost {
        Cost { cpu_ns: Some(ppm * 2_000), interval_ns: SECOND, cpus: 2, resident_bytes: Some(resident_bytes) }
    }

    fn after(costs: &[(u32, Cost)]) -> Budget {
        let mut budget = Budget::new(LIMITS);
        for (times, cost) in costs {
            for _ in 0..*times {
                budget.notice(cost);
            }
        }
        budget
    }

    #[test]
    fn the_share_is_of_the_whole_host() {
        assert_eq!(cost(5_000, 0).cpu_ppm_of_host(), Some(5_000));
        assert_eq!(Cost::default().cpu_ppm_of_host(), None);
    }

    #[test]
    fn what_is_shed_and_restored() {
        let (over, fits, well_below, too_big) = (cost(6_000, 0), cost(4_000, 700), cost(1_000, 100), cost(0, 1_001));
        for (costs, expected) in [
            (vec![(100, fits)], 0),
            (vec![(2, over)], 0),
            (vec![(2, over), (1, fits), (2, over)], 0),
            (vec![(3, over)], 1),
            // What is shed would release no memory.
            (vec![(100, too_big)], 0),
            (vec![(3, over), (10, too_big)], 0),
            (vec![(6, over)], 2),
            (vec![(100, over)], 4),
            // Within the budget, but not by so much that more would fit.
            (vec![(3, over), (100, fits)], 1),
            (vec![(3, over), (9, well_below)], 1),
            (vec![(3, over), (10, well_below)], 0),
            (vec![(3, over), (9, well_below), (1, fits), (9, well_below)], 1),
            (vec![(100, over), (20, well_below)], 2),
            (vec![(3, over), (100, well_below)], 0),
            // What is not known is not above.
            (vec![(100, Cost::default())], 0),
        ] {
            assert_eq!(after(&costs).steps(), expected, "{costs:?}");
        }
    }

    #[test]
    fn steps_are_taken_in_their_order() {
        let budget = after(&[(6, cost(10_000, 0))]);
        assert_eq!(budget.shed(), [Step::Pipelines, Step::SyscallClasses]);
        assert!(budget.has_shed(Step::Pipelines) && !budget.has_shed(Step::Network));
    }

    #[test]
    fn the_capability_names_what_is_shed_and_why() {
        let of = |budget: &Budget| {
            let mut capabilities = Capabilities::default();
            budget.state(&mut capabilities);
            (capabilities.status("self_budget"), capabilities.to_wire().remove(0).reason)
        };
        assert_eq!(of(&after(&[])), (Some(Status::Ok), String::new()));
        assert_eq!(of(&after(&[(1, cost(7_500, 0))])).0, Some(Status::Ok));
        let (status, reason) = of(&after(&[(3, cost(7_500, 0))]));
        assert_eq!(status, Some(Status::Denied));
        assert_eq!(
            reason,
            "runs of pipelines are not followed; above the budget: 0.7500 % of the host's CPU time, of 0.5000 %"
        );
        let (status, reason) = of(&after(&[(1, cost(0, 2_048))]));
        assert_eq!((status, reason.as_str()), (Some(Status::Ok), "above the budget: 2 KiB of memory, of 0 KiB"));
        let (_, reason) = of(&after(&[(1, cost(7_500, 2_048))]));
        assert!(reason.contains("CPU time") && reason.ends_with("; 2 KiB of memory, of 0 KiB"), "{reason}");
        let (status, reason) = of(&after(&[(3, cost(7_500, 0)), (1, cost(0, 0))]));
        assert_eq!((status, reason.ends_with("within the budget by this")), (Some(Status::Denied), true));
    }
}
