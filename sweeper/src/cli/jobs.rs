//! `sweeper jobs`.
//!
//! It reads what sweeps wrote and asks no provider: so it needs no credentials, answers at once however many jobs there are, and says the same as the
//! sweep's report.

use super::{
    Output,
    inventory::{NotKnown, warnings},
    open_existing, screen,
};
use crate::{
    config::Config,
    inventory::last_part,
    jobs::{Chain, JobFacts, Machine, Reporting, Workload, resolve},
    store::{Span, Store, Version},
    verdict::words,
};
use anyhow::Context as _;
use clap::Args;
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use model::ResourceKind;
use screen::plain;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    process::ExitCode,
};

/// What the answer rests on.
const KINDS: [ResourceKind; 5] = [
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::BatchJobQueue,
    ResourceKind::BatchJob,
    ResourceKind::EcsContainerInstance,
    ResourceKind::EcsTask,
];

/// A node's latest heartbeat is looked for around the moment at which it came in: its own clock may be off.
const AROUND: SignedDuration = SignedDuration::from_mins(15);

/// Which jobs to show.
#[derive(Debug, Args)]
pub(super) struct Question {
    /// Only those of this queue, by its name
    #[arg(long)]
    queue: Option<String>,
    /// Only those of this status: SUBMITTED, PENDING, RUNNABLE, STARTING, RUNNING, SUCCEEDED, FAILED
    #[arg(long)]
    status: Option<String>,
}

impl Question {
    fn is_about(&self, chain: &Chain) -> bool {
        let is = |wanted: &Option<String>, is: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(is);
        let status =
            |wanted: &str| chain.job.status.as_deref().is_some_and(|status| status.eq_ignore_ascii_case(wanted));
        is(&self.queue, &|wanted| chain.job.queue.as_deref().map(last_part) == Some(wanted))
            && is(&self.status, &status)
    }
}

/// What `--output json` shows.
#[derive(Serialize)]
struct Answer {
    /// Kinds of Batch and ECS that could not be listed, or that nobody has listed since: what is shown of them may be over.
    not_known: Vec<NotKnown>,
    jobs: Vec<Chain>,
}

pub(super) async fn list(config: &Config, question: &Question, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let now = Timestamp::now();
    let mut spans = store.listings_at(now).await?;
    spans.retain(|span| KINDS.iter().any(|kind| kind.as_str() == span.kind));
    let nodes = store.nodes().await?;
    let facts = JobFacts {
        jobs: read(&store, ResourceKind::BatchJob, now).await?,
        tasks: read(&store, ResourceKind::EcsTask, now).await?,
        container_instances: read(&store, ResourceKind::EcsContainerInstance, now).await?,
        nodes: nodes
            .iter()
            .map(|node| Reporting { id: node.node_id.clone(), hostname: node.hostname.clone() })
            .collect(),
        ecs_not_read: spans.iter().filter_map(ecs_not_read).collect(),
    };
    let mut jobs = facts.join();
    jobs.retain(|chain| question.is_about(chain));
    for chain in &mut jobs {
        // The history keeps lists without their order.
        chain.job.attempts.sort_by_key(|attempt| attempt.number);
    }
    let seen = nodes.into_iter().filter_map(|node| Some((node.node_id, node.last_seen_at?))).collect();
    let reported = reported(&store, &jobs, &seen).await?;
    resolve(&mut jobs, &reported);
    let not_known = spans.into_iter().filter_map(|span| NotKnown::of(span, now)).collect();
    let answer = Answer { not_known, jobs };
    match output {
        Output::Json => screen::json(&answer)?,
        Output::Table => screen::print(&table(&answer)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn read<T: DeserializeOwned>(store: &Store, kind: ResourceKind, now: Timestamp) -> anyhow::Result<Vec<T>> {
    let read = |Version { resource, record, .. }| {
        serde_json::from_value(record).with_context(|| format!("{resource} cannot be read; another version wrote it"))
    };
    store.resources_at(now, Some(kind.into())).await?.into_iter().map(read).collect()
}

/// Without either list of ECS nobody knows where a job is now, whatever was known before.
fn ecs_not_read(span: &Span) -> Option<((String, String), String)> {
    let of_ecs =
        [ResourceKind::EcsContainerInstance, ResourceKind::EcsTask].iter().any(|kind| kind.as_str() == span.kind);
    let failed = span.failed.as_ref().filter(|_| of_ecs)?;
    Some(((span.account.clone(), span.region.clone()), failed.clone()))
}

/// The workloads in the latest heartbeat of each node that one of these jobs runs on.
async fn reported(
    store: &Store,
    jobs: &[Chain],
    seen: &HashMap<NodeId, Timestamp>,
) -> anyhow::Result<BTreeMap<NodeId, Vec<Workload>>> {
    let on = jobs.iter().flat_map(|chain| &chain.placements).filter_map(|placement| placement.node.as_ref());
    let mut reported = BTreeMap::new();
    for node in on.collect::<BTreeSet<_>>() {
        let Some(seen_at) = seen.get(node) else { continue };
        let (from, to) = (seen_at.saturating_sub(AROUND)?, seen_at.saturating_add(AROUND)?);
        let Some(latest) = store.heartbeats(node, from, to).await?.pop() else { continue };
        let names = latest.heartbeat.workloads.into_iter().flat_map(|row| [row.name, row.batch_job]).flatten();
        reported.insert(node.clone(), names.map(|name| Workload { kind: name.kind, id: name.id }).collect());
    }
    Ok(reported)
}

fn table(answer: &Answer) -> String {
    let mut out = warnings(&answer.not_known);
    if answer.jobs.is_empty() {
        let _ = writeln!(out, "No such jobs are known. `sweeper sweep` reads them.");
        return out;
    }
    let header = ["JOB", "NAME", "STATUS", "REASON", "QUEUE", "INSTANCE", "NODE", "CONTAINER", "SINCE"];
    let mut table = screen::bare_table(header);
    for Chain { job, placements } in &answer.jobs {
        let shown = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), plain);
        let each = |of: &dyn Fn(&crate::jobs::Placement) -> Option<String>| {
            let all: Vec<String> = placements.iter().filter_map(of).collect();
            if all.is_empty() { "-".to_owned() } else { plain(&all.join(", ")) }
        };
        table.add_row([
            plain(&job.id.id),
            shown(job.name.as_deref()),
            shown(job.status.as_deref()),
            shown(job.status_reason.as_deref()),
            shown(job.queue.as_deref().map(last_part)),
            each(&|placement| Some(machine(&placement.machine))),
            each(&|placement| placement.node.as_ref().map(ToString::to_string)),
            each(&|placement| {
                let ids = placement.containers.iter().filter_map(|one| one.runtime_id.as_deref());
                // As much of an id as Docker shows.
                let ids: Vec<String> = ids.map(|id| id.chars().take(12).collect()).collect();
                (!ids.is_empty()).then(|| ids.join(", "))
            }),
            job.since().map_or_else(|| "-".to_owned(), |since| words::time(since.as_millisecond())),
        ]);
    }
    out.push_str(&screen::trim_lines(&table.to_string()));
    out
}

fn machine(machine: &Machine) -> String {
    match machine {
        Machine::Instance { id: NodeId::Aws { instance, .. } } => instance.clone(),
        Machine::Instance { id } => id.to_string(),
        Machine::External { id } => format!("{id} (not EC2)"),
        Machine::Fargate => "Fargate".to_owned(),
        Machine::KubernetesNode { name } => name.clone(),
        Machine::Unknown { why } => format!("not known: {why}"),
    }
}
