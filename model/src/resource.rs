//! Which resource is meant.

use std::{fmt, str::FromStr};

use crate::provider::Provider;

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A provider's record of a machine.
    Instance,
    /// A Linux host that runs the agent and that no provider lists.
    Node,
    /// A disk that outlives machines.
    Volume,
    /// A public address that outlives machines.
    Address,
    /// A copy of a disk.
    Snapshot,
    /// What keeps a number of machines alive.
    AutoScalingGroup,
    /// What machines are started from.
    LaunchTemplate,
    /// Where jobs of AWS Batch may run.
    BatchComputeEnvironment,
    /// Where they wait.
    BatchJobQueue,
    /// A job of AWS Batch.
    BatchJob,
    /// A machine as ECS knows it.
    EcsContainerInstance,
    /// The containers of one attempt of a job, or of one copy of a service.
    EcsTask,
    /// Processes that belong together on one machine, and that no provider names.
    Workload,
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Instance,
        Self::Node,
        Self::Volume,
        Self::Address,
        Self::Snapshot,
        Self::AutoScalingGroup,
        Self::LaunchTemplate,
        Self::BatchComputeEnvironment,
        Self::BatchJobQueue,
        Self::BatchJob,
        Self::EcsContainerInstance,
        Self::EcsTask,
        Self::Workload,
    ];

    /// The word for it, everywhere but in a key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Node => "node",
            Self::Volume => "volume",
            Self::Address => "address",
            Self::Snapshot => "snapshot",
            Self::AutoScalingGroup => "auto_scaling_group",
            Self::LaunchTemplate => "launch_template",
            Self::BatchComputeEnvironment => "batch_compute_environment",
            Self::BatchJobQueue => "batch_job_queue",
            Self::BatchJob => "batch_job",
            Self::EcsContainerInstance => "ecs_container_instance",
            Self::EcsTask => "ecs_task",
            Self::Workload => "workload",
        }
    }

    /// The kind of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// What one of it, and what several of it are called before people.
    #[must_use]
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Instance => ("instance", "instances"),
            Self::Node => ("node", "nodes"),
            Self::Volume => ("volume", "volumes"),
            Self::Address => ("address", "addresses"),
            Self::Snapshot => ("snapshot", "snapshots"),
            Self::AutoScalingGroup => ("Auto Scaling group", "Auto Scaling groups"),
            Self::LaunchTemplate => ("launch template", "launch templates"),
            Self::BatchComputeEnvironment => ("Batch compute environment", "Batch compute environments"),
            Self::BatchJobQueue => ("Batch job queue", "Batch job queues"),
            Self::BatchJob => ("Batch job", "Batch jobs"),
            Self::EcsContainerInstance => ("ECS container instance", "ECS container instances"),
            Self::EcsTask => ("ECS task", "ECS tasks"),
            Self::Workload => ("workload", "workloads"),
        }
    }
}

/// Names anything that a bill or a finding can name.
///
/// Text form: `PROVIDER:ACCOUNT:LOCATION:KIND/ID`, without `KIND/` where the id shows its kind by itself (`i-…`, `vol-…`, `snap-…`, `eipalloc-…`, the
/// number of a Compute Engine instance), and `host:ID` for a node on premises. It is read back to the same key, and that of a machine is the text form of
/// its node id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceKey {
    /// Who answers for it.
    pub provider: Provider,
    /// An account of AWS, a project of Google Cloud; empty on premises.
    pub account: String,
    /// A region, or a zone of Google Cloud (`global` for what is in none); empty on premises.
    pub location: String,
    /// Ids are unique among one kind only.
    pub kind: ResourceKind,
    /// In the provider's words: `vol-…`, `snap-…`, `eipalloc-…`, `i-…`, the name of a group; of Google Cloud the number of a machine and the name of all
    /// else; of a node on premises the hash of its machine id.
    pub id: String,
}

/// Stands before the id of a node on premises.
const HOST: &str = "host";

/// What stands before an id that does not show its kind by itself, so that two resources never have one text: a group may be called `i-1`.
const fn word(provider: Provider, kind: ResourceKind) -> &'static str {
    match (kind, provider) {
        (ResourceKind::Instance, _) => "instance",
        (ResourceKind::Node, _) => "node",
        (ResourceKind::Volume, Provider::Gcp) => "disk",
        (ResourceKind::Volume, _) => "volume",
        (ResourceKind::Address, _) => "address",
        (ResourceKind::Snapshot, _) => "snapshot",
        (ResourceKind::AutoScalingGroup, _) => "group",
        (ResourceKind::LaunchTemplate, _) => "launch-template",
        (ResourceKind::BatchComputeEnvironment, _) => "environment",
        (ResourceKind::BatchJobQueue, _) => "queue",
        (ResourceKind::BatchJob, _) => "job",
        (ResourceKind::EcsContainerInstance, _) => "container-instance",
        (ResourceKind::EcsTask, _) => "task",
        (ResourceKind::Workload, _) => "workload",
    }
}

/// The kind that an id shows by itself, as its provider makes ids.
fn shown(provider: Provider, id: &str) -> Option<ResourceKind> {
    const OF_AWS: [(&str, ResourceKind); 4] = [
        ("i-", ResourceKind::Instance),
        ("vol-", ResourceKind::Volume),
        ("snap-", ResourceKind::Snapshot),
        ("eipalloc-", ResourceKind::Address),
    ];
    match provider {
        // None of these has a slash: with one it would read as a kind and an id.
        Provider::Aws if !id.contains('/') => {
            OF_AWS.into_iter().find(|(prefix, _)| id.starts_with(prefix)).map(|(_, kind)| kind)
        }
        Provider::Gcp if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) => Some(ResourceKind::Instance),
        Provider::Aws | Provider::Gcp | Provider::OnPrem => None,
    }
}

impl ResourceKey {
    /// A node that no provider lists.
    #[must_use]
    pub fn host(id: impl Into<String>) -> Self {
        let (account, location) = (String::new(), String::new());
        Self { provider: Provider::OnPrem, account, location, kind: ResourceKind::Node, id: id.into() }
    }

    /// The name that AWS itself has for it; none for what is not of AWS, or whose name takes more than its key.
    #[must_use]
    pub fn arn(&self) -> Option<String> {
        let Self { provider: Provider::Aws, account, location, kind, id } = self else { return None };
        let kind = match kind {
            ResourceKind::Instance => "instance",
            ResourceKind::Volume => "volume",
            // Snapshots are named without an account.
            ResourceKind::Snapshot => {
                return Some(format!("arn:{}:ec2:{location}::snapshot/{id}", partition(location)));
            }
            ResourceKind::Address => "elastic-ip",
            _ => return None,
        };
        Some(format!("arn:{}:ec2:{location}:{account}:{kind}/{id}", partition(location)))
    }

    /// The name that AWS itself has for a job of AWS Batch; none for what is none.
    #[must_use]
    pub fn batch_job_arn(&self) -> Option<String> {
        let Self { provider: Provider::Aws, account, location, kind: ResourceKind::BatchJob, id } = self else {
            return None;
        };
        Some(format!("arn:{}:batch:{location}:{account}:job/{id}", partition(location)))
    }

    /// The URL by which Google Cloud itself names it; none for what is not of Google Cloud, or is in no zone.
    #[must_use]
    pub fn self_link(&self) -> Option<String> {
        let Self { provider: Provider::Gcp, account, location, kind, id } = self else { return None };
        let kind = match kind {
            ResourceKind::Instance => "instances",
            // A disk of a region has no zone's letter at its end.
            ResourceKind::Volume if location.matches('-').count() == 2 => "disks",
            _ => return None,
        };
        Some(format!("https://www.googleapis.com/compute/v1/projects/{account}/zones/{location}/{kind}/{id}"))
    }
}

fn partition(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "aws-cn"
    } else if region.starts_with("us-gov-") {
        "aws-us-gov"
    } else {
        "aws"
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, account, location, kind, id } = self;
        if *provider == Provider::OnPrem && *kind == ResourceKind::Node && account.is_empty() && location.is_empty() {
            return write!(f, "{HOST}:{id}");
        }
        write!(f, "{provider}:{account}:{location}:")?;
        if shown(*provider, id) != Some(*kind) {
            write!(f, "{}/", word(*provider, *kind))?;
        }
        f.write_str(id)
    }
}

/// A text that is no key of a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no key of a resource; expected PROVIDER:ACCOUNT:LOCATION:ID or PROVIDER:ACCOUNT:LOCATION:KIND/ID")]
pub struct NotAKey(String);

fn parse(text: &str) -> Option<ResourceKey> {
    let (provider, rest) = text.split_once(':')?;
    if provider == HOST {
        return (!rest.is_empty() && !rest.contains(':')).then(|| ResourceKey::host(rest));
    }
    let provider = Provider::from_word(provider)?;
    let (account, rest) = match rest.split_once(':')? {
        // The project of an organisation with a domain has a colon: `example.com:omics`.
        (domain, rest) if provider == Provider::Gcp && domain.contains('.') => {
            let (project, rest) = rest.split_once(':')?;
            (format!("{domain}:{project}"), rest)
        }
        (account, rest) => (account.to_owned(), rest),
    };
    let (location, id) = rest.split_once(':')?;
    let with_word = || {
        let (kind, id) = id.split_once('/')?;
        Some((ResourceKind::ALL.into_iter().find(|of| word(provider, *of) == kind)?, id))
    };
    let (kind, id) = with_word().or_else(|| Some((shown(provider, id)?, id)))?;
    (!id.is_empty()).then(|| ResourceKey { provider, account, location: location.to_owned(), kind, id: id.to_owned() })
}

impl FromStr for ResourceKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        // At most 64 characters of a hostile text are repeated in the error.
        parse(text).ok_or_else(|| NotAKey(text.chars().take(64).collect::<String>().escape_debug().to_string()))
    }
}

impl<'de> serde::Deserialize<'de> for ResourceKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for ResourceKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aws(kind: ResourceKind, id: &str) -> ResourceKey {
        let (account, location) = ("123456789012".into(), "eu-central-1".into());
        ResourceKey { provider: Provider::Aws, account, location, kind, id: id.into() }
    }

    #[test]
    fn keys_read_as_people_write_them() {
        for (key, text) in [
            (aws(ResourceKind::Instance, "i-1"), "aws:123456789012:eu-central-1:i-1"),
            (aws(ResourceKind::Volume, "vol-1"), "aws:123456789012:eu-central-1:vol-1"),
            (aws(ResourceKind::AutoScalingGroup, "i-1"), "aws:123456789012:eu-central-1:group/i-1"),
            (aws(ResourceKind::LaunchTemplate, "lt-1"), "aws:123456789012:eu-central-1:launch-template/lt-1"),
            (aws(ResourceKind::Address, "198.51.100.7"), "aws:123456789012:eu-central-1:address/198.51.100.7"),
            (ResourceKey::host("0123"), "host:0123"),
        ] {
            assert_eq!(key.to_string(), text);
        }
        let google = |text: &str| text.parse::<ResourceKey>().expect("a key");
        let disk = google("gcp:example.com:omics:europe-west3-a:disk/scratch");
        assert_eq!((disk.account.as_str(), disk.location.as_str()), ("example.com:omics", "europe-west3-a"));
        assert_eq!((disk.kind, disk.id.as_str()), (ResourceKind::Volume, "scratch"));
        assert_eq!(google("gcp:omics:europe-west3-a:42").kind, ResourceKind::Instance);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "host:",
            "host:1:2",
            "aws:1:r",
            "aws:1:r:",
            "aws:1:r:group/",
            "aws:1:r:disk/1",
            "aws:1:r:workers",
            "mars:1:r:job/1",
            "gcp:example.com:omics:a",
            "gcp:omics:a:scratch",
        ] {
            assert!(text.parse::<ResourceKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_names_that_providers_have_for_it() {
        let arn = |kind, id| aws(kind, id).arn();
        let instance = Some("arn:aws:ec2:eu-central-1:123456789012:instance/i-1".into());
        assert_eq!(arn(ResourceKind::Instance, "i-1"), instance);
        assert_eq!(arn(ResourceKind::Snapshot, "snap-1"), Some("arn:aws:ec2:eu-central-1::snapshot/snap-1".into()));
        assert_eq!(arn(ResourceKind::BatchJob, "5f0c"), None);
        let job = aws(ResourceKind::BatchJob, "5f0c").batch_job_arn();
        assert_eq!(job, Some("arn:aws:batch:eu-central-1:123456789012:job/5f0c".into()));
        assert_eq!(aws(ResourceKind::Instance, "i-1").batch_job_arn(), None);
        let china = ResourceKey { location: "cn-north-1".into(), ..aws(ResourceKind::Volume, "vol-1") };
        assert_eq!(china.arn(), Some("arn:aws-cn:ec2:cn-north-1:123456789012:volume/vol-1".into()));
        let google: ResourceKey = "gcp:omics:europe-west3-a:42".parse().expect("a key");
        let link = "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a/instances/42";
        assert_eq!((google.self_link().as_deref(), google.arn()), (Some(link), None));
        assert_eq!(ResourceKey::host("0123").self_link(), None);
    }

    /// Whatever a provider may call things, and worse: ids that look like another kind, like a key, or like nothing.
    fn any_key() -> impl Strategy<Value = ResourceKey> {
        let kind = proptest::sample::select(ResourceKind::ALL.to_vec());
        let id = prop_oneof![
            "(i|vol|snap|eipalloc)-[0-9a-f]{1,17}",
            "[0-9]{1,20}",
            "(group|job|disk|volume|instance|node)/[a-z0-9-]{1,9}",
            "\\PC{1,40}"
        ];
        let place = prop_oneof![
            ("[0-9]{12}", "[a-z]{2}-[a-z]{4,9}-[1-9]").prop_map(|(account, region)| (Provider::Aws, account, region)),
            ("([a-z]{1,9}\\.com:)?[a-z][a-z0-9-]{0,29}", "[a-z]{2}-[a-z]{4}[1-9]-[a-f]|global")
                .prop_map(|(project, zone)| (Provider::Gcp, project, zone)),
        ];
        prop_oneof![
            (place, kind, id).prop_map(|((provider, account, location), kind, id)| ResourceKey {
                provider,
                account,
                location,
                kind,
                id
            }),
            "[0-9a-f]{32}".prop_map(ResourceKey::host),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn every_key_comes_back_from_its_text_and_so_no_two_have_the_same(key in any_key()) {
            prop_assert_eq!(key.to_string().parse(), Ok(key.clone()));
            let json = serde_json::to_string(&key).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<ResourceKey>(&json).expect("a key"), key);
        }

        #[test]
        fn no_text_makes_the_parser_panic_and_what_is_accepted_comes_back(text in "\\PC{0,60}|(aws|gcp|host|onprem)(:[a-z0-9./-]{0,9}){0,5}") {
            if let Ok(key) = text.parse::<ResourceKey>() {
                prop_assert_eq!(key.to_string().parse(), Ok(key));
            }
        }
    }
}
