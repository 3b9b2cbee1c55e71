//! What a recommendation changes and rests on, in words that a person can check.

use crate::verdict::words::{bytes, count};
use recommender::{
    demand::{Demand, Flow},
    recommendation::{Change, Evidence},
};

/// `m5.xlarge → m5.large`
pub(super) fn change(change: &Change) -> String {
    match change {
        Change::Rightsize { from, to } | Change::Architecture { from, to, .. } | Change::Region { from, to, .. } => {
            format!("{from} → {to}")
        }
        Change::Schedule { zone, off } => {
            let spans: Vec<String> = off.iter().map(|off| format!("{} to {}", off.stop, off.start)).collect();
            format!("off each week from {} ({zone})", spans.join(", "))
        }
        Change::MinVcpus { from, to } => format!("minvCpus {from} → {to}"),
        Change::Request { of, from, to } => format!("{of} asks for {to} instead of {from}"),
        Change::Spot { pools } => format!("{} pools of spare capacity", pools.len()),
    }
}

/// What it rests on, a line each.
pub(super) fn evidence(evidence: &Evidence) -> Vec<String> {
    let Evidence::Size { demand, replayed } = evidence else { return Vec::new() };
    let mut lines = demand_lines(demand);
    let mut told = format!(
        "replayed on the other type: in {} its fullest interval would have used {} of its vCPUs",
        count(replayed.hours, "hour", "hours"),
        per_cent(replayed.cpu_per_mille)
    );
    if let Some(memory) = replayed.memory_per_mille {
        told.push_str(&format!(", and its fullest second {} of its memory", per_cent(memory)));
    }
    lines.push(told);
    if let Some(credits) = replayed.fewest_credits_ms {
        lines.push(format!(
            "of its CPU credits {} minutes of a vCPU would have been left at the least",
            credits / 60_000
        ));
    }
    lines
}

fn demand_lines(demand: &Demand) -> Vec<String> {
    let observed = demand.observed;
    let mut lines = vec![format!(
        "{} observed with a weekend: {} measured, {} missing",
        count(observed.days, "day", "days"),
        count(observed.hours, "hour", "hours"),
        observed.gaps
    )];
    if let Some(of) = demand.cores {
        lines.push(format!(
            "cores in use: {} on average, at most {} for 99 % of the time, {} in the fullest interval",
            cores(of.mean),
            cores(of.p99),
            cores(of.peak)
        ));
    }
    if let Some(peak) = demand.memory_peak_bytes {
        lines.push(format!("memory in use: {} in the fullest second", bytes(peak)));
    }
    let flow = |what: &str, flow: Option<Flow>, text: fn(u64) -> String| {
        let flow = flow?;
        Some(format!(
            "{what}: {}/s in the busiest hour, {}/s in its busiest five minutes",
            text(flow.mean),
            text(flow.peak)
        ))
    };
    lines.extend(flow("network", demand.network, bytes));
    lines.extend(flow("disks", demand.disk, bytes));
    lines.extend(flow("disks", demand.disk_operations, |operations| count(operations, "operation", "operations")));
    lines
}

/// `0.41`; rounded up.
fn cores(thousandths: u64) -> String {
    let hundredths = thousandths.div_ceil(10);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// `41 %`; rounded up.
fn per_cent(per_mille: u64) -> String {
    format!("{} %", per_mille.div_ceil(10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recommender::{
        backtest::Replayed,
        demand::{Cores, Cpus, Observed, Signs},
    };

    #[test]
    fn the_evidence_of_a_size_names_each_figure_with_its_unit_and_leaves_out_what_is_not_known() {
        let demand = Demand {
            observed: Observed { days: 9, span_hours: 216, hours: 215, gaps: 1, weekend: true },
            cores: Some(Cores { mean: 301, median: 300, p95: 400, p99: 447, peak: 511 }),
            cpus: Some(Cpus { fewest: 2, most: 2 }),
            memory_peak_bytes: Some(3 << 30),
            waiting: None,
            throttled: None,
            stolen: Some(0),
            oom_kills: Some(0),
            swap_pages: Some(0),
            network: None,
            disk: None,
            disk_operations: Some(Flow { mean: 1, peak: 40 }),
            rdma_bytes: None,
            signs: Signs::default(),
        };
        let replayed =
            Replayed { hours: 215, cpu_per_mille: 256, memory_per_mille: Some(375), fewest_credits_ms: None };
        let lines = evidence(&Evidence::Size { demand: Box::new(demand), replayed });
        assert_eq!(
            lines,
            [
                "9 days observed with a weekend: 215 hours measured, 1 missing",
                "cores in use: 0.31 on average, at most 0.45 for 99 % of the time, 0.52 in the fullest interval",
                "memory in use: 3.0 GiB in the fullest second",
                "disks: 1 operation/s in the busiest hour, 40 operations/s in its busiest five minutes",
                "replayed on the other type: in 215 hours its fullest interval would have used 26 % of its vCPUs, and its fullest second 38 % of its memory",
            ]
        );
    }
}
