//! The database, and what the service and its agents have written into it.

use super::{Check, Part, Status, span, took};
use crate::{
    config::Config,
    store::{MessageState, Schema, Store},
    sweep::{ScopeStatus, Timetable},
};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret as _;
use std::time::Instant;

/// Clocks that are further apart are worth a word: heartbeats are refused by this host's, and an answer's age is told by the database's.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(2);
/// A node that was heard of within so long reports; what is silent for longer is a finding of its own.
const REPORTS: SignedDuration = SignedDuration::from_hours(1);
/// So many failed messages are counted at most.
const MOST: u64 = 1_000;

/// The database, if it is there, answers, and has this version's schema.
pub(super) async fn database(config: &Config) -> (Option<Store>, Vec<Check>) {
    let part = Part::Database;
    let broken = |name: &str, found: String, remedy: &str| Check::new(part, name, Status::Broken, found, remedy);
    let file = config.data_dir.join("sweeper.db");
    if config.store.url.is_none() && !file.is_file() {
        let found = format!("there is none at {} yet", file.display());
        let remedy = "run `sweeper serve` or `sweeper sweep`, or set SWEEPER_DATA_DIR to where one runs";
        return (None, vec![Check::off(part, "database", found, remedy)]);
    }
    let store = match Store::connect(config.store_url().expose_secret()).await {
        Ok(store) => store,
        Err(error) => {
            let remedy = "see that it runs, that this host reaches it, and `store.url`";
            return (None, vec![broken("database", crate::chain(&error), remedy)]);
        }
    };
    let asked = Instant::now();
    let before = Timestamp::now();
    let mut all = vec![match store.now().await {
        Err(error) => return (None, vec![broken("database", crate::chain(&error), "")]),
        Ok(now) => {
            let answered_in = asked.elapsed();
            all_clocks(part, now, before, answered_in)
        }
    }];
    let schema = match store.schema().await {
        Ok(Schema::Current) => Check::ok(part, "schema", "of this version"),
        Ok(Schema::Newer(steps)) => {
            let found = format!("of a newer version, by {steps} steps; this one may use it");
            Check::ok(part, "schema", found)
        }
        Ok(Schema::Older(missing)) => {
            let found = format!("of an older version: {missing} steps are missing");
            all.push(broken(
                "schema",
                found,
                "`sweeper serve` or `sweeper sweep` of this version brings it up to date",
            ));
            return (None, all);
        }
        Err(error) => {
            all.push(broken("schema", crate::chain(&error), "use the sweeper's version that made it, or a later one"));
            return (None, all);
        }
    };
    all.push(schema);
    (Some(store), all)
}

/// The database's clock lies somewhere between the question and the answer.
fn all_clocks(part: Part, theirs: Timestamp, before: Timestamp, answered_in: std::time::Duration) -> Check {
    let after = before.checked_add(answered_in).unwrap_or(before);
    let ahead = theirs.duration_since(after);
    let behind = before.duration_since(theirs);
    let apart = ahead.max(behind);
    let answers = format!("answers in {}", took(answered_in));
    if apart > CLOCKS_APART {
        let found = format!("{answers}; its clock and this host's are {} apart", span(apart));
        return Check::new(part, "database", Status::Warning, found, "set both (chrony or systemd-timesyncd)");
    }
    Check::ok(part, "database", format!("{answers}; its clock agrees with this host's"))
}

/// What `sweeper serve` does.
pub(super) async fn service(store: &Store, config: &Config) -> Vec<Check> {
    let part = Part::Service;
    let broken = |name: &str, error: &(dyn std::error::Error + 'static)| {
        Check::new(part, name, Status::Broken, crate::chain(error), "")
    };
    let mut all = vec![match store.live_replicas().await {
        Ok(0) => Check::new(
            part,
            "serve",
            Status::Warning,
            "no sweeper serves: no heartbeat is received, and nothing is swept on schedule",
            "sweeper serve",
        ),
        Ok(1) => Check::ok(part, "serve", "one sweeper serves"),
        Ok(count) => Check::ok(part, "serve", format!("{count} sweepers serve")),
        Err(error) => broken("serve", &error),
    }];
    match (store.work_units().await, Timetable::new(&config.sweep)) {
        (Ok(units), Ok(timetable)) => all.push(sweeps(&ScopeStatus::of(units, &timetable))),
        (Err(error), _) => all.push(broken("sweeps", &error)),
        (_, Err(error)) => all.push(broken("sweeps", &error)),
    }
    all.push(match store.messages(Some(MessageState::Failed), MOST).await {
        Ok(failed) if failed.is_empty() => Check::ok(part, "messages", "none was discarded"),
        Ok(failed) => {
            let remedy = "sweeper messages --state failed says why; `sweeper messages retry` once that is mended";
            Check::new(part, "messages", Status::Warning, format!("{} were discarded", failed.len()), remedy)
        }
        Err(error) => broken("messages", &error),
    });
    all
}

/// How the last sweeps went.
fn sweeps(scopes: &[ScopeStatus]) -> Check {
    let part = Part::Service;
    let never = scopes.iter().filter(|scope| scope.complete.is_none()).count();
    let incomplete: Vec<_> = scopes.iter().filter(|scope| scope.complete == Some(false)).collect();
    if scopes.is_empty() || never == scopes.len() {
        return Check::off(part, "sweeps", "nothing has been swept yet", "sweeper sweep, or wait for the schedule");
    }
    if let Some(first) = incomplete.first() {
        let why = first.failed.as_deref().unwrap_or("not known");
        let found =
            format!("{} of {} scopes could not be read whole: {}: {why}", incomplete.len(), scopes.len(), first.name());
        return Check::new(part, "sweeps", Status::Warning, found, "sweeper scopes names all of them");
    }
    Check::ok(part, "sweeps", format!("{} scopes were read whole when they were last swept", scopes.len() - never))
}

/// Who reports.
pub(super) async fn agents(store: &Store) -> Vec<Check> {
    let part = Part::Agents;
    let (nodes, now) = match (store.nodes().await, store.now().await) {
        (Ok(nodes), Ok(now)) => (nodes, now),
        (Err(error), _) | (_, Err(error)) => {
            return vec![Check::new(part, "nodes", Status::Broken, crate::chain(&error), "")];
        }
    };
    let nodes: Vec<_> = nodes.into_iter().filter(|node| node.revoked_at.is_none()).collect();
    if nodes.is_empty() {
        let remedy = "put an agent on a machine (README.md), and `node-agent doctor` there";
        return vec![Check::off(part, "nodes", "no agent has joined", remedy)];
    }
    let is_heard = |seen: Option<Timestamp>| seen.is_some_and(|seen| now.duration_since(seen) < REPORTS);
    let heard = nodes.iter().filter(|node| is_heard(node.last_seen_at)).count();
    let found = format!("{heard} of {} were heard of within {}", nodes.len(), span(REPORTS));
    let status = if heard == nodes.len() { Status::Ok } else { Status::Warning };
    let remedy = if heard == nodes.len() { "" } else { "sweeper nodes; `node-agent doctor` on a silent one" };
    let mut all = vec![Check::new(part, "nodes", status, found, remedy)];
    let many = |name: &str, count: usize, what: &str, remedy: &str| {
        (count > 0).then(|| Check::new(part, name, Status::Warning, format!("{what} of {count}"), remedy))
    };
    let refused = nodes.iter().filter_map(|node| node.refused.as_ref()).collect::<Vec<_>>();
    let why = refused.first().map(|(_, why)| format!("the heartbeats are refused ({why})"));
    all.extend(many("refused", refused.len(), &why.unwrap_or_default(), "sweeper nodes"));
    let disputed = nodes.iter().filter(|node| node.disputed.is_some()).count();
    all.extend(many("disputed", disputed, "the identity is disputed", "sweeper nodes settle, or revoke"));
    let unproven = nodes.iter().filter(|node| !node.attestation.is_attested()).count();
    all.extend(many(
        "not attested",
        unproven,
        "nothing proves the identity",
        "no plan is made for them: have them join by their cloud's own proof, or by a token of their own (docs/operations.md)",
    ));
    all
}
