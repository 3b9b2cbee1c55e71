//! Amazon Web Services, read-only: the caller's account, its enabled regions, and every instance in them.
//!
//! Needs `sts:GetCallerIdentity` (always granted), `ec2:DescribeRegions` (only where no regions are named) and
//! `ec2:DescribeInstances`. One call per 1,000 instances and region; 50,000 instances in one region are 50 calls one
//! after the other, since a page's token comes with the page before it. Regions are read side by side.

mod collect;
pub(crate) mod failure;
mod parse;
mod session;

pub use collect::{collect, read, scopes};
pub use session::{Options, Session};
