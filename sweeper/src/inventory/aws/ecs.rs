//! The lists of ECS: the machines of its clusters, and the tasks that Batch's jobs run in.
//!
//! Of a cluster that Batch manages and on which jobs run only those machines and tasks are described that live jobs name: its other machines carry Batch's
//! own tags, and 50,000 of them would be 1,000 calls. Of every other cluster all machines are listed: one of a cluster is never stopped directly, and one
//! that Batch keeps for no job at all is waste.

use model::ResourceKind;
use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::{
    answer::Answer,
    batch::Failed,
    collect::{List, list},
    parse,
};
use crate::inventory::{
    BatchJob, ComputeEnvironment, EcsContainerInstance, EcsTask, Failure, JobQueue, cluster_of, last_part,
    reader::{Api, Refused},
};

const CLUSTERS: Api = Api::ecs_clusters("ecs:ListClusters");
const LIST: Api = Api::ecs("ecs:ListContainerInstances");
const CONTAINER_INSTANCES: Api = Api::ecs("ecs:DescribeContainerInstances");
const TASKS: Api = Api::ecs("ecs:DescribeTasks");

/// ECS lists and describes no more at once.
const PAGE_SIZE: i32 = 100;
const DESCRIBED_AT_ONCE: usize = 100;
/// So many calls are under way side by side; the bucket decides how fast.
const AT_ONCE: usize = 8;

/// ARNs by the cluster that is asked for them.
type ByCluster = BTreeMap<String, BTreeSet<String>>;

/// The tasks of jobs that are placed now.
pub(super) async fn tasks(
    list_of: &List<'_>,
    jobs: &[BatchJob],
    queues: &[JobQueue],
    environments: &[ComputeEnvironment],
) -> Result<Vec<EcsTask>, Failed> {
    let named = jobs
        .iter()
        .filter(|job| job.is_placed())
        .flat_map(|job| job.tasks.iter().filter_map(move |task| Some((job, task.arn.as_deref()?))));
    let List { place, scope, .. } = list_of;
    let described = described(by_cluster(named, queues, environments), |cluster, arns| async move {
        let tasks = place.pages(TASKS, list_of.told(ResourceKind::EcsTask), |_| {
            let answer = Answer::default();
            let request = place.ecs().describe_tasks().cluster(&cluster).set_tasks(Some(arns.clone()));
            let request = request.customize().interceptor(answer.clone());
            let (cluster, asked) = (cluster.as_str(), arns.len());
            async move {
                if let Err(error) = request.send().await {
                    let gone = error.as_service_error().is_some_and(|error| error.is_cluster_not_found_exception());
                    return if gone { Ok((Vec::new(), None)) } else { Err(error.into()) };
                }
                let page = answer.json::<parse::Tasks>()?;
                let raw = list(page.tasks, "tasks")?;
                all_told(asked, raw.len(), &page.failures.unwrap_or_default())?;
                let tasks = raw.into_iter().map(|raw| parse::task(scope, cluster, raw));
                Ok((tasks.collect::<Result<Vec<_>, _>>().map_err(Refused::malformed)?, None))
            }
        });
        tasks.await.map_err(|why| (TASKS, why))
    });
    described.await
}

/// The machines of all clusters; of those in `by_name` only the ones that jobs or tasks name.
pub(super) async fn container_instances(
    list_of: &List<'_>,
    by_name: &BTreeSet<String>,
    jobs: &[BatchJob],
    tasks: &[EcsTask],
    queues: &[JobQueue],
    environments: &[ComputeEnvironment],
) -> Result<Vec<EcsContainerInstance>, Failed> {
    let named = jobs
        .iter()
        .filter(|job| job.is_placed())
        .flat_map(|job| job.tasks.iter().filter_map(move |task| Some((job, task.container_instance_arn.as_deref()?))));
    let mut wanted = by_cluster(named, queues, environments);
    for task in tasks {
        if let Some(arn) = &task.container_instance_arn {
            wanted.entry(task.cluster.clone()).or_default().insert(arn.clone());
        }
    }
    wanted.retain(|cluster, _| by_name.contains(cluster));
    let others = clusters(list_of).await.map_err(|why| (CLUSTERS, why))?;
    let others = others.into_iter().filter(|cluster| !by_name.contains(cluster));
    let listed = stream::iter(others).map(|cluster| async move {
        let arns = registered(list_of, &cluster).await.map_err(|why| (LIST, why))?;
        Ok::<_, Failed>(vec![(cluster, BTreeSet::from_iter(arns))])
    });
    wanted.extend(listed.buffer_unordered(AT_ONCE).try_concat().await?);

    let List { place, scope, .. } = list_of;
    let described = described(wanted, |cluster, arns| async move {
        let read = place.pages(CONTAINER_INSTANCES, list_of.told(ResourceKind::EcsContainerInstance), |_| {
            let answer = Answer::default();
            let request = place.ecs().describe_container_instances().cluster(&cluster);
            let request = request.set_container_instances(Some(arns.clone())).customize().interceptor(answer.clone());
            let (cluster, asked) = (cluster.as_str(), arns.len());
            async move {
                if let Err(error) = request.send().await {
                    let gone = error.as_service_error().is_some_and(|error| error.is_cluster_not_found_exception());
                    return if gone { Ok((Vec::new(), None)) } else { Err(error.into()) };
                }
                let page = answer.json::<parse::ContainerInstances>()?;
                let raw = list(page.container_instances, "container instances")?;
                all_told(asked, raw.len(), &page.failures.unwrap_or_default())?;
                let read = raw.into_iter().map(|raw| parse::container_instance(scope, cluster, raw));
                Ok((read.collect::<Result<Vec<_>, _>>().map_err(Refused::malformed)?, None))
            }
        });
        read.await.map_err(|why| (CONTAINER_INSTANCES, why))
    });
    described.await
}

/// The names of all clusters.
async fn clusters(list_of: &List<'_>) -> Result<Vec<String>, Failure> {
    let List { place, .. } = list_of;
    let clusters = place.pages(
        CLUSTERS,
        |_| (),
        |token| {
            let answer = Answer::default();
            let request = place.ecs().list_clusters().max_results(PAGE_SIZE).set_next_token(token);
            let request = request.customize().interceptor(answer.clone());
            async move {
                let page = request.send().await?;
                let arns = list(answer.json::<parse::Clusters>()?.cluster_arns, "clusters")?;
                Ok((arns.iter().map(|arn| last_part(arn).to_owned()).collect(), page.next_token))
            }
        },
    );
    clusters.await
}

/// The ARNs of all machines of a cluster; of one that was deleted a moment ago there are none.
async fn registered(list_of: &List<'_>, cluster: &str) -> Result<Vec<String>, Failure> {
    let List { place, .. } = list_of;
    let arns = place.pages(
        LIST,
        |_| (),
        |token| {
            let answer = Answer::default();
            let request = place.ecs().list_container_instances().cluster(cluster).max_results(PAGE_SIZE);
            let request = request.set_next_token(token).customize().interceptor(answer.clone());
            async move {
                let page = match request.send().await {
                    Ok(page) => page,
                    Err(error) => {
                        let gone = error.as_service_error().is_some_and(|error| error.is_cluster_not_found_exception());
                        return if gone { Ok((Vec::new(), None)) } else { Err(error.into()) };
                    }
                };
                let read = answer.json::<parse::ContainerInstanceArns>()?;
                Ok((list(read.container_instance_arns, "container instances")?, page.next_token))
            }
        },
    );
    arns.await
}

/// An ARN of the older short form names no cluster: then each one that the job's queue may use is asked.
fn by_cluster<'a>(
    named: impl Iterator<Item = (&'a BatchJob, &'a str)>,
    queues: &[JobQueue],
    environments: &[ComputeEnvironment],
) -> ByCluster {
    let mut wanted = ByCluster::new();
    for (job, arn) in named {
        let clusters = match cluster_of(arn) {
            Some(cluster) => vec![cluster.to_owned()],
            None => clusters_of(job, queues, environments),
        };
        for cluster in clusters {
            wanted.entry(cluster).or_default().insert(arn.to_owned());
        }
    }
    wanted
}

fn clusters_of(job: &BatchJob, queues: &[JobQueue], environments: &[ComputeEnvironment]) -> Vec<String> {
    let queue = queues.iter().find(|queue| queue.arn.is_some() && queue.arn == job.queue);
    let used = queue.into_iter().flat_map(|queue| queue.environments.iter().flatten());
    let arns: BTreeSet<_> = used.filter_map(|used| used.arn.as_deref()).collect();
    let used = environments.iter().filter(|one| one.arn.as_deref().is_some_and(|arn| arns.contains(arn)));
    used.filter_map(|one| Some(last_part(one.ecs_cluster_arn.as_deref()?).to_owned())).collect()
}

/// Describes everything that is wanted, each cluster by itself.
async fn described<T, F, Fut>(wanted: ByCluster, describe: F) -> Result<Vec<T>, Failed>
where
    F: Fn(String, Vec<String>) -> Fut,
    Fut: Future<Output = Result<Vec<T>, Failed>>,
{
    let mut calls = Vec::new();
    for (cluster, arns) in wanted {
        let arns: Vec<String> = arns.into_iter().collect();
        calls.extend(arns.chunks(DESCRIBED_AT_ONCE).map(|arns| describe(cluster.clone(), arns.to_vec())));
    }
    stream::iter(calls).buffer_unordered(AT_ONCE).try_concat().await
}

/// Whatever is asked for is told of, or named as gone: a list that lacks one in silence is no list.
fn all_told(asked: usize, told: usize, failures: &[parse::EcsFailure]) -> Result<(), Refused> {
    if let Some(why) = failures.iter().find_map(parse::EcsFailure::why) {
        return Err(Refused::malformed(why));
    }
    if told + failures.len() < asked {
        return Err(Refused::malformed(format!("of {asked} that were asked for {told} are told of")));
    }
    Ok(())
}
