//! What a sweep's detections do to the findings that are open. Pure; it knows no class.
//!
//! A finding opens when it is confirmed, stays open while nothing is known, and ends by evidence only. Each decision that changes what is known of a
//! finding is kept with all that it rests on, as a [`Record`].

mod event;
mod next;
mod record;

pub(crate) use event::ACTED;
pub use event::{Event, EventId, EventKind};
pub use next::{Before, Change, next};
pub use record::{Record, Replayed};

use crate::{
    detectors::{Detection, On},
    findings::{
        BatchEvidence, Evidence, Finding, FindingId, GroupEvidence, LeftoverEvidence, Machine, MachineEvidence,
        Recorded, Status, WorkEvidence,
    },
    verdict::{Case, LastWork},
};
use jiff::{SignedDuration, Timestamp};
use model::{Verdict, plan::Plan};
use recommender::rules::Input;

/// What a sweep saw of one class of waste on one resource, and what is made of it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// What the detector says, and of what.
    pub detection: &'a Detection<'a>,
    /// What a finding shows of a machine, as its provider says it; none for what is no machine.
    pub machine: Option<&'a Machine>,
    /// Whether, and how, a plan is made to end it.
    pub planning: Planning<'a>,
}

/// How a class of waste comes to a plan.
pub enum Planning<'a> {
    /// Never, for this reason.
    Never(&'a str),
    /// Once so many sweeps in a row have confirmed it.
    After {
        /// So many; at least one.
        sweeps: u32,
        /// Makes the plan of a finding, or says why there is none.
        plan: &'a dyn Fn(&Finding) -> Planned,
    },
}

impl std::fmt::Debug for Planning<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Never(why) => f.debug_tuple("Never").field(why).finish(),
            Self::After { sweeps, .. } => f.debug_struct("After").field("sweeps", sweeps).finish_non_exhaustive(),
        }
    }
}

/// A plan with all that it was made from.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What the rule looked at.
    pub input: Input,
    /// The plan, or why there is none.
    pub plan: Result<Plan, String>,
}

/// A finding as it is to be written.
#[derive(Clone, Debug)]
pub struct Step {
    /// The finding.
    pub finding: Finding,
    /// When it was last confirmed before; none for a new one.
    pub was_confirmed_at: Option<Timestamp>,
    /// What the decision rests on, where it changes what is known.
    pub record: Option<Record>,
}

/// What becomes of one class of waste on one resource: nothing, one step, or an end and a begin.
#[must_use]
pub fn reconcile(now: Timestamp, open: Option<Finding>, seen: &Seen<'_>) -> Vec<Step> {
    let before = open.as_ref().map(Before::of);
    let Detection { on, answer, .. } = seen.detection;
    let change = next(before.as_ref(), answer, on.was_asked());
    let decided = Decided { now, seen, before, change: &change };
    match (&change, open) {
        (&Change::Open { since, until }, _) => vec![decided.opened(since, until)],
        (&Change::Confirm { since, until }, Some(finding)) => vec![decided.confirmed(since, until, finding)],
        (&Change::Interrupt { since, until, ref because }, Some(finding)) => {
            // A new one has its own begin, and takes the place of the one that it replaces: that is written first.
            let opened = Change::Open { since, until };
            let new = Decided { before: None, change: &opened, ..decided };
            vec![decided.closed(because, finding), new.opened(since, until)]
        }
        (Change::Unconfirmed, Some(finding)) if finding.confirmed_sweeps > 0 => {
            vec![decided.unconfirmed(finding)]
        }
        (Change::Resolve { because } | Change::Gone { because }, Some(finding)) => {
            vec![decided.closed(because, finding)]
        }
        _ => Vec::new(),
    }
}

impl Before {
    fn of(finding: &Finding) -> Self {
        Self { since: finding.since, confirmed_until: finding.confirmed_until, listed: finding.evidence.was_listed() }
    }
}

/// One decision.
#[derive(Clone, Copy)]
struct Decided<'a> {
    now: Timestamp,
    seen: &'a Seen<'a>,
    before: Option<Before>,
    change: &'a Change,
}

impl Decided<'_> {
    fn evidence(&self) -> Evidence {
        match self.seen.detection.on {
            On::Machine(machine) => Evidence::Machine(Box::new(MachineEvidence {
                case: machine.inputs.case.summary(),
                judgement: machine.judgement.clone(),
                machine: self.seen.machine.cloned(),
                metrics: machine.inputs.metrics.clone(),
                hours: machine.inputs.hours,
                week: machine.inputs.week.clone(),
                last_work: (machine.judgement.verdict == Verdict::Idle)
                    .then(|| LastWork::of(&machine.inputs.case))
                    .flatten(),
            })),
            On::Leftover(leftover) => Evidence::Leftover(Box::new(LeftoverEvidence {
                thing: leftover.thing.clone(),
                listed: leftover.inputs.clone(),
            })),
            On::Group(group) => {
                Evidence::Group(Box::new(GroupEvidence { thing: group.thing.clone(), group: group.inputs.clone() }))
            }
            On::Batch(resource) => Evidence::Batch(Box::new(BatchEvidence {
                thing: resource.thing.clone(),
                batch: resource.inputs.clone(),
            })),
            On::Work(job) => Evidence::Work(Box::new(WorkEvidence {
                thing: job.thing.clone(),
                job: job.inputs.clone(),
                judged: job.judgement.clone(),
            })),
        }
    }

    fn opened(&self, since: Timestamp, until: Timestamp) -> Step {
        let detection = self.seen.detection;
        let Detection { class, on, .. } = detection;
        let resource = on.resource();
        let mut finding = Finding {
            id: FindingId::new(*class, resource, self.now),
            class: *class,
            resource: resource.clone(),
            status: Status::Open,
            since,
            opened_at: self.now,
            confirmed_at: self.now,
            confirmed_until: until,
            confirmed_sweeps: 1,
            cost: detection.cost(),
            evidence: self.evidence(),
            recorded: Recorded::default(),
            plan: None,
            no_plan_because: None,
        };
        let asked = self.plan(&mut finding);
        self.step(EventKind::Opened, finding, None, asked)
    }

    fn confirmed(&self, since: Timestamp, until: Timestamp, finding: Finding) -> Step {
        let before = finding;
        // The evidence is replaced, and not copied before.
        let mut finding = Finding {
            since,
            confirmed_at: self.now,
            confirmed_until: until,
            confirmed_sweeps: before.confirmed_sweeps.saturating_add(1),
            cost: self.seen.detection.cost(),
            evidence: self.evidence(),
            id: before.id.clone(),
            class: before.class,
            resource: before.resource.clone(),
            status: Status::Open,
            opened_at: before.opened_at,
            recorded: before.recorded,
            plan: before.plan.clone(),
            no_plan_because: before.no_plan_because.clone(),
        };
        if let (Evidence::Machine(before), Evidence::Machine(now)) = (&before.evidence, &mut finding.evidence) {
            now.last_work = LastWork::or_else(now.last_work.take(), before.last_work.as_ref());
        }
        let asked = self.plan(&mut finding);
        let was_confirmed_at = Some(before.confirmed_at);
        if !self.is_news(&before, &finding) {
            return Step { finding, was_confirmed_at, record: None };
        }
        let is_planned = before.plan.is_none() && finding.plan.is_some();
        let event = if is_planned { EventKind::Planned } else { EventKind::Changed };
        self.step(event, finding, was_confirmed_at, asked)
    }

    fn unconfirmed(&self, finding: Finding) -> Step {
        let was_confirmed_at = Some(finding.confirmed_at);
        // Its plan stays: who approved it need not do so again where one list failed once. Nobody acts on it meanwhile.
        let no_plan_because = match (&self.seen.planning, &finding.plan) {
            (_, Some(_)) => None,
            (Planning::Never(why), None) => Some((*why).to_owned()),
            (Planning::After { .. }, None) => Some("no longer confirmed".to_owned()),
        };
        let finding = Finding { confirmed_sweeps: 0, no_plan_because, ..finding };
        self.step(EventKind::Changed, finding, was_confirmed_at, None)
    }

    fn closed(&self, because: &str, finding: Finding) -> Step {
        let was_confirmed_at = Some(finding.confirmed_at);
        let status = Status::Closed { at: self.now, because: because.to_owned() };
        let event = match self.change {
            Change::Interrupt { .. } => EventKind::Interrupted,
            Change::Gone { .. } => EventKind::Gone,
            _ => EventKind::Resolved,
        };
        self.step(event, Finding { status, plan: None, ..finding }, was_confirmed_at, None)
    }

    fn step(
        &self,
        event: EventKind,
        mut finding: Finding,
        was_confirmed_at: Option<Timestamp>,
        asked: Option<Input>,
    ) -> Step {
        finding.recorded = Recorded {
            count: finding.recorded.count.saturating_add(1),
            at: Some(self.now),
            until: Some(finding.confirmed_until),
        };
        let Detection { class, on, .. } = self.seen.detection;
        let record = Record {
            finding: finding.id.clone(),
            number: finding.recorded.count,
            at: self.now,
            event,
            class: *class,
            version: class.version(),
            inputs: on.inputs(),
            before: self.before,
            cost: self.seen.detection.cost(),
            change: self.change.clone(),
            plan: asked.as_ref().and(finding.plan.as_ref()).map(|plan| plan.content_hash().clone()),
            asked,
            is_of_before: false,
        };
        Step { finding, was_confirmed_at, record: Some(record) }
    }

    /// Makes the finding's plan, and says what it was made from if it is a new one.
    fn plan(&self, finding: &mut Finding) -> Option<Input> {
        let (sweeps, plan) = match self.seen.planning {
            Planning::Never(why) => {
                (finding.plan, finding.no_plan_because) = (None, Some(why.to_owned()));
                return None;
            }
            Planning::After { sweeps, plan } => (sweeps, plan),
        };
        if finding.confirmed_sweeps < sweeps && finding.plan.is_none() {
            let confirmed = format!("confirmed by {} of {sweeps} sweeps in a row", finding.confirmed_sweeps);
            finding.no_plan_because = Some(confirmed);
            return None;
        }
        let Planned { input, plan } = plan(finding);
        match plan {
            // A plan is immutable. It is made anew when it has expired, or when what it rests on has changed.
            Ok(new) => match finding.plan.take().filter(|old| old.valid_until() > self.now && old.is_like(&new)) {
                Some(old) => {
                    // Prices stand beside the plan: they are today's.
                    let old = old.priced(new.charge_prices().to_vec());
                    (finding.plan, finding.no_plan_because) = (Some(old), None);
                    None
                }
                None => {
                    (finding.plan, finding.no_plan_because) = (Some(new), None);
                    Some(input)
                }
            },
            Err(why) => {
                (finding.plan, finding.no_plan_because) = (None, Some(why));
                Some(input)
            }
        }
    }

    /// Whether a confirmation says something that no record does: of the finding, the machine, its agent; or of a time twice as long as the last record
    /// tells of, or a day later. So a finding of a month has some forty records, and most of what it claims is covered by one.
    fn is_news(&self, before: &Finding, now: &Finding) -> bool {
        let agent = |case: &Case| {
            let node = case.node.as_ref()?;
            Some((node.boot_id, node.agent_version.clone(), node.rules_version.clone(), node.gpu, node.identity))
        };
        let is_told_otherwise = match (&before.evidence, &now.evidence) {
            (Evidence::Machine(before), Evidence::Machine(now)) => {
                before.machine != now.machine || agent(&before.case) != agent(&now.case)
            }
            (Evidence::Leftover(before), Evidence::Leftover(now)) => before.thing != now.thing,
            (Evidence::Group(before), Evidence::Group(now)) => before.thing != now.thing,
            (Evidence::Batch(before), Evidence::Batch(now)) => before.thing != now.thing,
            (Evidence::Work(before), Evidence::Work(now)) => {
                before.thing != now.thing || before.job.machine != now.job.machine
            }
            _ => true,
        };
        let hash = |finding: &Finding| finding.plan.as_ref().map(|plan| plan.content_hash().clone());
        let Recorded { count, at: Some(recorded_at), until: Some(recorded_until) } = before.recorded else {
            return true;
        };
        let told = recorded_until.duration_since(now.since);
        count == 0
            || before.confirmed_sweeps == 0
            || before.since != now.since
            || before.cost != now.cost
            || before.no_plan_because != now.no_plan_because
            || hash(before) != hash(now)
            || is_told_otherwise
            || now.confirmed_until.duration_since(now.since) >= told.saturating_mul(2)
            || self.now.duration_since(recorded_at) >= RECORDED_EACH
    }
}

/// So often at least a finding that is confirmed gets a record.
const RECORDED_EACH: SignedDuration = SignedDuration::from_hours(24);
