//! `sweeper replay --verdicts`: what every node would have been judged at each quarter of an hour, by this version under this configuration.

use super::{FAILED, Output, open_existing, progress::Count, screen};
use crate::{config::Config, sweep::judge_at, verdict::words};
use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use model::Verdict;
use screen::{BOLD, DIM, WARN, plain};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::Path, process::ExitCode};

/// So often each node is judged, in seconds. Multiples of it, so that two runs judge the same moments.
const EACH_S: i64 = 900;
/// So many differences are shown to people.
const SHOWN: usize = 20;

/// What `--output json` shows, and `--against` reads.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Verdicts {
    /// The version that judged.
    version: String,
    /// By node.
    nodes: BTreeMap<String, BTreeMap<Timestamp, Judged>>,
}

/// One verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Judged {
    verdict: Verdict,
    /// What decided, in words.
    why: String,
}

/// What two runs say of the same moments.
#[derive(Debug, Default, Serialize)]
struct Compared {
    /// The version that the file is of, and this one.
    versions: [String; 2],
    /// So many moments of nodes are in both.
    compared: usize,
    /// Those that are judged otherwise: what becomes idle first.
    different: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Difference {
    node: String,
    at: Timestamp,
    before: Judged,
    now: Judged,
}

pub(super) async fn verdicts(config: &Config, against: Option<&Path>, output: Output) -> anyhow::Result<ExitCode> {
    let before = against.map(read).transpose()?;
    let judged = judge(config, Timestamp::now()).await?;
    let Some(before) = before else {
        match output {
            Output::Json => screen::json(&judged)?,
            Output::Table => screen::print(&summary(&judged)),
        }
        return Ok(ExitCode::SUCCESS);
    };
    let compared = compare(before, &judged);
    match output {
        Output::Json => screen::json(&compared)?,
        Output::Table => screen::print(&told(&compared)),
    }
    Ok(if compared.different.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn read(path: &Path) -> anyhow::Result<Verdicts> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not what `sweeper replay --verdicts --output json` writes", path.display()))
}

/// Judges every node at each of the moments of which a whole look-back is kept.
async fn judge(config: &Config, now: Timestamp) -> anyhow::Result<Verdicts> {
    let store = open_existing(config).await?;
    let lookback = SignedDuration::try_from(config.verdict.lookback)?;
    let kept = config.store.heartbeat_retention.saturating_sub(config.verdict.lookback);
    let all: Vec<Timestamp> = moments_between(now.checked_sub(SignedDuration::try_from(kept)?)?, now).collect();
    // So many that two look-backs of heartbeats are in memory, and each is read twice.
    let at_once = usize::try_from(lookback.as_secs() / EACH_S)?.max(1);
    let nodes = store.nodes().await?;
    let progress = Count::new("judging nodes", nodes.len());
    let mut judged = Verdicts { version: env!("CARGO_PKG_VERSION").to_owned(), ..Verdicts::default() };
    for node in nodes {
        let mut moments = BTreeMap::new();
        for some in all.chunks(at_once) {
            let (Some(first), Some(last)) = (some.first(), some.last()) else { continue };
            let heartbeats = store.heartbeats(&node.node_id, first.checked_sub(lookback)?, *last).await?;
            for at in some {
                let (case, judgement) = judge_at(config, *at, &heartbeats);
                // Before it joined there is nothing to judge.
                if case.node.is_some() {
                    let why = words::decision(&judgement, &case);
                    moments.insert(*at, Judged { verdict: judgement.verdict, why });
                }
            }
        }
        judged.nodes.insert(node.node_id.to_string(), moments);
        progress.one_more();
    }
    Ok(judged)
}

/// The multiples of a quarter of an hour from one moment on and up to another.
fn moments_between(from: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    let first = from.as_second().div_euclid(EACH_S) + 1;
    let last = until.as_second().div_euclid(EACH_S);
    (first..=last).filter_map(|number| Timestamp::from_second(number * EACH_S).ok())
}

fn compare(before: Verdicts, now: &Verdicts) -> Compared {
    let mut compared = Compared { versions: [before.version, now.version.clone()], ..Compared::default() };
    for (node, moments) in before.nodes {
        let Some(others) = now.nodes.get(&node) else { continue };
        for (at, before) in moments {
            let Some(now) = others.get(&at) else { continue };
            compared.compared += 1;
            if before.verdict != now.verdict {
                let (node, now) = (node.clone(), now.clone());
                compared.different.push(Difference { node, at, before, now });
            }
        }
    }
    // Who would stop a machine that was none before is what one has to see.
    compared.different.sort_by_key(|one| one.now.verdict != Verdict::Idle);
    compared
}

fn summary(judged: &Verdicts) -> String {
    let all = || judged.nodes.values().flat_map(BTreeMap::values);
    let mut by_verdict: BTreeMap<&str, usize> = BTreeMap::new();
    for one in all() {
        *by_verdict.entry(one.verdict.as_str()).or_default() += 1;
    }
    let each: Vec<_> = by_verdict.into_iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let each = if each.is_empty() { "no heartbeat is kept".to_owned() } else { each.join(", ") };
    format!(
        "{BOLD}{} of {}:{BOLD:#} {each}.\n{DIM}With --output json they are written, to be compared by another version or configuration (--against FILE).{DIM:#}",
        words::count(all().count(), "verdict", "verdicts"),
        words::count(judged.nodes.len(), "node", "nodes"),
    )
}

fn told(compared: &Compared) -> String {
    let mut lines: Vec<String> = Vec::new();
    for Difference { node, at, before, now } in compared.different.iter().take(SHOWN) {
        lines.push(format!(
            "{WARN}{}, {}{WARN:#}\n  before: {}, {}\n  now:    {}, {}",
            plain(node),
            words::time(at.as_millisecond()),
            before.verdict.as_str(),
            plain(&before.why),
            now.verdict.as_str(),
            plain(&now.why),
        ));
    }
    let more = compared.different.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("{DIM}and {more} more: --output json{DIM:#}"));
    }
    let idle = compared.different.iter().filter(|one| one.now.verdict == Verdict::Idle).count();
    let verdicts = words::count(compared.compared, "verdict", "verdicts");
    lines.push(match compared.different.len() {
        0 if compared.compared == 0 => "Nothing to compare: the file tells of no moment that is still kept.".to_owned(),
        0 => format!("{verdicts} compared: each is the same."),
        different => {
            format!("{verdicts} compared: {different} otherwise; {idle} of these are idle now and were not before.")
        }
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn two_runs_judge_the_same_moments() {
        let of = |from, until| moments_between(at(from), at(until)).map(Timestamp::as_second).collect::<Vec<_>>();
        assert_eq!(of(1_000, 2_700), [1_800, 2_700]);
        assert_eq!(of(900, 1_799), Vec::<i64>::new(), "the first may lack a part of its look-back");
        assert_eq!(of(899, 900), [900]);
    }

    #[test]
    fn what_becomes_idle_is_told_first_and_what_only_one_run_knows_is_not_compared() {
        let of = |node: &str, verdicts: &[(i64, Verdict)]| {
            let judged = |verdict| Judged { verdict, why: "why".to_owned() };
            let moments = verdicts.iter().map(|(second, verdict)| (at(*second), judged(*verdict))).collect();
            Verdicts { version: node.to_owned(), nodes: [("host:1".to_owned(), moments)].into() }
        };
        use Verdict::{Active, Idle, Unknown, Waiting};
        let before = of("1", &[(900, Active), (1_800, Idle), (2_700, Waiting), (3_600, Unknown)]);
        let now = of("2", &[(1_800, Unknown), (2_700, Idle), (3_600, Unknown), (4_500, Idle)]);
        let compared = compare(before, &now);
        assert_eq!((compared.compared, &compared.versions), (3, &["1".to_owned(), "2".to_owned()]));
        let different: Vec<_> = compared.different.iter().map(|one| (one.at, one.now.verdict)).collect();
        assert_eq!(different, [(at(2_700), Idle), (at(1_800), Unknown)]);
        let text = told(&compared);
        assert!(
            text.ends_with("3 verdicts compared: 2 otherwise; 1 of these are idle now and were not before."),
            "{text}"
        );
        let other = Verdicts { nodes: [("host:2".to_owned(), BTreeMap::new())].into(), ..Verdicts::default() };
        assert_eq!(compare(other, &now).compared, 0);
    }
}
