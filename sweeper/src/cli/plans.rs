//! `sweeper plans`, `approve` and `deny`: what would be done, and who said what of it.

use super::{
    FAILED, Output, actions, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    approvals::{self, Answer, Given, Tally},
    config::Config,
    store::{Direction, Doer, Store, TokenHash},
    verdict::words,
};
use anyhow::Context as _;
use jiff::Timestamp;
use model::{
    ResourceKey,
    plan::{ContentHash, Plan, Saving},
};
use serde::Serialize;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Fewer digits of a hash name nothing.
const LEAST_DIGITS: usize = 4;
/// Holds an approver's token.
const TOKEN: &str = "SWEEPER_APPROVER_TOKEN";

/// Who answers, and what.
#[derive(Debug, clap::Args)]
pub(super) struct Said {
    /// The plan's content hash, or as much of its beginning as is unique
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Why; kept with the answer
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// File that holds your token, as `sweeper approvers token` printed it [default: the variable SWEEPER_APPROVER_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The same of a yes.
#[derive(Debug, clap::Args)]
pub(super) struct Approval {
    #[command(flatten)]
    said: Said,
    /// Wait until it has been carried out, or has come to nothing, and say how it ended
    #[arg(long)]
    wait: bool,
}

/// Which action is undone, and by whom.
#[derive(Debug, clap::Args)]
pub(super) struct Undone {
    /// The plan's content hash, or as much of its beginning as is unique
    #[arg(value_name = "PLAN")]
    plan: String,
    /// File that holds your token, as `sweeper approvers token` printed it [default: the variable SWEEPER_APPROVER_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Wait until the machine runs again, and say how it ended
    #[arg(long)]
    wait: bool,
}

/// One line of the list.
#[derive(Serialize)]
struct Line {
    plan: ContentHash,
    finding: String,
    title: String,
    saving: Option<String>,
    valid_until: Timestamp,
    answers: Vec<Given>,
    /// Why nobody can approve it, and what to set; null if somebody can, or nobody knows.
    nobody_may: Option<String>,
}

pub(super) async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let plans: Vec<Plan> = store.open_findings().await?.into_iter().filter_map(|finding| finding.plan).collect();
    let hashes: Vec<String> = plans.iter().map(|plan| plan.content_hash().to_string()).collect();
    let mut answers = store.answers(&hashes).await?;
    let nobody_may = nobody_may(config, &store, &plans).await?;
    let line = |((plan, hash), nobody_may): ((&Plan, String), Option<String>)| Line {
        finding: plan.content().finding.clone(),
        title: plan.content().title.clone(),
        saving: saving(plan),
        valid_until: plan.valid_until(),
        answers: answers.remove(&hash).unwrap_or_default(),
        plan: plan.content_hash().clone(),
        nobody_may,
    };
    let lines: Vec<Line> = plans.iter().zip(hashes).zip(nobody_may).map(line).collect();
    match output {
        Output::Json => screen::json(&lines)?,
        Output::Table if lines.is_empty() => screen::print("No plans."),
        Output::Table => {
            let mut table = bare_table(["PLAN", "FINDING", "WHAT", "SAVES", "VALID UNTIL", "ANSWERS"]);
            for line in &lines {
                table.add_row([
                    line.plan.short().to_owned(),
                    line.finding.clone(),
                    screen::plain(&line.title),
                    line.saving.clone().unwrap_or_else(|| "not known".to_owned()),
                    words::time(line.valid_until.as_millisecond()),
                    said(&line.answers),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
            for line in &lines {
                if let Some(why) = &line.nobody_may {
                    screen::print(&screen::plain(&format!("Nobody may approve {}: {why}.", line.plan.short())));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Of each plan why nobody can approve it; not known of any if the policy cannot be read.
async fn nobody_may(config: &Config, store: &Store, plans: &[Plan]) -> anyhow::Result<Vec<Option<String>>> {
    let policy = match config.approvals.policy() {
        Ok((policy, _)) => Some(policy),
        Err(error) => {
            screen::error(&crate::chain(&error));
            None
        }
    };
    let mut all = Vec::new();
    for plan in plans {
        let Some(policy) = &policy else {
            all.push(None);
            continue;
        };
        let tags_before = store.tags_before(plan).await?;
        all.push(approvals::nobody_may(&config.approvals, policy, plan, tags_before.as_ref()));
    }
    Ok(all)
}

fn saving(plan: &Plan) -> Option<String> {
    match &plan.content().net_saving {
        Saving::Known { per_hour, .. } => Some(per_hour.to_string()),
        Saving::Unknown { .. } => None,
    }
}

fn said(answers: &[Given]) -> String {
    let each = answers.iter().map(|one| {
        let word = match one.answer {
            Answer::Approve => "yes",
            Answer::Deny => "no",
        };
        format!("{word} of {}", screen::plain(&one.approver))
    });
    let each: Vec<_> = each.collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

pub(super) async fn approve(config: &Config, approval: &Approval) -> anyhow::Result<ExitCode> {
    answer(config, &approval.said, Answer::Approve, approval.wait).await
}

pub(super) async fn deny(config: &Config, said: &Said) -> anyhow::Result<ExitCode> {
    answer(config, said, Answer::Deny, false).await
}

pub(super) async fn undo(config: &Config, undone: &Undone) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let Some(by) = who(&store, undone.token_file.as_deref()).await? else { return Ok(ExitCode::from(FAILED)) };
    let Some(plan) = plan(&store, &undone.plan).await? else { return Ok(ExitCode::from(FAILED)) };
    match store.undo(&plan, &by).await? {
        Ok(_) if undone.wait => actions::wait(&store, plan.content_hash(), Direction::Undo).await,
        Ok(_) => {
            let name = screen::plain(plan.content().resource.id.as_str());
            screen::print(&format!(
                "{name} is started again, as soon as `sweeper serve` sees it; `sweeper actions` shows how far it is."
            ));
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            screen::error(&why.to_string());
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// Whoever has the token; none, with an error on the screen, if it is nobody's.
pub(super) async fn who(store: &Store, token_file: Option<&Path>) -> anyhow::Result<Option<Doer>> {
    let token = token(token_file)?;
    let Some(who) = store.approver_by_token(&TokenHash::of(token.trim())).await? else {
        screen::error("the token is nobody's, or has expired; `sweeper approvers token NAME` makes one");
        return Ok(None);
    };
    Ok(Some(Doer { who, way: "shell" }))
}

async fn answer(config: &Config, said: &Said, answer: Answer, wait: bool) -> anyhow::Result<ExitCode> {
    let (policy, policy_sha256) = config.approvals.policy()?;
    let store = open_existing(config).await?;
    let Some(by) = who(&store, said.token_file.as_deref()).await? else { return Ok(ExitCode::from(FAILED)) };
    let Some(plan) = plan(&store, &said.plan).await? else { return Ok(ExitCode::from(FAILED)) };
    let because = said.because.as_deref();
    match store.answer(plan.content_hash(), answer, because, &by, (&policy, &policy_sha256)).await? {
        Ok(tally) => {
            screen::print(&screen::plain(&told(config, &plan, answer, &tally)));
            if wait && tally.is_approved() {
                return actions::wait(&store, plan.content_hash(), Direction::Do).await;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            screen::error(&why.to_string());
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn told(config: &Config, plan: &Plan, answer: Answer, tally: &Tally) -> String {
    let title = &plan.content().title;
    match (answer, tally.needs) {
        (Answer::Deny, _) => {
            let alone = tally.snoozed_until.map_or_else(String::new, |until| {
                let until = words::time(until.as_millisecond());
                format!(" It is left alone until {until}, as the policy says; `sweeper exemptions` lists it.")
            });
            format!("Denied: {title}. Nobody can approve this plan any more.{alone}")
        }
        (Answer::Approve, _) if tally.is_approved() => {
            let ResourceKey { account, location, .. } = &plan.content().resource;
            if config.act.may_carry_out(plan) {
                format!("Approved: {title}. `sweeper serve` carries it out; `sweeper actions` shows how far it is.")
            } else {
                format!(
                    "Approved: {title}. A dry run is all that is done: acting is not switched on for {account}:{location} (`act.scopes`)."
                )
            }
        }
        (Answer::Approve, needs) => format!(
            "Approved by {} of {}: {title}.",
            tally.approved_by.len(),
            needs.map_or_else(|| "an unknown number".to_owned(), |needs| needs.to_string())
        ),
    }
}

/// The token: a file's text, or a variable's. Never an argument, which every user of the host can read.
fn token(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display())),
        None => env::var(TOKEN).with_context(|| {
            format!(
                "who are you? Set {TOKEN}, or name a file by --token-file; `sweeper approvers token NAME` makes one"
            )
        }),
    }
}

/// The plan whose hash begins like this; none, with an error on the screen, if there is none or more than one.
pub(super) async fn plan(store: &Store, prefix: &str) -> anyhow::Result<Option<Plan>> {
    let prefix = prefix.to_ascii_lowercase();
    let is_long = prefix.len() >= LEAST_DIGITS && prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut found = if is_long { store.plans_by_prefix(&prefix).await? } else { Vec::new() };
    if let [first, second, ..] = found.as_slice() {
        let (first, second) = (first.content_hash(), second.content_hash());
        screen::error(&format!("`{prefix}` is not unique: {first} and {second} begin like this"));
        return Ok(None);
    }
    if found.is_empty() {
        let prefix = screen::plain(&prefix);
        screen::error(&format!(
            "there is no plan `{prefix}`; `sweeper plans` lists them, and {LEAST_DIGITS} digits at least name one"
        ));
    }
    Ok(found.pop())
}
