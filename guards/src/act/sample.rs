//! A moment in which nothing stands in the way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKey,
    address::AddressFacts,
    group::GroupFacts,
    machine::{ComputeEngineFacts, Ec2Facts},
    plan::{Action, Condition, ContentHash, Plan, PlanContent, Saving},
    volume::{SnapshotFacts, VolumeFacts},
};

use super::{
    Answer, Caps, Cohort, Dependents, Exempted, LiveSample, LiveVerdict, MachineFacts, Moment, OnAddress, OnMachine,
    OnMember, OnVolume, Say, Subject, Switch,
};
use crate::{
    address,
    compute_engine::{self, sample::STARTED},
    member::sample::{GROUP, member},
    sample::{LAUNCHED, facts},
    volume,
};

pub(crate) const NOW: Timestamp = Timestamp::constant(1_790_100_000, 0);
pub(crate) const BOOT: &str = "0b1e";

/// All that a moment borrows.
pub(crate) struct Sample {
    pub(crate) now: Timestamp,
    pub(crate) plan: Plan,
    pub(crate) current_plan: Option<ContentHash>,
    pub(crate) exempted: Vec<Exempted>,
    pub(crate) confirmed_sweeps: u32,
    pub(crate) says: Vec<Say>,
    pub(crate) needs: Option<u32>,
    pub(crate) machine: Ec2Facts,
    pub(crate) tags_before: Option<BTreeMap<String, String>>,
    pub(crate) switch: Switch,
    pub(crate) is_switched_on: bool,
    pub(crate) is_attested: bool,
    pub(crate) live: Option<LiveSample>,
    pub(crate) rules_version: &'static str,
    pub(crate) bridges_a_gap: bool,
    pub(crate) caps: Caps,
    pub(crate) cohort: Cohort,
    pub(crate) has_relapsed: bool,
    pub(crate) was_restored: Option<bool>,
    pub(crate) is_own: Option<bool>,
    pub(crate) dependents: Dependents,
}

fn plan() -> Plan {
    let content = PlanContent {
        finding: "f-1".to_owned(),
        record: 2,
        resource: "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().expect("a key"),
        title: "Stop it".to_owned(),
        conditions: vec![
            Condition::TagsPermit,
            Condition::StateIs { state: "running".to_owned() },
            Condition::LaunchedAtIs { at: LAUNCHED },
            Condition::InstanceTypeIs { instance_type: "m5.large".to_owned() },
            Condition::NotProtected,
            Condition::StillIdle,
        ],
        actions: vec![Action::StopInstance],
        reversal: vec![Action::StartInstance],
        lost: Vec::new(),
        keeps_billing: Vec::new(),
        net_saving: Saving::Unknown { why: "no price".to_owned() },
    };
    Plan::seal(content, NOW + SignedDuration::from_hours(12)).expect("a plan")
}

impl Default for Sample {
    fn default() -> Self {
        let plan = plan();
        let hash = plan.content_hash().clone();
        Self {
            now: NOW,
            current_plan: Some(hash.clone()),
            exempted: Vec::new(),
            confirmed_sweeps: 2,
            says: vec![Say {
                approver: "ada".to_owned(),
                answer: Answer::Approve,
                at: NOW - SignedDuration::from_mins(5),
                enrolled_since: Some(NOW - SignedDuration::from_hours(24)),
            }],
            needs: Some(1),
            machine: facts(|facts| facts.tag("owner", "ada")),
            tags_before: Some(BTreeMap::from([("owner".to_owned(), "ada".to_owned())])),
            switch: Switch::Off,
            is_switched_on: true,
            is_attested: true,
            live: Some(LiveSample {
                plan: hash,
                boot: BOOT.to_owned(),
                boot_of_evidence: BOOT.to_owned(),
                received_at: NOW - SignedDuration::from_secs(2),
                ended_at: Some(NOW - SignedDuration::from_secs(3)),
                is_answer_to_this: true,
                verdict: LiveVerdict::Idle,
                rules_version: "builtin-7".to_owned(),
            }),
            rules_version: "builtin-7",
            bridges_a_gap: false,
            caps: Caps { done: 0, machines: 200 },
            cohort: Cohort { machines: 40, turned_idle: 3 },
            has_relapsed: false,
            was_restored: Some(false),
            is_own: Some(false),
            dependents: Dependents::Known(BTreeSet::new()),
            plan,
        }
    }
}

impl Sample {
    pub(crate) fn moment(&self) -> Moment<'_> {
        Moment {
            now: self.now,
            plan: &self.plan,
            current_plan: self.current_plan.as_ref(),
            exempted: &self.exempted,
            confirmed_sweeps: self.confirmed_sweeps,
            says: &self.says,
            needs: self.needs,
            tags_before: self.tags_before.as_ref(),
            switch: self.switch,
            is_switched_on: self.is_switched_on,
            caps: &self.caps,
            has_relapsed: self.has_relapsed,
            was_restored: self.was_restored,
            is_own: self.is_own,
            subject: Subject::Machine(self.on_machine()),
        }
    }

    fn on_machine(&self) -> OnMachine<'_> {
        OnMachine {
            facts: MachineFacts::Ec2(&self.machine),
            is_attested: self.is_attested,
            live: self.live.as_ref(),
            rules_version: self.rules_version,
            bridges_a_gap: self.bridges_a_gap,
            cohort: &self.cohort,
            dependents: &self.dependents,
        }
    }

    /// One that two people have approved, and no agent speaks for.
    pub(crate) fn of_two() -> Self {
        let mut sample = Sample::default();
        let second = Say { approver: "grace".to_owned(), ..sample.says[0].clone() };
        sample.says.push(second);
        sample.needs = Some(2);
        // No agent speaks for it.
        (sample.live, sample.is_attested) = (None, false);
        sample
    }

    /// With this plan in the place of the one before, which the finding has now.
    pub(crate) fn approved(&mut self, content: PlanContent) {
        self.plan = Plan::seal(content, self.plan.valid_until()).expect("a plan");
        let hash = self.plan.content_hash().clone();
        if let Some(live) = &mut self.live {
            live.plan = hash.clone();
        }
        self.current_plan = Some(hash);
    }

    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), crate::Refusal> {
        let mut sample = Self::default();
        change(&mut sample);
        super::may_act(&sample.moment())
    }
}

/// A moment in which nothing stands in the way of a stop of Google Cloud's.
pub(crate) struct OfGoogle {
    pub(crate) sample: Sample,
    pub(crate) facts: ComputeEngineFacts,
}

impl OfGoogle {
    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), crate::Refusal> {
        let mut sample = Sample::default();
        sample.approved(PlanContent {
            resource: "gcp:omics-prod-1:europe-west3-a:1000".parse().expect("a key"),
            conditions: vec![
                Condition::TagsPermit,
                Condition::StateIs { state: "running".to_owned() },
                Condition::LaunchedAtIs { at: STARTED },
                Condition::InstanceTypeIs { instance_type: "n2-standard-8".to_owned() },
                Condition::NotProtected,
                Condition::StillIdle,
            ],
            ..sample.plan.content().clone()
        });
        let mut of_google = Self { sample, facts: compute_engine::sample::facts(|_| ()) };
        change(&mut of_google);
        let mut moment = of_google.sample.moment();
        if let Subject::Machine(machine) = &mut moment.subject {
            machine.facts = MachineFacts::ComputeEngine(&of_google.facts);
        }
        super::may_act(&moment)
    }
}

/// A moment in which nothing stands in the way of an address's release.
pub(crate) struct Released {
    pub(crate) sample: Sample,
    pub(crate) facts: AddressFacts,
    pub(crate) unused_since: Option<Timestamp>,
}

/// When it was last used.
const UNUSED: Timestamp = Timestamp::constant(1_780_000_000, 0);

impl Released {
    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), crate::Refusal> {
        let mut sample = Sample::of_two();
        sample.approved(PlanContent {
            resource: "aws:123456789012:eu-central-1:eipalloc-0123456789abcdef0".parse().expect("a key"),
            title: "Release it".to_owned(),
            conditions: vec![
                Condition::TagsPermit,
                Condition::AddressIs { address: "203.0.113.8".to_owned() },
                Condition::TiedToNothing,
                Condition::UnusedSince { at: UNUSED },
                Condition::NoReverseName,
                Condition::NotOffered,
            ],
            actions: vec![Action::ReleaseAddress],
            reversal: Vec::new(),
            ..sample.plan.content().clone()
        });
        let mut released = Self { sample, facts: address::sample::facts(|_| ()), unused_since: Some(UNUSED) };
        change(&mut released);
        let mut moment = released.sample.moment();
        moment.subject = Subject::Address(OnAddress { facts: &released.facts, unused_since: released.unused_since });
        super::may_act(&moment)
    }
}

/// A moment in which nothing stands in the way of a volume's end.
pub(crate) struct Deleted {
    pub(crate) sample: Sample,
    pub(crate) facts: VolumeFacts,
    pub(crate) unused_since: Option<Timestamp>,
    pub(crate) snapshot: Option<SnapshotFacts>,
}

impl Deleted {
    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), crate::Refusal> {
        let mut sample = Sample::of_two();
        sample.approved(PlanContent {
            resource: "aws:123456789012:eu-central-1:vol-0123456789abcdef0".parse().expect("a key"),
            title: "Delete it".to_owned(),
            conditions: vec![
                Condition::TagsPermit,
                Condition::TiedToNothing,
                Condition::UnusedSince { at: UNUSED },
                Condition::SnapshotCompleted,
            ],
            actions: vec![Action::DeleteVolume],
            reversal: Vec::new(),
            ..sample.plan.content().clone()
        });
        let snapshot = SnapshotFacts {
            snapshot_id: "snap-0123456789abcdef0".to_owned(),
            volume_id: Some("vol-0123456789abcdef0".to_owned()),
            size_gib: Some(100),
            state: Some("completed".to_owned()),
            started_at: Some(NOW - SignedDuration::from_mins(4)),
            plan: Some(sample.plan.content_hash().to_string()),
        };
        let facts = volume::sample::facts(|_| ());
        let mut deleted = Self { sample, facts, unused_since: Some(UNUSED), snapshot: Some(snapshot) };
        change(&mut deleted);
        let mut moment = deleted.sample.moment();
        let (unused_since, snapshot) = (deleted.unused_since, deleted.snapshot.as_ref());
        moment.subject = Subject::Volume(OnVolume { facts: &deleted.facts, unused_since, snapshot });
        super::may_act(&moment)
    }
}

/// A moment in which nothing stands in the way of the end of a member of a group.
pub(crate) struct Ended {
    pub(crate) sample: Sample,
    pub(crate) group: GroupFacts,
    pub(crate) ending: Option<ResourceKey>,
}

impl Ended {
    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), crate::Refusal> {
        let live = Sample::default().live;
        let mut sample = Sample { live, is_attested: true, ..Sample::of_two() };
        let (machine, group) = member(|_, _| ());
        sample.machine = machine;
        let mut conditions = sample.plan.content().conditions.clone();
        conditions.extend([Condition::MemberOf { group: GROUP.to_owned() }, Condition::GroupCanShrink]);
        sample.approved(PlanContent {
            title: "End it".to_owned(),
            conditions,
            actions: vec![Action::EndMember],
            reversal: Vec::new(),
            ..sample.plan.content().clone()
        });
        let mut ended = Self { sample, group, ending: None };
        change(&mut ended);
        let mut moment = ended.sample.moment();
        let (machine, ending) = (ended.sample.on_machine(), ended.ending.as_ref());
        moment.subject = Subject::Member(OnMember { machine, group: &ended.group, ending });
        super::may_act(&moment)
    }
}
