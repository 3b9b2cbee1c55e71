//! What one machine's outside view does to a finding of a quiet instance. It never makes a proposal.

use super::{Class, Finding, HashMap, NodeId, Outcome, close, evidence, presence};
use crate::{
    findings::{Change, Detection, FindingId, QuietCase, QuietPolicy, Quietness, Status, next, window_end},
    sweep::{Context, Judged, outside::is_blind},
};
use jiff::Timestamp;

/// Why there is no plan, and will be none.
const NOT_PROPOSED: &str = "only its provider's outside view says so, which is weak evidence: it raises a finding and never an action; \
                            an agent on the machine would tell";

pub(super) fn judge(
    context: &Context,
    now: Timestamp,
    judged: &Judged,
    open: &mut HashMap<(Class, NodeId), Finding>,
    outcome: &mut Outcome,
) {
    let id = &judged.subject.id;
    let existing = open.remove(&(Class::QuietInstance, id.clone()));
    // A machine has one finding: what its agent proved before it fell silent stands.
    if existing.is_none() && open.contains_key(&(Class::IdleNode, id.clone())) {
        return;
    }
    let case = judged.outside.usage.as_ref().map(|usage| QuietCase { seen: usage.into(), policy: policy(context) });
    let window = existing.as_ref().map(|finding| (finding.since, window_end(finding)));
    match (next(window, &detection(judged, case.as_ref())), existing, case) {
        (Change::Open { since }, _, Some(case)) => outcome.opened.push(opened(now, since, judged, case)),
        (Change::Confirm { since }, Some(finding), Some(case)) => {
            let before = finding.confirmed_at;
            outcome.updated.push((confirmed(now, since, judged, case, finding), before));
        }
        (Change::Unconfirmed, Some(finding), _) if finding.confirmed_sweeps > 0 => {
            let before = finding.confirmed_at;
            outcome.updated.push((Finding { confirmed_sweeps: 0, ..finding }, before));
        }
        (Change::Close { because }, Some(finding), _) => outcome.updated.push(close(finding, now, because)),
        _ => {}
    }
}

fn policy(context: &Context) -> QuietPolicy {
    let verdict = &context.config.verdict;
    QuietPolicy {
        after_s: verdict.quiet_after.as_secs(),
        cpu_millionths: verdict.quiet_cpu_threshold_millionths,
        network_bytes_per_s: verdict.quiet_network_threshold_bytes_per_s,
    }
}

fn detection(judged: &Judged, case: Option<&QuietCase>) -> Detection {
    if let Some(detection) = presence(judged) {
        return detection;
    }
    if !is_blind(judged) {
        return Detection::Refuted { because: "an agent reports from it: its own word counts from now on".to_owned() };
    }
    // Whether a machine runs, its provider alone can say here.
    match case.filter(|_| judged.subject.instance.is_some()).map(|case| (case.judge(), case)) {
        Some((Quietness::Quiet, case)) => Detection::Confirmed { since: case.seen.from, work: None },
        Some((Quietness::Busy, case)) => {
            Detection::Refuted { because: format!("busy: {}", case.thresholds()[..2].join(", ")) }
        }
        Some((Quietness::NotKnown, _)) | None => Detection::NotKnown,
    }
}

fn opened(now: Timestamp, since: Timestamp, judged: &Judged, case: QuietCase) -> Finding {
    let resource = judged.subject.id.clone();
    let fresh = Finding {
        id: FindingId::new(Class::QuietInstance, &resource, now),
        class: Class::QuietInstance,
        resource,
        status: Status::Open,
        since,
        opened_at: now,
        confirmed_at: now,
        confirmed_sweeps: 0,
        cost: judged.cost.clone(),
        evidence: evidence(judged),
        proposal: None,
        not_proposed: None,
    };
    confirmed(now, since, judged, case, fresh)
}

fn confirmed(now: Timestamp, since: Timestamp, judged: &Judged, case: QuietCase, finding: Finding) -> Finding {
    let mut evidence = evidence(judged);
    evidence.outside = Some(case);
    Finding {
        since,
        confirmed_at: now,
        confirmed_sweeps: finding.confirmed_sweeps.saturating_add(1),
        cost: judged.cost.clone(),
        evidence,
        proposal: None,
        not_proposed: Some(NOT_PROPOSED.to_owned()),
        ..finding
    }
}
