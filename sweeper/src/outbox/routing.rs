//! Where a finding is told that answers nothing: what is known of it, put before the teams.

use crate::{
    config::SlackTeam,
    findings::Finding,
    routes::{self, Facts},
    store::{StoreError, history, outbox::Destination},
};
use jiff::Timestamp;
use sea_orm::ConnectionTrait;
use std::collections::BTreeMap;

/// Where in Slack a finding is told at a moment, by the tags that a sweep has just listed, or else by those that were listed last.
pub(crate) async fn destination(
    connection: &impl ConnectionTrait,
    teams: &[SlackTeam],
    finding: &Finding,
    listed: Option<&BTreeMap<String, String>>,
    at: Timestamp,
) -> Result<Destination, StoreError> {
    if teams.is_empty() {
        return Ok(Destination::default());
    }
    let last = match listed {
        Some(_) => None,
        None => history::tags_last(connection, &routes::tagged(&finding.resource)).await?,
    };
    let route = routes::route(teams, &Facts::of(finding, listed.or(last.as_ref())), at);
    tracing::info!(finding = %finding.id, channel = route.channel, because = route.because, "where a finding is told");
    Ok(Destination::new(route.channel, route.because))
}
