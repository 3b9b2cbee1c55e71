//! What is listed: resources, and what is told of them.

use model::{Provider, ResourceKind};

/// What one listing lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Resources, which have a key and a history.
    Resource(ResourceKind),
    /// What the provider measured of machines from outside.
    Usage,
    /// Who started machines.
    Launch,
    /// Who submitted jobs.
    Submission,
    /// What a machine of a type has: processors, memory, accelerators, disks of the host.
    MachineType,
    /// What machines are started from, and what is made of snapshots.
    Image,
    /// What protects machines from being stopped or ended.
    Protection,
}

impl From<ResourceKind> for Kind {
    fn from(kind: ResourceKind) -> Self {
        Self::Resource(kind)
    }
}

impl Kind {
    /// The word for it in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resource(kind) => kind.as_str(),
            Self::Usage => "usage",
            Self::Launch => "launch",
            Self::Submission => "submission",
            Self::MachineType => "machine_type",
            Self::Image => "image",
            Self::Protection => "protection",
        }
    }

    /// What one of it, and what several of it are called before people.
    #[must_use]
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Resource(kind) => kind.names(),
            Self::Usage => ("machine's usage", "machines' usage"),
            Self::Launch => ("machine's launch", "machines' launches"),
            Self::Submission => ("job's submission", "jobs' submissions"),
            Self::MachineType => ("machine type", "machine types"),
            Self::Image => ("image", "images"),
            Self::Protection => ("machine's protection", "machines' protection"),
        }
    }

    /// Whether this provider is ever asked for it.
    #[must_use]
    pub const fn is_read_of(self, provider: Provider) -> bool {
        match (self, provider) {
            (_, Provider::OnPrem)
            | (Self::Resource(ResourceKind::Node | ResourceKind::Workload | ResourceKind::LaunchTemplate), _) => false,
            (_, Provider::Aws) => true,
            (kind, Provider::Gcp) => matches!(
                kind,
                Self::Resource(
                    ResourceKind::Instance
                        | ResourceKind::Volume
                        | ResourceKind::Address
                        | ResourceKind::AutoScalingGroup
                ) | Self::Usage
                    | Self::MachineType
            ),
        }
    }

    /// All that any provider is asked for.
    pub const ALL: &[Self] = &[
        Self::Resource(ResourceKind::Instance),
        Self::Resource(ResourceKind::Volume),
        Self::Resource(ResourceKind::Address),
        Self::Resource(ResourceKind::Snapshot),
        Self::Resource(ResourceKind::AutoScalingGroup),
        Self::Resource(ResourceKind::BatchComputeEnvironment),
        Self::Resource(ResourceKind::BatchJobQueue),
        Self::Resource(ResourceKind::BatchJob),
        Self::Resource(ResourceKind::EcsContainerInstance),
        Self::Resource(ResourceKind::EcsTask),
        Self::Usage,
        Self::Launch,
        Self::Submission,
        Self::MachineType,
        Self::Image,
        Self::Protection,
    ];

    /// The kind of resource that it lists; none for what is told of machines and jobs.
    #[must_use]
    pub const fn resource(self) -> Option<ResourceKind> {
        match self {
            Self::Resource(kind) => Some(kind),
            Self::Usage | Self::Launch | Self::Submission | Self::MachineType | Self::Image | Self::Protection => None,
        }
    }

    /// The kind that a word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}
