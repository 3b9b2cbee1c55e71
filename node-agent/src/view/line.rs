//! One interval in one line, for `watch` without `--json`. Pure.

use super::{
    shape::{Row, View},
    units::{byte_rate, cpus},
    waits,
};
use heartbeat::wire::Class;
use std::fmt::Write as _;

/// What the machine did, what it waits for, who did most of it, and what is not measured.
#[must_use]
pub fn line(view: &View) -> String {
    let machine = &view.machine;
    let time = jiff::Timestamp::from_millisecond(view.taken_unix_ms).unwrap_or_default();
    let mut text = format!(
        "{} cpu {} of {}, disk r {} w {}, net in {} out {}; waits for {}",
        time.strftime("%H:%M:%SZ"),
        cpus(machine.cpu),
        view.host.cpus,
        byte_rate(machine.disk[0]),
        byte_rate(machine.disk[1]),
        byte_rate(machine.network[0]),
        byte_rate(machine.network[1]),
        waits::sentence(view),
    );
    if let Some(top) = busiest(view) {
        let _ = write!(text, "; busiest {} {} in {}", top.command, cpus(top.cpu), top.key);
    }
    let living = view.runs.iter().filter(|run| !run.ended).count();
    if living > 0 {
        let _ = write!(text, "; {living} {}", if living == 1 { "run" } else { "runs" });
    }
    if !view.problems.is_empty() {
        let names = view.problems.iter().map(|capability| capability.name.as_str()).collect::<Vec<_>>();
        let _ = write!(text, "; not measured: {}", names.join(", "));
    }
    text
}

/// The workload that used most CPU time, if any used a thousandth of one.
fn busiest(view: &View) -> Option<&Row> {
    let rows = view.workloads.iter().filter(|row| row.class == Class::Workload);
    rows.filter(|row| row.cpu.is_some_and(|cpu| cpu >= 0.001))
        .max_by(|a, b| a.cpu.unwrap_or(0.0).total_cmp(&b.cpu.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    #[test]
    fn a_line_says_what_a_person_at_two_in_the_morning_asks() {
        insta::assert_snapshot!(line(&samples::view()));
        insta::assert_snapshot!(line(&View::new(None, &heartbeat::wire::Heartbeat::default())));
    }
}
