//! In which channel of Slack a finding is told: that of the first team whose it is, at that hour. Pure.
//!
//! A finding is a team's if and only if all that the team asks for is known to hold: tags, owner, who started it, account. Where a team asks for tags, or for an owner, which tags tell,
//! and nobody knows the tags, a later team is not asked: it may be the first one's. Who started something the trail tells of the last weeks alone, so a team that asks for that
//! is passed over where it is not known. What is nobody's goes to the channel for all, and so does what may be somebody's. A channel carries no right: who may decide the policy says.

use crate::{
    config::SlackTeam,
    findings::Finding,
    inventory::{LaunchedBy, owner},
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// What tells whose a finding is.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What it is on.
    pub resource: &'a ResourceKey,
    /// The tags that the resource carries; none if nobody knows them.
    pub tags: Option<&'a BTreeMap<String, String>>,
    /// Who owns it, by tags; none if they do not tell.
    pub owner: Option<&'a str>,
    /// Who started it; none if no trail that was read says so.
    pub launched_by: Option<&'a LaunchedBy>,
}

impl<'a> Facts<'a> {
    /// Those of a finding, on what carries these tags.
    #[must_use]
    pub fn of(finding: &'a Finding, tags: Option<&'a BTreeMap<String, String>>) -> Self {
        let (owner, launched_by) = (finding.evidence.owner(), finding.evidence.launched_by());
        Self { resource: &finding.resource, tags, owner, launched_by }
    }
}

/// Where a finding is told, and why there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The team whose it is; none if it is nobody's.
    pub team: Option<String>,
    /// The channel; none is the one for all.
    pub channel: Option<String>,
    /// In one sentence.
    pub because: String,
}

/// The resource whose tags tell whose this one is: of work that no provider lists, the machine that it runs on.
#[must_use]
pub fn tagged(resource: &ResourceKey) -> ResourceKey {
    match resource.id.split_once('/') {
        Some((machine, _)) if resource.kind == ResourceKind::Workload => {
            ResourceKey { kind: ResourceKind::Instance, id: machine.to_owned(), ..resource.clone() }
        }
        _ => resource.clone(),
    }
}

/// Whether a finding is a team's.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Theirs {
    /// For these reasons.
    Yes(Vec<String>),
    No,
    /// What it asks for is told by tags, and nobody knows them.
    TagsNotKnown,
    /// All but who started it, which nobody knows.
    LauncherNotKnown,
}

/// Where a finding of these facts is told at a moment.
#[must_use]
pub fn route(teams: &[SlackTeam], facts: &Facts<'_>, at: Timestamp) -> Route {
    let for_all = |because: String| Route { team: None, channel: None, because };
    let mut passed_over = Vec::new();
    for team in teams {
        match theirs(team, facts) {
            Theirs::Yes(reasons) => return theirs_at(team, &reasons, at),
            Theirs::TagsNotKnown => {
                return for_all(format!("which tags it carries is not known, and `{}` asks for them", team.name));
            }
            Theirs::LauncherNotKnown => passed_over.push(format!("`{}`", team.name)),
            Theirs::No => {}
        }
    }
    for_all(match passed_over.as_slice() {
        [] if teams.is_empty() => "there are no teams (slack.teams)".to_owned(),
        [] => "it is no team's".to_owned(),
        [one] => format!("who started it is not known, which {one} asks for, and it is no other team's"),
        several => {
            format!("who started it is not known, which {} ask for, and it is no other team's", several.join(", "))
        }
    })
}

fn theirs_at(team: &SlackTeam, reasons: &[String], at: Timestamp) -> Route {
    let when = match team.hours {
        Some(_) if team.is_outside_hours(at) => ", outside their hours",
        Some(_) => ", within their hours",
        None => "",
    };
    let because = format!("it is a finding of `{}`{when}: {}", team.name, reasons.join(", "));
    Route { team: Some(team.name.clone()), channel: Some(team.channel_at(at).to_owned()), because }
}

fn theirs(team: &SlackTeam, facts: &Facts<'_>) -> Theirs {
    let account = &facts.resource.account;
    if !team.accounts.is_empty() && !team.accounts.contains(account) {
        return Theirs::No;
    }
    // What speaks against it counts, whatever else is not known.
    let has_tags = asked(&team.tags, facts.tags);
    let is_owned = owned(&team.owners, facts);
    let is_launched = launched(&team.launchers, facts.launched_by);
    match (has_tags, is_owned, is_launched) {
        (Some(false), ..) | (_, Some(false), _) | (.., Some(false)) => Theirs::No,
        (None, ..) | (_, None, _) => Theirs::TagsNotKnown,
        (.., None) => Theirs::LauncherNotKnown,
        (Some(true), Some(true), Some(true)) => Theirs::Yes(reasons(team, facts)),
    }
}

/// What a team asks for, all of which holds; in its own words, for those of a resource are a stranger's.
fn reasons(team: &SlackTeam, facts: &Facts<'_>) -> Vec<String> {
    let mut reasons: Vec<String> = team.tags.iter().map(|(key, value)| format!("its tag {key} is {value}")).collect();
    if let Some(owner) = team.owners.iter().find(|owner| facts.owner.is_some_and(|is| is_same(owner, is))) {
        reasons.push(format!("its owner is {owner}"));
    }
    let launcher = |launcher: &&String| launched(std::slice::from_ref(*launcher), facts.launched_by) == Some(true);
    if let Some(launcher) = team.launchers.iter().find(launcher) {
        reasons.push(format!("it was started by {launcher}"));
    }
    if !team.accounts.is_empty() {
        reasons.push(format!("it is in {}", facts.resource.account));
    }
    if reasons.is_empty() {
        reasons.push("it asks for nothing".to_owned());
    }
    reasons
}

/// Whether all of these tags are carried; none if that is not known.
fn asked(wanted: &BTreeMap<String, String>, carried: Option<&BTreeMap<String, String>>) -> Option<bool> {
    if wanted.is_empty() {
        return Some(true);
    }
    carried.map(|carried| wanted.iter().all(|(key, value)| carried.get(key) == Some(value)))
}

fn owned(owners: &[String], facts: &Facts<'_>) -> Option<bool> {
    if owners.is_empty() {
        return Some(true);
    }
    let by_tags = || facts.tags.map(owner);
    match facts.owner {
        Some(is) => Some(owners.iter().any(|owner| is_same(owner, is))),
        None => by_tags().map(|is| is.is_some_and(|is| owners.iter().any(|owner| is_same(owner, &is)))),
    }
}

/// As bundles have it: one person who is written in two ways is one.
fn is_same(owner: &str, other: &str) -> bool {
    owner.trim().to_lowercase() == other.trim().to_lowercase()
}

fn launched(launchers: &[String], by: Option<&LaunchedBy>) -> Option<bool> {
    if launchers.is_empty() {
        return Some(true);
    }
    let principal = by?.principal.as_deref()?;
    let ends = principal.match_indices([':', '/']).filter_map(|(at, _)| principal.get(at + 1..));
    let ends: Vec<&str> = std::iter::once(principal).chain(ends).collect();
    Some(launchers.iter().any(|pattern| ends.iter().any(|end| is_like(pattern, end))))
}

/// Whether a text is as a pattern says, in which `*` is any text. In time by both their lengths at most.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
