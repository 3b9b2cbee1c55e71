//! Whether everything that a sweeper rests on is there and allowed, found out by using it: credentials, rights, database, clock, channels, people, agents. Nothing is
//! changed, and nothing is sent unless a test is asked for.

mod amazon;
mod channels;
mod database;
mod google;

use crate::{config::Config, store::Store};
use jiff::SignedDuration;
use serde::Serialize;
use std::{path::Path, time::Duration};

/// What a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The files that settings, secrets and the policy come from.
    Configuration,
    /// The database.
    Database,
    /// What `sweeper serve` does, by what it has written.
    Service,
    /// Reading AWS.
    Aws,
    /// Prices.
    Prices,
    /// Reading Google Cloud.
    Google,
    /// Who may decide, and whether that could be carried out.
    Approvals,
    /// Messages to Slack.
    Slack,
    /// Messages by mail.
    Email,
    /// The nodes.
    Agents,
}

impl Part {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Database => "database",
            Self::Service => "service",
            Self::Aws => "AWS",
            Self::Prices => "prices",
            Self::Google => "Google Cloud",
            Self::Approvals => "approvals and actions",
            Self::Slack => "Slack",
            Self::Email => "email",
            Self::Agents => "agents",
        }
    }
}

/// How one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was tried and works.
    Ok,
    /// It is not configured, or there was nothing to try it on.
    NotChecked,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it belongs to.
    pub part: Part,
    /// What was looked at.
    pub name: String,
    /// How it stands.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do; empty where nothing needs doing.
    pub remedy: String,
}

impl Check {
    fn new(part: Part, name: &str, status: Status, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part, name: name.to_owned(), status, found: found.into(), remedy: remedy.into() }
    }

    fn ok(part: Part, name: &str, found: impl Into<String>) -> Self {
        Self::new(part, name, Status::Ok, found, "")
    }

    fn off(part: Part, name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(part, name, Status::NotChecked, found, remedy)
    }
}

/// Looks at everything, part by part; `told` hears of the checks of a part when they are done. `file` is the one that the configuration was read from.
pub async fn examine(
    config: &Config,
    file: Option<&Path>,
    send_test: bool,
    mut told: impl FnMut(&[Check]),
) -> Vec<Check> {
    let mut all = Vec::new();
    let mut take = |checks: Vec<Check>| {
        told(&checks);
        all.extend(checks);
    };
    take(configuration(config, file));
    let (store, checks) = database::database(config).await;
    take(checks);
    if let Some(store) = &store {
        take(database::service(store, config).await);
    }
    let (checks, session) = amazon::read_rights(config).await;
    take(checks);
    take(amazon::prices(config, session.as_ref()).await);
    let (checks, machines) = google::read_rights(config).await;
    take(checks);
    take(approvals(config, store.as_ref()).await);
    take(google::acting(config, &machines).await);
    if let Some(session) = &session {
        take(amazon::acting(config, session).await);
    }
    take(channels::slack(config, send_test).await);
    take(channels::email(config, send_test).await);
    if let Some(store) = &store {
        take(database::agents(store).await);
    }
    all
}

fn configuration(config: &Config, file: Option<&Path>) -> Vec<Check> {
    let part = Part::Configuration;
    let read = match file {
        Some(file) => Check::ok(part, "file", file.display().to_string()),
        None => Check::ok(part, "file", "none; defaults and SWEEPER_… variables"),
    };
    let warning = |why: String| Check::new(part, "rights", Status::Warning, why, "");
    let warnings = config.warnings(file).into_iter().map(warning);
    std::iter::once(read).chain(warnings).collect()
}

async fn approvals(config: &Config, store: Option<&Store>) -> Vec<Check> {
    let part = Part::Approvals;
    let mut all = Vec::new();
    all.push(match &config.approvals.policy_file {
        None => Check::off(
            part,
            "policy",
            "none: nobody may approve anything",
            "name one as `approvals.policy_file` (docs/approvals.md)",
        ),
        Some(file) => match crate::config::read_policy(file) {
            Ok((policy, _)) => Check::ok(part, "policy", format!("{}, {} rules", file.display(), policy.rules.len())),
            Err(error) => Check::new(
                part,
                "policy",
                Status::Broken,
                crate::chain(&error),
                "until it can be read nobody may approve anything, and nothing is carried out",
            ),
        },
    });
    if config.act.scopes.is_empty() {
        let found = "switched on nowhere: an approval is a dry run";
        all.push(Check::off(
            part,
            "actions",
            found,
            "name accounts and regions, or projects and zones, in `act.scopes`",
        ));
    } else {
        all.push(Check::ok(part, "actions", format!("switched on in {}", config.act.scopes.join(", "))));
    }
    let Some(store) = store else { return all };
    all.push(match store.approvers().await {
        Ok(people) if people.is_empty() && config.approvals.policy_file.is_some() => {
            Check::new(part, "approvers", Status::Warning, "nobody is enrolled", "sweeper approvers add NAME")
        }
        Ok(people) => Check::ok(part, "approvers", format!("{} enrolled", people.len())),
        Err(error) => Check::new(part, "approvers", Status::Broken, crate::chain(&error), ""),
    });
    all.push(match store.kill_switch().await {
        Ok(switch) if switch.is_on => {
            let because = switch.because.map(|why| format!(": {why}")).unwrap_or_default();
            let found = format!("on, by {}{because}; nothing is carried out", switch.who);
            Check::new(part, "kill switch", Status::Warning, found, "sweeper kill-switch off, once that is over")
        }
        Ok(_) => Check::ok(part, "kill switch", "off"),
        Err(error) => {
            let remedy = "one that cannot be read is on: nothing is carried out";
            Check::new(part, "kill switch", Status::Broken, crate::chain(&error), remedy)
        }
    });
    all
}

/// A length of time, to the unit that a person cares for.
fn span(length: SignedDuration) -> String {
    crate::verdict::words::span(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}

/// How long a call took.
fn took(length: Duration) -> String {
    format!("{:.1} ms", length.as_secs_f64() * 1_000.0)
}
