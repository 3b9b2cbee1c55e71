//! Amazon Web Services, read-only: the caller's account and those that it may assume a role in, their enabled regions, and what
//! bills in them: machines, and what outlives machines or keeps them alive.
//!
//! Needs `sts:GetCallerIdentity` (always granted), `sts:AssumeRole` for other accounts, and in each account `ec2:DescribeRegions`
//! (only where no regions are named), `ec2:DescribeInstances`, `ec2:DescribeInstanceTypes`, `ec2:DescribeInstanceTypeOfferings` (where machines have been watched for a week),
//! `ec2:DescribeInstanceAttribute` (of idle machines, and of those), `ec2:DescribeSpotPriceHistory` (where Spot instances run), `ec2:DescribeVolumes`, `ec2:DescribeAddresses`,
//! `ec2:DescribeSnapshots`, `ec2:DescribeImages`, `autoscaling:DescribeAutoScalingGroups`, `batch:DescribeComputeEnvironments`, `batch:DescribeJobQueues`,
//! `batch:ListJobs`, `batch:DescribeJobs`, `ecs:ListClusters`, `ecs:ListContainerInstances`, `ecs:DescribeContainerInstances` and
//! `ecs:DescribeTasks`; what is not allowed is a kind that is not known, and leaves all alone that does not rest on it. One call per 1,000 instances, volumes, snapshots or images, per 100 groups, and one for all addresses of a
//! region; 50,000 instances in one region are 50 calls one after the other, since a page's token comes with the page before
//! it. Accounts and regions are read side by side, and so are the kinds of one.

mod accounts;
mod address;
mod answer;
mod batch;
mod catalogue;
mod collect;
mod credentials;
mod ecs;
pub(crate) mod failure;
mod images;
mod jobs;
mod machine;
mod metrics;
mod options;
mod parse;
mod permissions;
mod place;
mod protection;
mod rates;
mod role;
mod scaling;
mod session;
mod spot;
mod storage;
mod trail;
mod types;
mod volume;

pub use accounts::{Accounts, Discovered};
pub use address::{OneAddress, address, one_address};
pub use batch::{OneJob, job_places, one_job, some_jobs, waiting_jobs};
pub use catalogue::offered;
pub use collect::{collect, read};
pub use machine::{OneMachine, dependents, instance, one_machine, owners};
pub use metrics::{Measured, usage};
pub use options::Options;
pub use permissions::{Allowed, Besides, Permission, permissions, some_machines};
pub use protection::{AskedProtection, protection};
pub use role::{Role, RoleArn};
pub(crate) use scaling::name_members;
pub use scaling::{group, refresh};
pub use session::Session;
pub use spot::{SpotTold, spot_history};
pub use trail::{LOOKUP, Launches, Sought, launches};
pub use volume::{PLAN_TAG, snapshot_for, volume};
