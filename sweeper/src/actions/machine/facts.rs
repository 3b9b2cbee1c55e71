//! What is known of a machine right before a call: some of it read before its node is asked, the rest behind its answer.

use super::super::{
    ActError, Executor,
    facts::{Decided, Facts},
    own,
    provider::{self, Asked, OneMachine},
};
use crate::{
    detectors::Class,
    findings::{Finding, MachineEvidence},
    identity::Node,
    inventory::{Inventory, aws, gcp, key_of},
    store::{Answered, moment::Known},
    sweep::judge_node,
    verdict::{Decision, Judgement, NodeFacts, words},
};
use guards::act::{Cohort, Dependents, LiveSample, LiveVerdict, MachineFacts, OnMachine, OnMember, Subject};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, ResourceKind, Verdict, group::GroupFacts, machine::Machine, plan::ContentHash};
use std::collections::HashSet;

/// Machines that were found idle within so long count as having turned so.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What takes longer to read than an answer stays fresh.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// What may have the machine.
    owners: Inventory,
    dependents: Dependents,
    pub(super) is_own: Option<bool>,
    cohort: Cohort,
    /// So many the account has.
    pub(super) machines: u32,
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
    /// Reads what takes its time.
    pub(super) async fn surroundings(
        &self,
        asked: &Asked,
        machine: &OneMachine,
        on: &ResourceKey,
        node: &Node,
    ) -> Result<Surroundings, ActError> {
        let own = |addresses| own::is_own(&self.config, &on.id, addresses);
        let (owners, dependents, is_own) = match (asked, machine) {
            (Asked::Aws(accounts), OneMachine::Ec2(machine)) => {
                let scope = provider::scope(on)?;
                let (owners, dependents, is_own) = futures::join!(
                    aws::owners(accounts, &scope),
                    aws::dependents(accounts, &scope, machine),
                    own(&machine.addresses)
                );
                let refused = |why| ActError::Provider { what: "reading what has the machine", why };
                (owners.map_err(refused)?, dependents, is_own)
            }
            // What has it is read with the machine.
            (Asked::Google(session), OneMachine::ComputeEngine(machine)) => {
                let (dependents, is_own) = futures::join!(gcp::dependents(session, machine), own(&machine.addresses));
                (Inventory::default(), dependents, is_own)
            }
            (Asked::Aws(_), OneMachine::ComputeEngine(_)) | (Asked::Google(_), OneMachine::Ec2(_)) => {
                return Err(ActError::Elsewhere);
            }
        };
        let machines = self.store.count_of_account(ResourceKind::Instance.into(), &on.account).await?;
        Ok(Surroundings {
            owners,
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
                ended_at: facts.and_then(|facts| Timestamp::from_millisecond(facts.last_heartbeat_unix_ms).ok()),
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

/// What guards ask of a machine, by what its provider says now and by who may have it.
fn of_machine(machine: &OneMachine, owners: &Inventory) -> Option<Machine> {
    match machine {
        OneMachine::Ec2(machine) => of_ec2(machine, owners),
        OneMachine::ComputeEngine(machine) => machine.facts().map(|facts| Machine::ComputeEngine(Box::new(facts))),
    }
}

fn of_ec2(machine: &aws::OneMachine, owners: &Inventory) -> Option<Machine> {
    let mut instance = machine.instance.clone();
    let ResourceKey { provider, account, location, .. } = instance.id.clone();
    aws::name_members(std::slice::from_mut(&mut instance), &owners.autoscaling_groups);
    let groups_are_known = owners.groups_are_known(provider, &account, &location);
    let schedulers = owners.schedulers(provider, &account, &location);
    instance.stop_facts(groups_are_known, &schedulers, machine.protection.clone())
}

/// Everything that the guards ask for of a machine, but what the database knows.
#[derive(Debug)]
pub(super) struct Now<'a> {
    pub(super) machine: &'a OneMachine,
    /// The group that its plan names, of one that is to be ended there.
    pub(super) group: Option<GroupFacts>,
    pub(super) surroundings: &'a Surroundings,
    pub(super) live: Live,
}

impl Now<'_> {
    /// Asks every guard. None if the plan, its finding or the machine cannot be put into their words: then nothing is done either.
    pub(super) fn decide(mut self, facts: &Facts<'_>, known: &Known) -> Option<Decided> {
        let machine = of_machine(self.machine, &self.surroundings.owners)?;
        let machine = match &machine {
            Machine::Ec2(facts) => MachineFacts::Ec2(facts),
            Machine::ComputeEngine(facts) => MachineFacts::ComputeEngine(facts),
            Machine::OnPrem | Machine::NotKnown(_) => return None,
        };
        if known.newest_heartbeat_unix_ms > self.live.until_unix_ms {
            let why = "its agent has reported again since it was judged".to_owned();
            self.live.sample.verdict = LiveVerdict::NotIdle(why);
        }
        let evidence: Option<&MachineEvidence> = known.finding.as_ref().and_then(|one| one.evidence.of_machine());
        let rules_version = evidence.and_then(|evidence| evidence.case.node.as_ref()).map(|node| &node.rules_version);
        let is_attested = |node: &Node| node.attestation.is_attested() && node.disputed.is_none();
        let machine = OnMachine {
            facts: machine,
            is_attested: known.node.as_ref().is_some_and(is_attested),
            live: Some(&self.live.sample),
            rules_version: rules_version.map_or("", String::as_str),
            bridges_a_gap: self.live.bridges_a_gap,
            cohort: &self.surroundings.cohort,
            dependents: &self.surroundings.dependents,
        };
        let subject = match &self.group {
            Some(group) => Subject::Member(OnMember { machine, group, ending: known.ending.as_ref() }),
            None => Subject::Machine(machine),
        };
        facts.decide(known, subject)
    }
}
