//! `/proc/stat`: where the CPUs' time went, and how many tasks were made and switched.

use super::number;

const NS_PER_S: u64 = 1_000_000_000;

/// CPU time over all CPUs, in nanoseconds. The kernel counts it in ticks of 10 ms and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In user mode, also at low priority.
    pub user_ns: u64,
    /// In kernel mode, interrupts included.
    pub system_ns: u64,
    /// Idle while a task that last ran there waited for I/O. The kernel's own word for it is "not reliable": a task does
    /// not wait on any one CPU. It says that somebody waits, not how much.
    pub iowait_ns: u64,
    /// Given to others by the hypervisor.
    pub steal_ns: u64,
}

/// What one sample of `/proc/stat` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) cpu: Option<Cpu>,
    pub(super) tasks_created: Option<u64>,
    pub(super) context_switches: Option<u64>,
}

pub(super) fn parse(stat: &str, ticks_per_s: u64) -> Stat {
    Stat {
        cpu: cpu(stat, ticks_per_s),
        tasks_created: number(stat, "processes"),
        context_switches: number(stat, "ctxt"),
    }
}

/// The `cpu` line. Guest time is part of user time already: <https://man7.org/linux/man-pages/man5/proc_stat.5.html>
fn cpu(stat: &str, ticks_per_s: u64) -> Option<Cpu> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let tick_ns = NS_PER_S.checked_div(ticks_per_s)?;
    let [user, nice, system, _idle, iowait, irq, softirq, rest @ ..] = ticks.as_slice() else { return None };
    let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
    Some(Cpu {
        user_ns: ns(user.saturating_add(*nice)),
        system_ns: ns(system.saturating_add(*irq).saturating_add(*softirq)),
        iowait_ns: ns(*iowait),
        steal_ns: ns(rest.first().copied().unwrap_or(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_idle_are_not_busy_and_guests_count_once() {
        let stat = "cpu  10 1 5 1000 200 2 3 4 9 0\ncpu0 10 1 5 1000 200 2 3 4 9 0\nctxt 1234567\nprocesses 77\n";
        let cpu = Cpu { user_ns: 110_000_000, system_ns: 100_000_000, iowait_ns: 2_000_000_000, steal_ns: 40_000_000 };
        let expected = Stat { cpu: Some(cpu), tasks_created: Some(77), context_switches: Some(1_234_567) };
        assert_eq!(parse(stat, 100), expected);
    }

    #[test]
    fn an_old_kernel_without_steal_and_a_broken_file_are_told_apart() {
        assert_eq!(cpu("cpu 1 0 1 0 0 0 0\n", 100).map(|cpu| cpu.steal_ns), Some(0));
        assert_eq!(cpu("cpu 1 0 x\n", 100), None);
        assert_eq!(cpu("cpu 1 0 1 0 0 0 0\n", 0), None);
        assert_eq!(parse("", 100), Stat::default());
    }
}
