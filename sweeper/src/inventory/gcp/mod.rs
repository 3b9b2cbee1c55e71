//! Google Cloud, read-only: the projects that are named, in each the machines, what outlives them or keeps them alive, and what
//! Cloud Monitoring measured of them.
//!
//! Needs in each project `compute.instances.list`, `compute.disks.list`, `compute.addresses.list`,
//! `compute.instanceGroupManagers.list`, `compute.machineTypes.get` (all in the role Compute Viewer) and
//! `monitoring.timeSeries.list` (Monitoring Viewer); what is not allowed is a kind that is not known, and leaves the others alone.
//! One call per 500 machines, disks, addresses or groups of a project, all zones together and one after the other; one per type of
//! machine in use in a zone; three per 100,000 points of monitoring.
//!
//! One zone may fail alone. Google then names it (`unreachables`, or a warning in the zone's own part), and so does a listing of
//! its own, which wins over that of the project. It has no way to be asked to fail as a whole instead: `returnPartialSuccess` is not
//! in the version of the API that is spoken here (2026-09-01).

mod catalogue;
mod collect;
mod failure;
mod list;
mod machine;
mod monitoring;
mod options;
mod parse;
mod place;
mod plain;
mod renewable;
mod session;
mod shapes;

pub use catalogue::{Rate, Sku, catalogue, may_read_catalogue};
pub use collect::read;
pub use machine::{OneMachine, dependents, ended_with, instance, one_machine};
pub use options::Options;
pub use renewable::Source;
pub use session::Session;
