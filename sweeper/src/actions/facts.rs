//! What is known right before a call, put to the guards.

use crate::store::moment::Known;
use guards::{
    Refusal,
    act::{Caps, Moment, OnAddress, OnJob, OnMachine, OnMember, OnVolume, Say, Subject, may_act},
    policy::Policy,
};
use serde_json::{Value, json};

/// What is known of any resource, but what the database knows.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) policy: &'a Policy,
    /// So many resources of its kind the account has.
    pub(super) alike: u32,
    pub(super) is_own: Option<bool>,
    pub(super) is_switched_on: bool,
}

/// What was decided, and what it rests on, as JSON.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) refused: Option<Refusal>,
    /// Nothing stands in the way but that nobody has switched acting on.
    pub(super) is_rehearsed: bool,
    pub(super) rests_on: String,
}

impl Facts<'_> {
    /// Asks every guard. None if the plan cannot be read: then nothing is done either.
    pub(super) fn decide(&self, known: &Known, subject: Subject<'_>) -> Option<Decided> {
        let plan = known.plan.as_ref()?;
        let (says, needs) = self.policy.counted(&known.says, plan, known.tags_before.as_ref());
        let done = u32::try_from(known.done_in_a_day).unwrap_or(u32::MAX);
        let caps = Caps { done, machines: self.alike };
        let moment = Moment {
            now: known.now,
            plan,
            current_plan: known.current_plan(),
            exempted: &known.exempted,
            confirmed_sweeps: known.finding.as_ref().map_or(0, |finding| finding.confirmed_sweeps),
            says: &says,
            needs,
            tags_before: known.tags_before.as_ref(),
            switch: known.switch,
            is_switched_on: self.is_switched_on,
            caps: &caps,
            has_relapsed: known.has_relapsed,
            was_restored: Some(known.was_restored()),
            is_own: self.is_own,
            subject,
        };
        let refused = may_act(&moment).err();
        let rehearsed = Moment { is_switched_on: true, ..moment.clone() };
        let refused = match (refused, may_act(&rehearsed)) {
            // What else stands in the way is worth more to know.
            (Some(Refusal::DryRunOnly), Err(other)) => Some(other),
            (refused, _) => refused,
        };
        Some(Decided {
            is_rehearsed: refused == Some(Refusal::DryRunOnly),
            rests_on: rests_on(&moment, &says),
            refused,
        })
    }
}

fn rests_on(moment: &Moment<'_>, says: &[Say]) -> String {
    let mut all = json!({
        "at": moment.now,
        "plan": moment.plan.content_hash(),
        "says": says,
        "needs": moment.needs,
        "exempted": moment.exempted,
        "confirmed_sweeps": moment.confirmed_sweeps,
        "tags_before": moment.tags_before,
        "kill_switch": moment.switch,
        "switched_on": moment.is_switched_on,
        "caps": moment.caps,
        "relapsed": moment.has_relapsed,
        "restored": moment.was_restored,
        "own": moment.is_own,
    });
    let of_subject = match &moment.subject {
        Subject::Machine(machine) => of_machine(machine),
        Subject::Member(OnMember { machine, group, ending }) => {
            let mut all = of_machine(machine);
            (all["group"], all["ending"]) = (json!(group), json!(ending));
            all
        }
        Subject::Address(OnAddress { facts, unused_since }) => {
            json!({ "address": facts, "unused_since": unused_since })
        }
        Subject::Job(OnJob { facts, since, cohort, is_attested, live }) => {
            json!({ "job": facts, "stuck_since": since, "cohort": cohort, "attested": is_attested, "live": live })
        }
        Subject::Volume(OnVolume { facts, unused_since, snapshot }) => {
            json!({ "volume": facts, "unused_since": unused_since, "snapshot": snapshot })
        }
    };
    if let (Value::Object(all), Value::Object(of_subject)) = (&mut all, of_subject) {
        all.extend(of_subject);
    }
    all.to_string()
}

fn of_machine(machine: &OnMachine<'_>) -> Value {
    json!({
        "machine": machine.facts,
        "attested": machine.is_attested,
        "live": machine.live,
        "rules_version": machine.rules_version,
        "bridges_a_gap": machine.bridges_a_gap,
        "cohort": machine.cohort,
        "dependents": machine.dependents,
    })
}
