//! `sweeper policy`: who may approve what, and when.

use super::{MISUSED, Output, Printed, open_existing, plans, screen};
use crate::config::{Config, read_policy};
use guards::policy::Asked;
use jiff::Timestamp;
use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Say whether a file is a policy; if not, exit with 2 and say line and reason
    #[command(after_help = "Example:\n  sweeper policy check /etc/cloud-sweeper/policy.toml")]
    Check {
        /// The policy
        file: PathBuf,
    },
    /// Say whether somebody may approve a plan now, by which rule, and how many must
    #[command(after_help = "\
Examples:
  sweeper policy test --as ada --plan 5d0f66e03c15
  sweeper policy test --as ada --plan 5d0f66e03c15 --at 2026-12-24T18:00:00Z

Nothing is approved by this.")]
    Test {
        /// Name of an approver
        #[arg(long = "as", value_name = "NAME")]
        who: String,
        /// The plan's content hash, or as much of its beginning as is unique
        #[arg(long, value_name = "PLAN")]
        plan: String,
        /// At this moment [default: now]
        #[arg(long, value_name = "TIME")]
        at: Option<Timestamp>,
        #[command(flatten)]
        printed: Printed,
    },
}

pub(super) async fn run(config: &Config, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { file } => Ok(match read_policy(file) {
            Ok((policy, _)) => {
                let rules = crate::verdict::words::count(policy.rules.len(), "rule", "rules");
                screen::print(&screen::plain(&format!("{}: accepted, {rules}", file.display())));
                ExitCode::SUCCESS
            }
            Err(why) => {
                screen::error(&crate::chain(&why));
                ExitCode::from(MISUSED)
            }
        }),
        Command::Test { who, plan, at, printed } => test(config, who, plan, *at, printed.output).await,
    }
}

async fn test(
    config: &Config,
    who: &str,
    plan: &str,
    at: Option<Timestamp>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let (policy, _) = config.approvals.policy()?;
    let store = open_existing(config).await?;
    let Some(plan) = plans::plan(&store, plan).await? else { return Ok(ExitCode::from(super::FAILED)) };
    let tags_before = store.tags_before(&plan).await?;
    let is_enrolled = store.approvers().await?.iter().any(|one| one.name == who);
    let at = at.unwrap_or_else(Timestamp::now);
    let asked = Asked { who, plan: &plan, tags_before: tags_before.as_ref(), at };
    let allowed = policy.may_approve(asked);
    let why = match &allowed {
        _ if !is_enrolled => Some(format!("{who} is not enrolled")),
        Ok(_) => None,
        Err(why) => Some(why.to_string()),
    };
    match (output, &allowed) {
        (Output::Json, _) => screen::json(&serde_json::json!({
            "plan": plan.content_hash(),
            "approver": who,
            "at": at,
            "allowed": why.is_none(),
            "why_not": why,
            "rule": allowed.as_ref().ok().map(|allowed| allowed.rule),
            "needs": allowed.as_ref().ok().map(|allowed| allowed.needs),
        }))?,
        (Output::Table, Ok(allowed)) if why.is_none() => {
            let needs = match allowed.needs {
                1 => "nobody else needs to".to_owned(),
                many => format!("{many} different people must"),
            };
            screen::print(&screen::plain(&format!("{who} may approve it, by the rule `{}`; {needs}.", allowed.rule)));
        }
        (Output::Table, _) => {
            screen::print(&screen::plain(&format!("{who} may not approve it: {}.", why.unwrap_or_default())));
        }
    }
    Ok(ExitCode::SUCCESS)
}
