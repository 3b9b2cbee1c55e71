//! How findings are put together, and what is written above them.

use crate::{
    detectors::{Class, FoundOn},
    sweep::FindingLine,
};

/// Above those that provider metrics alone show.
pub(super) const QUIET: &str =
    "Quiet as seen from outside, no agent reports from them: weak evidence, on which nobody acts";
/// Above what is billed though nobody uses it.
pub(super) const LEFT: &str = "Left over: billed, and used by nobody";
/// Above machines whose agent is heard no more.
pub(super) const SILENT: &str = "Silent: they run, and their agent is heard no more";
/// Above machines that do work, but not with their GPUs.
const NO_GPU: &str = "GPUs that nobody uses: their machines work, or wait for something";
/// Above machines that wait, and do hardly anything else.
pub(super) const BARELY: &str = "Barely used: something outside will wake them, and hardly anything happens meanwhile";
/// Above machines that work, and rest in the same hours of each week.
pub(super) const HOURS: &str =
    "Quiet hours: they work, and do hardly anything in some hours of each week: a schedule would help";
/// Above groups that start machines for nobody.
pub(super) const GROUPS: &str = "Idle groups: each of their machines is idle, and is replaced when it ends";
/// Above groups that start one machine after the other for nobody.
const RELAUNCHES: &str =
    "Relaunching groups and launch templates: what they started within a week was idle until it ended, again and again";
/// Above what AWS Batch keeps waiting or ready.
pub(super) const BATCH: &str = "AWS Batch: queues, jobs and machines that get nowhere";

/// Above work that only computes.
const SPINS: &str = "Suspicious: jobs and tasks that do nothing but compute, which may be a loop";

/// Above work that makes no progress, or that nobody waits for.
pub(super) const STUCK: &str = "Stuck: jobs, runs and tasks that make no progress, or have outlived their run";

/// Findings as they are shown together: idle machines, without a heading; idle groups; GPUs that nobody uses; machines that are barely used, or rest in some hours; work that is stuck; machines whose agent is silent; what gets nowhere; quiet ones; what is left over. None of these is empty.
pub(in crate::cli) fn groups(findings: &[FindingLine]) -> Vec<(Option<&'static str>, Vec<FindingLine>)> {
    let of = |heading: Option<&'static str>| {
        let mut lines = findings.iter().filter(|finding| heading_of(finding) == heading).cloned().collect::<Vec<_>>();
        if heading == Some(LEFT) {
            // Of many that cost little the dearest matter.
            lines.sort_by_key(|line| std::cmp::Reverse(line.cost_micro_usd_per_hour));
        }
        (!lines.is_empty()).then_some((heading, lines))
    };
    let headings = [GROUPS, RELAUNCHES, NO_GPU, BARELY, HOURS, STUCK, SPINS, SILENT, BATCH, QUIET, LEFT].map(Some);
    [None].into_iter().chain(headings).filter_map(of).collect()
}

/// Above which findings one is shown; none for idle machines.
pub(super) fn heading_of(finding: &FindingLine) -> Option<&'static str> {
    match Class::from_word(&finding.class) {
        Some(Class::QuietInstance) => Some(QUIET),
        Some(Class::SilentAgent) => Some(SILENT),
        Some(Class::IdleGpu) => Some(NO_GPU),
        Some(Class::BarelyUsed) => Some(BARELY),
        Some(Class::QuietHours) => Some(HOURS),
        Some(Class::UnregisteredWorker | Class::AbandonedWorker | Class::IdleWorker) => Some(BATCH),
        Some(Class::RelaunchingGroup) => Some(RELAUNCHES),
        Some(Class::SpinningJob) => Some(SPINS),
        Some(class) => match class.found_on() {
            FoundOn::Machine => None,
            FoundOn::Leftover => Some(LEFT),
            FoundOn::Group => Some(GROUPS),
            FoundOn::Batch => Some(BATCH),
            FoundOn::Work => Some(STUCK),
        },
        None => None,
    }
}
