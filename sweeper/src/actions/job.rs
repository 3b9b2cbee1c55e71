//! Terminates a job of AWS Batch: asks the agent on its machine whether anything of it has run since it was found, and acts on its answer.

use super::{
    ActError, Executor, batch,
    carry::FRESH,
    ec2::Called,
    facts::{Decided, Facts},
    own, provider,
};
use crate::{
    detectors::Class,
    findings::{Evidence, Finding, WorkEvidence},
    identity::Node,
    inventory::{
        BatchJob, Inventory, Launched, LaunchedBy,
        aws::{self, Accounts},
    },
    snapshot::{self, AroundJob, job_facts},
    store::{Action, Answered, moment::Known},
    sweep::work_policy,
    verdict::work::{WorkCase, WorkSample, certain, judge},
};
use guards::{
    Refusal,
    act::{LiveSample, LiveVerdict, OnJob, StuckJobs, Subject},
    action::State,
};
use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKey, ResourceKind,
    job::JobFacts,
    plan::{Action as Call, ContentHash, Plan},
};
use std::collections::{BTreeMap, HashSet};

const GONE: &str = "AWS Batch does not know the job any more";
const NO_MACHINE: &str = "EC2 does not know its machine any more";
/// What is asked in the place of a second dry run is refused, or not answered.
const NOT_HEARD: &str = "AWS Batch does not hear the role that acts any more, or does not let it read the job's tags";
/// A job that waits for this one may have come meanwhile.
const SLOW: &str = "the job, and the jobs that may wait for it, could not be read within 5 s of its agent's answer";
/// Batch's words for the end of a job.
const OVER: [&str; 2] = ["SUCCEEDED", "FAILED"];

/// Jobs that were found stuck within so long count as having turned so.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What takes longer to read than an answer stays fresh.
struct Surroundings {
    accounts: Accounts,
    /// Batch and ECS.
    inventory: Inventory,
    is_own: Option<bool>,
    /// So many jobs the account has.
    alike: u32,
    cohort: StuckJobs,
    /// Who submitted jobs that are not over, by the ids of what was submitted, as far as sweeps have read it.
    submitted_by: BTreeMap<String, LaunchedBy>,
    /// The window of the finding begins then: nothing of the job has run since.
    rests_since: Option<Timestamp>,
}

/// What the agent said, and what follows from it.
struct Live {
    sample: LiveSample,
    /// End of the heartbeat that was judged.
    until_unix_ms: Option<i64>,
}

/// Everything that the guards ask for, but what the database knows.
struct Now {
    job: JobFacts,
    cohort: StuckJobs,
    live: Live,
}

impl Now {
    /// Asks every guard. None if the plan cannot be put into their words: then nothing is done either.
    fn decide(mut self, facts: &Facts<'_>, known: &Known) -> Option<Decided> {
        if known.newest_heartbeat_unix_ms > self.live.until_unix_ms {
            let why = "its machine's agent has reported again since it was judged".to_owned();
            self.live.sample.verdict = LiveVerdict::NotStuck(why);
        }
        let is_attested = |node: &Node| node.attestation.is_attested() && node.disputed.is_none();
        let is_attested = known.node.as_ref().is_some_and(is_attested);
        let since = known.finding.as_ref().map(|finding| finding.since);
        facts.decide(
            known,
            Subject::Job(OnJob {
                facts: &self.job,
                since,
                cohort: &self.cohort,
                is_attested,
                live: Some(&self.live.sample),
            }),
        )
    }
}

impl Executor {
    /// Reads what takes its time, asks the agent, and acts on its answer.
    pub(super) async fn terminate_job(&self, action: &mut Action) -> Result<(), ActError> {
        let on = action.resource.clone();
        let known = self.store.known(&action.plan).await?;
        let Some(finding) = &known.finding else {
            return self.refuse(action, Refusal::PlanWithdrawn.to_string()).await;
        };
        let machine = known.plan.as_ref().and_then(key_of_machine);
        let (Some(node), Some(machine)) = (&known.node, machine) else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let around = Box::pin(self.around_job(&on, &machine, finding));
        let Some(mut around) = self.held(action, around).await? else { return self.refuse(action, NO_MACHINE).await };
        let client = match self.sessions.acting(&self.config, &on, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        let Some((question, answered)) = self.asked(action, &node.node_id).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let deadline = self.while_fresh(answered.received_at).await?;
        let Some((plan, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        // What is asked in the place of a second dry run opens the way that the call takes.
        // What is read for longer than the answer stays fresh decides nothing.
        let fresh = tokio::time::timeout(FRESH, Box::pin(fresh(&mut around, &on, &machine)));
        let (job, heard) = futures::join!(fresh, Box::pin(batch::is_heard(&client, &on)));
        let Ok(job) = job else { return self.refuse(action, SLOW).await };
        let Some(job) = job? else { return self.refuse(action, GONE).await };
        if !matches!(heard, Called::Accepted { .. }) {
            return self.refuse(action, NOT_HEARD).await;
        }
        // It may be disputed, or another one, by now.
        let Some(node) = self.store.node(&node.node_id).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let Some(live) = self.live_of_job(&action.plan, &node, (finding, &machine), (&question, &answered)) else {
            return self.refuse(action, "what its finding rests on cannot be read").await;
        };
        let policy = self.policy()?;
        let facts = Facts {
            policy: &policy,
            alike: around.alike,
            is_own: around.is_own,
            is_switched_on: self.is_switched_on(&on, call),
        };
        let now = Now { job, cohort: around.cohort, live };
        self.decide(action, |known| now.decide(&facts, known)).await?;
        if action.state != State::Calling || call != Call::TerminateJob {
            return Ok(());
        }
        let reason = batch::reason(plan.content_hash(), &action.asked_by);
        let called = batch::terminate(&client, &on.id, &reason, deadline).await;
        self.called(action, called).await
    }

    /// What may have a say in a job's end; none if its machine is there no more.
    async fn around_job(
        &self,
        on: &ResourceKey,
        machine: &ResourceKey,
        finding: &Finding,
    ) -> Result<Option<Surroundings>, ActError> {
        let scope = provider::scope(on)?;
        let accounts = self.sessions.account(on).await?;
        let (inventory, read) = futures::join!(
            Box::pin(aws::owners(&accounts, &scope)),
            Box::pin(aws::one_machine(&accounts, &scope, &machine.id))
        );
        let inventory = inventory.map_err(|why| ActError::Provider { what: "reading AWS Batch and ECS", why })?;
        let read = read.map_err(|why| ActError::Provider { what: "reading the job's machine", why })?;
        let Some(read) = read else { return Ok(None) };
        let is_own = own::is_own(&self.config, &machine.id, &read.addresses).await;
        let alike = self.store.count_of_account(on.kind.into(), &on.account).await?;
        let alike = u32::try_from(alike).unwrap_or(u32::MAX);
        let cohort = self.stuck_jobs(on, &inventory).await?;
        let (submitted_by, _) = self.store.launches(&scope, Launched::Job).await?;
        let begin = match &finding.evidence {
            Evidence::Work(evidence) => evidence.job.work.begin.as_ref(),
            _ => None,
        };
        let rests_since = begin.and_then(|begin| Timestamp::from_millisecond(begin.end_unix_ms).ok());
        Ok(Some(Surroundings { accounts, inventory, is_own, alike, cohort, submitted_by, rests_since }))
    }

    /// What became of the jobs of a job's account and region.
    async fn stuck_jobs(&self, on: &ResourceKey, inventory: &Inventory) -> Result<StuckJobs, ActError> {
        let is_beside = |key: &ResourceKey| ResourceKey { id: key.id.clone(), ..on.clone() } == *key;
        let found = self.store.found_since(Class::StuckJob, self.store.now().await? - DAY).await?;
        // What cannot be read may be one beside it.
        let turned = found.iter().filter(|key| key.parse().map_or(true, |key| is_beside(&key))).count();
        let runs = |job: &&BatchJob| job.status.as_deref() == Some("RUNNING") && is_beside(&job.id);
        let running = inventory.batch_jobs.iter().filter(runs).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(StuckJobs { running: count(running), turned_stuck: count(turned) })
    }

    /// What follows from the agent's answer, held against the heartbeat in which the finding's window began: that the job has not run since. None if that is not kept.
    fn live_of_job(
        &self,
        plan: &ContentHash,
        node: &Node,
        (finding, machine): (&Finding, &ResourceKey),
        (question, answered): (&str, &Answered),
    ) -> Option<Live> {
        let Evidence::Work(evidence) = &finding.evidence else { return None };
        let WorkEvidence { job, .. } = evidence.as_ref();
        if job.machine != *machine {
            return None;
        }
        let said = &answered.heartbeat;
        let end = WorkSample::of(said.boot_id, &said.heartbeat, &job.work.contract);
        let until_unix_ms = end.as_ref().map(|end| end.end_unix_ms);
        let case = WorkCase {
            now_unix_ms: Timestamp::now().as_millisecond(),
            policy: work_policy(&self.config),
            contract: job.work.contract.clone(),
            begin: job.work.begin.clone(),
            earlier: None,
            end,
            identity: Some(node.identity()),
        };
        let judgement = judge(&case);
        let verdict = match certain(&case, &judgement) {
            Ok(()) => LiveVerdict::Stuck,
            Err(doubt) => LiveVerdict::NotStuck(doubt.to_string()),
        };
        let sample = LiveSample {
            plan: plan.clone(),
            boot: said.boot_id.to_string(),
            boot_of_evidence: job.work.end.as_ref().map(|end| end.boot_id.to_string()).unwrap_or_default(),
            received_at: answered.received_at,
            ended_at: until_unix_ms.and_then(|until| Timestamp::from_millisecond(until).ok()),
            is_answer_to_this: said.heartbeat.answers == question,
            verdict,
            // Rules tell work from housekeeping, and a job's containers are never the latter.
            rules_version: String::new(),
        };
        Some(Live { sample, until_unix_ms })
    }

    /// Where a job is, in Batch's word; or the same word as [`model::plan::Action::ends_in`], if it has failed for the reason that this plan's call gave. None if Batch forgot it.
    pub(super) async fn job_state(&self, accounts: &Accounts, action: &Action) -> Result<Option<String>, ActError> {
        let on = &action.resource;
        let read = aws::one_job(accounts, &provider::scope(on)?, &on.id).await;
        let read = read.map_err(|why| ActError::Provider { what: "reading the job", why })?;
        let Some(aws::OneJob { job, .. }) = read else { return Ok(None) };
        let reason = job.status_reason.as_deref().unwrap_or_default();
        let status = job.status.unwrap_or_else(|| "in a status that AWS Batch does not tell".to_owned());
        Ok(Some(match status.as_str() {
            "FAILED" if batch::is_of(&action.plan, &action.asked_by, reason) => "terminated".to_owned(),
            "FAILED" => format!("FAILED, and not by this plan's word ({})", batch::in_short(reason)),
            // Its container is being stopped.
            "RUNNING" if job.is_terminated == Some(true) => TERMINATING.to_owned(),
            _ => status,
        }))
    }
}

/// A job whose container is being stopped.
pub(super) const TERMINATING: &str = "terminating";

/// Whether a job has ended by itself, or by somebody else: it goes nowhere from there.
pub(super) fn has_ended(state: &str) -> bool {
    OVER.iter().any(|over| state.starts_with(over))
}

/// The key of the machine on which a plan's job runs.
fn key_of_machine(plan: &Plan) -> Option<ResourceKey> {
    let id = plan.machine_of_job()?.to_owned();
    Some(ResourceKey { kind: ResourceKind::Instance, id, ..plan.content().resource.clone() })
}

/// Reads a job, the jobs that may wait for it, its queue, its environment and its machine's tags once more, and tells what guards ask of it; none if Batch does not know it any more.
async fn fresh(
    around: &mut Surroundings,
    on: &ResourceKey,
    machine: &ResourceKey,
) -> Result<Option<JobFacts>, ActError> {
    let scope = provider::scope(on)?;
    let places = async {
        let (environments, queues) = aws::job_places(&around.accounts, &scope).await?;
        let waiting = aws::waiting_jobs(&around.accounts, &scope, &queues).await?;
        Ok((environments, queues, waiting))
    };
    let (job, places, machine) = futures::join!(
        Box::pin(aws::one_job(&around.accounts, &scope, &on.id)),
        Box::pin(places),
        Box::pin(aws::instance(&around.accounts, &scope, &machine.id))
    );
    let refused = |what| move |why| ActError::Provider { what, why };
    let Some(aws::OneJob { job, tells_tags }) = job.map_err(refused("reading the job"))? else { return Ok(None) };
    let (environments, queues, waiting) =
        places.map_err(refused("reading its queue, its compute environment and the jobs that may wait for it"))?;
    let machine = machine.map_err(refused("reading its machine"))?;
    let inventory = &mut around.inventory;
    // What is told of the attempt, of its task and of its machine rests on the same lists as what was found.
    // One that waited then and does not now is counted on: it may have been missed between two lists.
    let read_again: HashSet<ResourceKey> = waiting.iter().chain([&job]).map(|one| one.id.clone()).collect();
    inventory.batch_jobs.retain(|one| !read_again.contains(&one.id));
    inventory.batch_jobs.extend(waiting.into_iter().filter(|one| one.id != job.id));
    inventory.batch_jobs.push(job);
    (inventory.batch_compute_environments, inventory.batch_job_queues) = (environments, queues);
    let machine_tags: Option<BTreeMap<String, String>> = machine.map(|machine| machine.tags);
    let known = snapshot::Known::of(inventory);
    let told = AroundJob { machine_tags, submitted_by: &around.submitted_by, rests_since: around.rests_since };
    let facts = job_facts((inventory, &known), on, told);
    Ok(facts.map(|facts| JobFacts { tags: facts.tags.filter(|_| tells_tags), ..facts }))
}
