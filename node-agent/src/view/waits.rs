//! What the machine waits for, in order of weight. Pure.
//!
//! A resource is named if and only if tasks lost at least 1 % of the interval to it. Pressure stall information counts wall time,
//! delay accounting counts task time: where both are known the larger one weighs, because each is blind in one eye (PSI where
//! a kernel lacks it or has it switched off, delay accounting where `task_delayacct` is off).

use super::{
    shape::View,
    units::{byte_rate, cpus, percent, rate},
};

const LEAST_SHARE: f64 = 0.01;

/// One thing that tasks wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Share of the interval, 0 to 1 and above where several tasks waited at once.
    pub weight: f64,
    /// What it is.
    pub what: &'static str,
    /// The figures behind it.
    pub details: String,
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// The heaviest first; empty if nothing was waited for. `None` if nothing that could tell is measured.
#[must_use]
pub fn waits(view: &View) -> Option<Vec<Wait>> {
    let machine = &view.machine;
    let pressure = &machine.pressure;
    let candidates = [
        (
            larger(pressure.cpu, machine.run_queue),
            "CPU",
            format!("{} CPUs' worth of tasks had none", cpus(machine.run_queue)),
        ),
        (
            larger(larger(pressure.io, machine.blocked_io), machine.iowait),
            "disk",
            format!("read {}, write {}", byte_rate(machine.disk[0]), byte_rate(machine.disk[1])),
        ),
        (
            pressure.memory,
            "memory",
            format!("{} pages/s reclaimed by tasks, {} swapped", rate(machine.reclaimed), rate(machine.swapped)),
        ),
        (machine.steal, "the hypervisor", format!("{} CPUs were given to others", cpus(machine.steal))),
    ];
    if candidates.iter().all(|(weight, ..)| weight.is_none()) {
        return None;
    }
    let mut waits = candidates
        .into_iter()
        .filter_map(|(weight, what, details)| Some(Wait { weight: weight?, what, details }))
        .filter(|wait| wait.weight >= LEAST_SHARE)
        .collect::<Vec<_>>();
    waits.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Some(waits)
}

/// The same in one sentence, with the figures behind the heaviest.
#[must_use]
pub fn sentence(view: &View) -> String {
    match waits(view) {
        None => "not known: neither pressure nor delays are measured".to_owned(),
        Some(waits) if waits.is_empty() => {
            let idle = view.machine.cpu.is_some_and(|cpu| cpu < 0.05 * f64::from(view.host.cpus));
            if idle { "nothing: it is idle" } else { "nothing: it works unhindered" }.to_owned()
        }
        Some(waits) => {
            let one = |wait: &Wait| format!("{} {}", wait.what, percent(Some(wait.weight)));
            let all = waits.iter().map(one).collect::<Vec<_>>().join(", ");
            // The figures behind the heaviest: a line has 80 letters.
            format!("{all}; {}", waits[0].details)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::shape::{Machine, Pressure};

    fn view(machine: Machine) -> View {
        View { machine, host: heartbeat::wire::Host { cpus: 2, ..Default::default() }, ..View::default() }
    }

    #[test]
    fn the_heaviest_wait_is_named_first_and_trifles_are_not() {
        let pressure = Pressure { io: Some(0.4), cpu: Some(0.02), memory: Some(0.001), ..Pressure::default() };
        let found = waits(&view(Machine { pressure, run_queue: Some(0.8), ..Machine::default() })).unwrap_or_default();
        assert_eq!(found.iter().map(|wait| wait.what).collect::<Vec<_>>(), ["CPU", "disk"]);
        assert!((found[0].weight - 0.8).abs() < 1e-9, "the run queue tells more than the pressure");
    }

    #[test]
    fn nothing_measured_is_not_nothing_waited_for() {
        assert_eq!(waits(&view(Machine::default())), None);
        let quiet = view(Machine { steal: Some(0.0), cpu: Some(0.01), ..Machine::default() });
        assert_eq!(waits(&quiet), Some(Vec::new()));
        assert_eq!(sentence(&quiet), "nothing: it is idle");
        let busy = view(Machine { steal: Some(0.0), cpu: Some(1.9), ..Machine::default() });
        assert_eq!(sentence(&busy), "nothing: it works unhindered");
    }
}
