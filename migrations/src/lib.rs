//! The database schema, one file per step, the same for SQLite and PostgreSQL.
//!
//! A step is never edited once it has been released; `README.md` says how a table is changed while old and new sweepers run side by side.

#![expect(elided_lifetimes_in_paths, reason = "async_trait cannot match the trait's own elided lifetime otherwise")]

mod m0001_nodes;
mod m0002_heartbeats;
mod m0003_findings;
mod m0004_outbox;
mod m0005_sweeps;
mod m0006_scopes;
mod m0007_history;
mod m0008_outside;
mod m0009_node_identity;
mod m0010_idle_class;
mod m0011_refused_heartbeats;
mod m0012_evidence;
mod m0013_events;
mod m0014_node_state;
mod m0015_resource_key;
mod m0016_prices;
mod m0017_rollups;
mod m0018_intervals;
mod m0019_bundles;
mod m0020_protection;
mod m0021_unit_prices;
mod m0022_replicas;
mod m0023_weeks;
mod m0024_launched;
mod m0025_plans;
mod m0026_approvals;
mod m0027_questions;
mod m0028_actions;
mod m0029_exemptions;
mod m0030_digests;
mod m0031_spot_prices;
mod m0032_destinations;
mod m0033_copies;
mod m0034_catalogues;
mod m0035_summaries;
mod m0036_price_rows;
mod m0037_needed_step;
mod m0038_cost_days;

pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::{MigrationTrait, async_trait};

/// The step that a program must know to use a database which has all of these: a sweeper of before that knows it may start beside this one, and behind it. Steps that came later
/// only add what a sweeper of before can do without.
///
/// Whoever adds a step that is not so, or writes what a sweeper of before cannot read, names that step here; `README.md` says when.
pub const NEEDED: &str = "m0037_needed_step";

/// All steps in order.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_nodes::Migration),
            Box::new(m0002_heartbeats::Migration),
            Box::new(m0003_findings::Migration),
            Box::new(m0004_outbox::Migration),
            Box::new(m0005_sweeps::Migration),
            Box::new(m0006_scopes::Migration),
            Box::new(m0007_history::Migration),
            Box::new(m0008_outside::Migration),
            Box::new(m0009_node_identity::Migration),
            Box::new(m0010_idle_class::Migration),
            Box::new(m0011_refused_heartbeats::Migration),
            Box::new(m0012_evidence::Migration),
            Box::new(m0013_events::Migration),
            Box::new(m0014_node_state::Migration),
            Box::new(m0015_resource_key::Migration),
            Box::new(m0016_prices::Migration),
            Box::new(m0017_rollups::Migration),
            Box::new(m0018_intervals::Migration),
            Box::new(m0019_bundles::Migration),
            Box::new(m0020_protection::Migration),
            Box::new(m0021_unit_prices::Migration),
            Box::new(m0022_replicas::Migration),
            Box::new(m0023_weeks::Migration),
            Box::new(m0024_launched::Migration),
            Box::new(m0025_plans::Migration),
            Box::new(m0026_approvals::Migration),
            Box::new(m0027_questions::Migration),
            Box::new(m0028_actions::Migration),
            Box::new(m0029_exemptions::Migration),
            Box::new(m0030_digests::Migration),
            Box::new(m0031_spot_prices::Migration),
            Box::new(m0032_destinations::Migration),
            Box::new(m0033_copies::Migration),
            Box::new(m0034_catalogues::Migration),
            Box::new(m0035_summaries::Migration),
            Box::new(m0036_price_rows::Migration),
            Box::new(m0037_needed_step::Migration),
            Box::new(m0038_cost_days::Migration),
        ]
    }
}
