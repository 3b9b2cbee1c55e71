//! The lists of AWS Batch: environments, queues, and the jobs of every queue in every status.
//!
//! Jobs are listed by queue and status, 1,000 a page (without a status AWS lists only what runs), the children of an array and the nodes of a
//! multi-node job by their parent, and then described, 100 a call. The statuses are asked in the order of a job's life, so that one that
//! moves on meanwhile is met at least once; only one that is set back for a retry at that moment may be missed by one sweep.
//!
//! Of jobs that are over those of the last [`COMPLETED_FOR`] are kept. AWS can list by the time of creation, 100 a page, but not by that
//! of the end, so the pages of both final statuses are read whole (AWS forgets a job some days after its end) and sorted out here.

use model::ResourceKind;
use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use aws_sdk_batch::types::JobStatus;

use super::{
    Accounts,
    answer::Answer,
    collect::{List, list},
    machine, parse,
};
use crate::inventory::{
    BatchJob, COMPLETED_FOR, ComputeEnvironment, Failure, JobQueue, Scope, Silent,
    batch::is_over,
    reader::{Api, Refused},
};

pub(super) const ENVIRONMENTS: Api = Api::batch("batch:DescribeComputeEnvironments");
pub(super) const QUEUES: Api = Api::batch("batch:DescribeJobQueues");
const LIST: Api = Api::batch("batch:ListJobs");
const DESCRIBE: Api = Api::batch("batch:DescribeJobs");

/// AWS tells of no more environments or queues at once.
const PAGE_SIZE: i32 = 100;
/// AWS lists no more jobs at once.
const JOBS_PAGE_SIZE: i32 = 1_000;
/// AWS describes no more jobs at once.
const DESCRIBED_AT_ONCE: usize = 100;
/// So many calls are under way side by side; the bucket decides how fast.
const AT_ONCE: usize = 8;

/// The statuses of a job, in the order of its life.
const STATUSES: [JobStatus; 7] = [
    JobStatus::Submitted,
    JobStatus::Pending,
    JobStatus::Runnable,
    JobStatus::Starting,
    JobStatus::Running,
    JobStatus::Succeeded,
    JobStatus::Failed,
];

/// A call that failed, and why.
pub(super) type Failed = (Api, Failure);

/// One call per 100 environments.
pub(super) async fn environments(list_of: &List<'_>) -> Result<Vec<ComputeEnvironment>, Failure> {
    let List { place, scope, .. } = list_of;
    let environments = place.pages(ENVIRONMENTS, list_of.told(ResourceKind::BatchComputeEnvironment), |token| {
        let answer = Answer::default();
        let request = place.batch().describe_compute_environments().max_results(PAGE_SIZE).set_next_token(token);
        let request = request.customize().interceptor(answer.clone());
        async move {
            let page = request.send().await?;
            let raw = list(answer.json::<parse::Environments>()?.compute_environments, "compute environments")?;
            let environments = raw.into_iter().map(|raw| parse::environment(scope, raw));
            Ok((environments.collect::<Result<Vec<_>, _>>().map_err(Refused::malformed)?, page.next_token))
        }
    });
    environments.await
}

/// One call per 100 queues.
pub(super) async fn queues(list_of: &List<'_>) -> Result<Vec<JobQueue>, Failure> {
    let List { place, scope, .. } = list_of;
    let queues = place.pages(QUEUES, list_of.told(ResourceKind::BatchJobQueue), |token| {
        let answer = Answer::default();
        let request = place.batch().describe_job_queues().max_results(PAGE_SIZE).set_next_token(token);
        let request = request.customize().interceptor(answer.clone());
        async move {
            let page = request.send().await?;
            let raw = list(answer.json::<parse::Queues>()?.job_queues, "job queues")?;
            let queues = raw.into_iter().map(|raw| parse::queue(scope, raw));
            Ok((queues.collect::<Result<Vec<_>, _>>().map_err(Refused::malformed)?, page.next_token))
        }
    });
    queues.await
}

/// Whose jobs are listed.
#[derive(Clone, Debug)]
enum Of {
    Queue(String),
    Array(String),
    MultiNode(String),
}

/// A job as its list tells it, and the queue that it was found in.
type Found = (parse::Job, Arc<str>);

/// Every job of these queues that lives or ended not long before `now`, with its children or nodes.
pub(super) async fn jobs(list_of: &List<'_>, queues: &[JobQueue], now: Timestamp) -> Result<Vec<BatchJob>, Failed> {
    let since = now.checked_sub(COMPLETED_FOR).unwrap_or(Timestamp::MIN);
    let mut found = of_queues(list_of, queues, &STATUSES, since).await?;
    let parents = found.iter().filter_map(|(job, queue)| {
        let id = job.id().ok()?;
        let of = if job.is_array() {
            Of::Array(id)
        } else if job.is_multi_node() {
            Of::MultiNode(id)
        } else {
            return None;
        };
        Some((of, is_over(job.status()), Arc::clone(queue)))
    });
    let parents: Vec<_> = parents.collect();
    let children = stream::iter(parents).map(|(of, is_over, queue)| async move {
        let statuses = if is_over { &STATUSES[5..] } else { &STATUSES[..] };
        let children = of_every_status(list_of, &of, statuses, since).await?;
        Ok::<_, Failed>(children.into_iter().map(|job| (job, Arc::clone(&queue))).collect::<Vec<Found>>())
    });
    found.extend(children.buffer_unordered(AT_ONCE).try_concat().await?);
    described(list_of, found).await
}

/// The jobs of these queues in these statuses, without the parts of any; of those that are over, those that ended since then.
async fn of_queues(
    list_of: &List<'_>,
    queues: &[JobQueue],
    statuses: &'static [JobStatus],
    since: Timestamp,
) -> Result<Vec<Found>, Failed> {
    let queues: Vec<String> = queues.iter().map(name).collect();
    let found = stream::iter(queues).map(|queue| async move {
        let name: Arc<str> = queue.as_str().into();
        let found = of_every_status(list_of, &Of::Queue(queue), statuses, since).await?;
        Ok::<_, Failed>(found.into_iter().map(|job| (job, Arc::clone(&name))).collect::<Vec<Found>>())
    });
    found.buffer_unordered(AT_ONCE).try_concat().await
}

async fn of_every_status(
    list_of: &List<'_>,
    of: &Of,
    statuses: &'static [JobStatus],
    since: Timestamp,
) -> Result<Vec<parse::Job>, Failed> {
    let List { place, .. } = list_of;
    let mut found = Vec::new();
    for status in statuses {
        let jobs = place.pages(
            LIST,
            |_| (),
            |token| {
                let answer = Answer::default();
                let request = place.batch().list_jobs().job_status(status.clone()).max_results(JOBS_PAGE_SIZE);
                let request = match of {
                    Of::Queue(queue) => request.job_queue(queue),
                    Of::Array(id) => request.array_job_id(id),
                    Of::MultiNode(id) => request.multi_node_job_id(id),
                };
                let request = request.set_next_token(token).customize().interceptor(answer.clone());
                async move {
                    let page = request.send().await?;
                    Ok((list(answer.json::<parse::Summaries>()?.job_summary_list, "jobs")?, page.next_token))
                }
            },
        );
        let mut jobs = jobs.await.map_err(|why| (LIST, why))?;
        if is_over(Some(status.as_str())) {
            jobs.retain(|job| job.stopped_at().is_none_or(|stopped_at| stopped_at >= since));
        }
        found.append(&mut jobs);
    }
    Ok(found)
}

/// What AWS describes of the jobs that it listed; one that it forgot in between is known as the list told it.
async fn described(list_of: &List<'_>, found: Vec<Found>) -> Result<Vec<BatchJob>, Failed> {
    let List { place, scope, .. } = list_of;
    let malformed = |why: String| (LIST, Refused::malformed(why).why);
    let mut jobs: HashMap<String, Found> = HashMap::with_capacity(found.len());
    for (job, queue) in found {
        jobs.insert(job.id().map_err(malformed)?, (job, queue));
    }
    let ids: Vec<String> = jobs.keys().cloned().collect();
    let chunks: Vec<Vec<String>> = ids.chunks(DESCRIBED_AT_ONCE).map(<[String]>::to_vec).collect();
    let details = stream::iter(chunks).map(|ids| async move {
        let details = place.pages(DESCRIBE, list_of.told(ResourceKind::BatchJob), |_| {
            let answer = Answer::default();
            let request = place.batch().describe_jobs().set_jobs(Some(ids.clone()));
            let request = request.customize().interceptor(answer.clone());
            async move {
                request.send().await?;
                Ok((list(answer.json::<parse::Jobs>()?.jobs, "jobs")?, None))
            }
        });
        details.await.map_err(|why| (DESCRIBE, why))
    });
    for job in details.buffer_unordered(AT_ONCE).try_concat().await? {
        let id = job.id().map_err(malformed)?;
        let queue = jobs.get(&id).map(|(_, queue)| Arc::clone(queue));
        // What was not asked for says nothing about what was.
        if let Some(queue) = queue {
            jobs.insert(id, (job, queue));
        }
    }
    let read = jobs.into_values().map(|(job, queue)| parse::job(scope, job, Some(&queue)));
    read.collect::<Result<_, _>>().map_err(malformed)
}

/// A job as Batch describes it at this moment.
#[derive(Clone, Debug)]
pub struct OneJob {
    /// As lists have it.
    pub job: BatchJob,
    /// Whether Batch told its tags, if only that there are none.
    pub tells_tags: bool,
}

/// One job, read by itself right before it is terminated, and afterwards; none if Batch does not know it any more. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn one_job(accounts: &Accounts, scope: &Scope, id: &str) -> Result<Option<OneJob>, Failure> {
    let place = machine::place(accounts, scope)?;
    let found = place.pages(
        DESCRIBE,
        |_| (),
        |_| {
            let answer = Answer::default();
            let request = place.batch().describe_jobs().jobs(id).customize().interceptor(answer.clone());
            async move {
                request.send().await?;
                Ok((list(answer.json::<parse::Jobs>()?.jobs, "jobs")?, None))
            }
        },
    );
    let found: Vec<parse::Job> = found.await?;
    let Some(raw) = found.into_iter().find(|job| job.id().is_ok_and(|of| of == id)) else { return Ok(None) };
    let tells_tags = raw.tells_tags();
    let job = parse::job(scope, raw, None).map_err(|why| Refused::malformed(why).why)?;
    Ok(Some(OneJob { job, tells_tags }))
}

/// All compute environments and queues of a scope, read by themselves right before a job of one is terminated. One call per 100 of either.
///
/// # Errors
/// What could not be read, and why.
pub async fn job_places(
    accounts: &Accounts,
    scope: &Scope,
) -> Result<(Vec<ComputeEnvironment>, Vec<JobQueue>), Failure> {
    let place = machine::place(accounts, scope)?;
    let list_of = List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let (environments, queues) = futures::join!(environments(&list_of), queues(&list_of));
    Ok((environments?, queues?))
}

/// The jobs of these queues that may wait for the end of another one: read by themselves right before a job is terminated. One that waits for nothing any more is `RUNNABLE`. Two calls per 1,000 of a queue, and one per 100 jobs.
///
/// # Errors
/// What could not be read, and why.
pub async fn waiting_jobs(accounts: &Accounts, scope: &Scope, queues: &[JobQueue]) -> Result<Vec<BatchJob>, Failure> {
    /// In the order of a job's life.
    const WAIT: &[JobStatus] = &[JobStatus::Submitted, JobStatus::Pending];
    let place = machine::place(accounts, scope)?;
    let list_of = &List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let waiting = async { described(list_of, of_queues(list_of, queues, WAIT, Timestamp::MIN).await?).await };
    waiting.await.map_err(|(_, why): Failed| why)
}

/// By what the jobs of a queue are asked for.
fn name(queue: &JobQueue) -> String {
    queue.arn.clone().unwrap_or_else(|| queue.id.id.clone())
}

/// The ids of some single jobs that run, so many at most: to try on them whether a role may terminate jobs.
///
/// # Errors
/// What could not be read, and why.
pub async fn some_jobs(accounts: &Accounts, scope: &Scope, most: usize) -> Result<Vec<String>, Failure> {
    /// `RUNNING`.
    const RUN: &[JobStatus] = &[JobStatus::Running];
    let place = machine::place(accounts, scope)?;
    let list_of = List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let mut found = Vec::new();
    for queue in queues(&list_of).await? {
        let of = Of::Queue(name(&queue));
        let jobs = of_every_status(&list_of, &of, RUN, Timestamp::MIN).await.map_err(|(_, why)| why)?;
        let single = jobs.iter().filter(|job| !job.is_array() && !job.is_multi_node());
        found.extend(single.filter_map(|job| job.id().ok()));
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}
