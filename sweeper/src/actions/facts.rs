//! What is known right before a call, gathered for the guards: some of it before the node is asked, the rest behind its answer.

use super::{ActError, Executor, own, sessions};
use crate::{
    detectors::Class,
    findings::{Finding, MachineEvidence},
    identity::Node,
    inventory::{
        InstanceState, Inventory,
        aws::{self, Accounts, OneMachine},
        key_of,
    },
    store::{Answered, moment::Known},
    sweep::judge_node,
    verdict::{Decision, Judgement, NodeFacts, words},
};
use guards::{
    Refusal,
    act::{Caps, Cohort, Dependents, LiveSample, LiveVerdict, Moment, Say, may_act},
    policy::Policy,
};
use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKey, ResourceKind, Verdict,
    machine::{Ec2Facts, Machine},
    plan::{ContentHash, Plan},
};
use serde_json::json;
use std::collections::HashSet;

/// Machines that were found idle within so long count as having turned so.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What takes longer to read than an answer stays fresh.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// What may have the machine.
    owners: Inventory,
    dependents: Dependents,
    is_own: Option<bool>,
    cohort: Cohort,
    machines: u32,
}

/// What the node said, and what follows from it.
#[derive(Debug)]
pub(super) struct Live {
    sample: LiveSample,
    /// End of the newest heartbeat that was judged.
    until_unix_ms: Option<i64>,
    bridges_a_gap: bool,
}

impl Executor {
    /// The state of a machine, in EC2's words; none if it is there no more.
    pub(super) async fn state(&self, accounts: &Accounts, on: &ResourceKey) -> Result<Option<InstanceState>, ActError> {
        let read = aws::instance(accounts, &sessions::scope(on)?, &on.id).await;
        let read = read.map_err(|why| ActError::Provider { what: "reading the machine", why })?;
        Ok(read.map(|instance| instance.state))
    }

    /// One machine, as EC2 has it now; none if it is there no more.
    pub(super) async fn machine(&self, accounts: &Accounts, on: &ResourceKey) -> Result<Option<OneMachine>, ActError> {
        let scope = sessions::scope(on)?;
        let read = aws::one_machine(accounts, &scope, &on.id).await;
        read.map_err(|why| ActError::Provider { what: "reading the machine", why })
    }

    /// Reads what takes its time.
    pub(super) async fn surroundings(
        &self,
        accounts: &Accounts,
        machine: &OneMachine,
        node: &Node,
    ) -> Result<Surroundings, ActError> {
        let on = &machine.instance.id;
        let provider = |why| ActError::Provider { what: "reading what has the machine", why };
        let scope = sessions::scope(on)?;
        let (owners, dependents, is_own) = futures::join!(
            aws::owners(accounts, &scope),
            aws::dependents(accounts, &scope, machine),
            own::is_own(&self.config, machine)
        );
        let machines = self.store.count_of_account(ResourceKind::Instance.into(), &on.account).await?;
        Ok(Surroundings {
            owners: owners.map_err(provider)?,
            dependents,
            is_own,
            cohort: self.cohort(node).await?,
            machines: u32::try_from(machines).unwrap_or(u32::MAX),
        })
    }

    /// What became of the machines with this node's agent and rules.
    async fn cohort(&self, node: &Node) -> Result<Cohort, ActError> {
        let states = self.store.node_states(None).await?;
        let of = |facts: &NodeFacts| (facts.agent_version.clone(), facts.rules_version.clone());
        let own = states.get(&node.node_id).map(|state| of(state.facts())).ok_or(ActError::NoState)?;
        let alike = states.iter().filter(|(_, state)| of(state.facts()) == own);
        let alike: HashSet<String> = alike.map(|(node, _)| key_of(node).to_string()).collect();
        let turned = self.store.found_since(Class::IdleNode, self.store.now().await? - DAY).await?;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Cohort { machines: count(alike.len()), turned_idle: count(turned.intersection(&alike).count()) })
    }

    /// What follows from a node's answer and all that came before.
    pub(super) async fn live(
        &self,
        plan: &ContentHash,
        node: &Node,
        finding: &Finding,
        (question, answered): (&str, &Answered),
    ) -> Result<Live, ActError> {
        let (case, judgement, _) = judge_node(&self.store, &self.config, node, Timestamp::now()).await?;
        let said = &answered.heartbeat;
        let facts = case.node.as_ref();
        let evidence = finding.evidence.of_machine();
        let boot = |facts: Option<&NodeFacts>| facts.map(|facts| facts.boot_id.to_string()).unwrap_or_default();
        let verdict = match judgement.verdict {
            Verdict::Idle => LiveVerdict::Idle,
            _ => LiveVerdict::NotIdle(words::decision(&judgement, &case)),
        };
        Ok(Live {
            sample: LiveSample {
                plan: plan.clone(),
                boot: said.boot_id.to_string(),
                boot_of_evidence: boot(evidence.and_then(|evidence| evidence.case.node.as_ref())),
                received_at: answered.received_at,
                is_answer_to_this: said.heartbeat.answers == question,
                verdict,
                rules_version: facts.map(|facts| facts.rules_version.clone()).unwrap_or_default(),
            },
            until_unix_ms: facts.map(|facts| facts.last_heartbeat_unix_ms),
            bridges_a_gap: bridges(&judgement) || evidence.is_none_or(|evidence| bridges(&evidence.judgement)),
        })
    }
}

fn bridges(judgement: &Judgement) -> bool {
    match &judgement.decision {
        Decision::AllQuiet { total, .. } => total.restart_gap_ms.is_some(),
        Decision::Above { .. } | Decision::Waiting { .. } | Decision::Unknown(_) => false,
    }
}

/// What guards ask of a machine, by what EC2 says now and by who may have it.
fn of_machine(machine: &OneMachine, owners: &Inventory) -> Option<Ec2Facts> {
    let mut instance = machine.instance.clone();
    let ResourceKey { provider, account, location, .. } = instance.id.clone();
    aws::name_members(std::slice::from_mut(&mut instance), &owners.autoscaling_groups);
    let groups_are_known = owners.groups_are_known(provider, &account, &location);
    let schedulers = owners.schedulers(provider, &account, &location);
    match instance.stop_facts(groups_are_known, &schedulers, machine.protection.clone())? {
        Machine::Ec2(facts) => Some(*facts),
        Machine::OnPrem | Machine::NotKnown(_) => None,
    }
}

/// Everything that the guards ask for, but what the database knows.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) policy: &'a Policy,
    pub(super) machine: &'a OneMachine,
    pub(super) surroundings: &'a Surroundings,
    pub(super) live: Live,
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
    /// Asks every guard. None if the plan, its finding or the machine cannot be put into their words: then nothing is done either.
    pub(super) fn decide(mut self, known: &Known) -> Option<Decided> {
        let plan = known.plan.as_ref()?;
        let machine = of_machine(self.machine, &self.surroundings.owners)?;
        if known.newest_heartbeat_unix_ms > self.live.until_unix_ms {
            let why = "its agent has reported again since it was judged".to_owned();
            self.live.sample.verdict = LiveVerdict::NotIdle(why);
        }
        let evidence: Option<&MachineEvidence> = known.finding.as_ref().and_then(|one| one.evidence.of_machine());
        let rules_version = evidence.and_then(|evidence| evidence.case.node.as_ref()).map(|node| &node.rules_version);
        let (says, needs) = self.policy.counted(&known.says, plan, known.tags_before.as_ref());
        let done = u32::try_from(known.done_in_a_day).unwrap_or(u32::MAX);
        let caps = Caps { done, machines: self.surroundings.machines };
        let moment = Moment {
            now: known.now,
            plan,
            current_plan: known.current_plan(),
            exempted: &known.exempted,
            confirmed_sweeps: known.finding.as_ref().map_or(0, |finding| finding.confirmed_sweeps),
            says: &says,
            needs,
            machine: &machine,
            tags_before: known.tags_before.as_ref(),
            switch: known.switch,
            is_switched_on: self.is_switched_on,
            is_attested: known
                .node
                .as_ref()
                .is_some_and(|node| node.attestation.is_attested() && node.disputed.is_none()),
            live: Some(&self.live.sample),
            rules_version: rules_version.map_or("", String::as_str),
            bridges_a_gap: self.live.bridges_a_gap,
            caps: &caps,
            cohort: &self.surroundings.cohort,
            has_relapsed: known.has_relapsed,
            was_restored: Some(known.was_restored()),
            is_own: self.surroundings.is_own,
            dependents: &self.surroundings.dependents,
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
            rests_on: rests_on(&moment, plan, &says),
            refused,
        })
    }
}

fn rests_on(moment: &Moment<'_>, plan: &Plan, says: &[Say]) -> String {
    json!({
        "at": moment.now,
        "plan": plan.content_hash(),
        "says": says,
        "needs": moment.needs,
        "exempted": moment.exempted,
        "confirmed_sweeps": moment.confirmed_sweeps,
        "machine": moment.machine,
        "tags_before": moment.tags_before,
        "kill_switch": moment.switch,
        "switched_on": moment.is_switched_on,
        "attested": moment.is_attested,
        "live": moment.live,
        "rules_version": moment.rules_version,
        "bridges_a_gap": moment.bridges_a_gap,
        "caps": moment.caps,
        "cohort": moment.cohort,
        "relapsed": moment.has_relapsed,
        "restored": moment.was_restored,
        "own": moment.is_own,
        "dependents": moment.dependents,
    })
    .to_string()
}
