//! `sweeper approvers`: who may decide about plans, and what each of them is known by.

use super::{
    FAILED, Output, Printed,
    nodes::operator,
    open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    api,
    config::{Config, duration},
    store::{Doer, NotEnrolled, TokenHash},
    verdict::words,
};
use anyhow::Context as _;
use std::{process::ExitCode, time::Duration};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Let somebody decide about plans, as far as the policy does
    #[command(after_help = "Example:\n  sweeper approvers add ada --slack T0123ABCD/U0456EFGH")]
    Add {
        /// Name by which the policy and the audit log call them
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
        /// Their account of Slack, `TEAM/USER` by ids: names can be changed
        #[arg(long, value_name = "TEAM/USER", value_parser = account)]
        slack: Option<String>,
    },
    /// Tie an account of Slack to somebody who is enrolled
    #[command(after_help = "Example:\n  sweeper approvers link ada T0123ABCD/U0456EFGH")]
    Link {
        /// As `sweeper approvers` lists them
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
        /// `TEAM/USER`, by ids
        #[arg(value_name = "TEAM/USER", value_parser = account)]
        slack: String,
    },
    /// Make a token for somebody, and print it
    #[command(after_help = "\
Examples:
  sweeper approvers token ada > token
  sweeper approvers token ada --expires 12h

It is shown here and nowhere else: the database keeps its SHA-256 alone. Whoever has it can approve in their name.")]
    Token {
        /// As `sweeper approvers` lists them
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
        /// How long it is good for
        #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = duration::parse)]
        expires: Duration,
        #[command(flatten)]
        printed: Printed,
    },
    /// Take somebody off the list, with all accounts and tokens; what they approved and was not done yet counts no more
    #[command(after_help = "Example:\n  sweeper approvers remove ada")]
    Remove {
        /// As `sweeper approvers` lists them
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
    },
}

/// A name that is the same to everybody who reads it.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '@');
    if (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("a name has up to 64 of a to z, 0 to 9, `.`, `-`, `_` and `@`".to_owned())
    }
}

/// Ids of Slack: `T…` or `E…` of a team, `U…` or `W…` of a user.
fn account(text: &str) -> Result<String, String> {
    let is_id = |id: &str, first: &[char]| {
        id.starts_with(first) && id.len() > 5 && id.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    match text.split_once('/') {
        Some((team, user)) if is_id(team, &['T', 'E']) && is_id(user, &['U', 'W']) => Ok(text.to_owned()),
        _ => Err("an account is `TEAM/USER` by ids, for example T0123ABCD/U0456EFGH".to_owned()),
    }
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    let by = Doer { who: operator(), way: "command" };
    match question.command {
        None => list(config, question.printed.output).await,
        Some(Command::Add { name, slack }) => add(config, &name, slack.as_deref(), &by).await,
        Some(Command::Link { name, slack }) => {
            let linked = open_existing(config).await?.link_account(&name, &slack, &by).await?;
            Ok(said(linked, |()| format!("{slack} is {name}'s account.")))
        }
        Some(Command::Token { name, expires, printed }) => token(config, &name, expires, printed.output, &by).await,
        Some(Command::Remove { name }) => {
            let removed = open_existing(config).await?.remove_approver(&name, &by).await?;
            Ok(said(removed, |()| format!("{name} may decide about nothing any more.")))
        }
    }
}

fn said<T>(done: Result<T, NotEnrolled>, words: impl FnOnce(T) -> String) -> ExitCode {
    match done {
        Ok(done) => {
            screen::print(&screen::plain(&words(done)));
            ExitCode::SUCCESS
        }
        Err(why) => {
            screen::error(&why.to_string());
            ExitCode::from(FAILED)
        }
    }
}

async fn add(config: &Config, name: &str, slack: Option<&str>, by: &Doer) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    if let Err(why) = store.enrol(name, by).await? {
        return Ok(said::<()>(Err(why), |()| String::new()));
    }
    if let Some(slack) = slack
        && let Err(why) = store.link_account(name, slack, by).await?
    {
        screen::error(&format!("{name} is enrolled, and has no account of Slack yet: {why}"));
        return Ok(ExitCode::from(FAILED));
    }
    screen::print(&format!("{name} is enrolled. What they may approve the policy says: `sweeper policy test`."));
    Ok(ExitCode::SUCCESS)
}

async fn token(config: &Config, name: &str, expires: Duration, output: Output, by: &Doer) -> anyhow::Result<ExitCode> {
    let token = api::approver_token().context("the system gave no random bytes")?;
    let kept = open_existing(config).await?.keep_approver_token(name, &TokenHash::of(&token), expires, by).await?;
    Ok(match (kept, output) {
        (Err(why), _) => said::<()>(Err(why), |()| String::new()),
        (Ok(end), Output::Json) => {
            screen::json(&serde_json::json!({ "token": token, "approver": name, "expires_at": end }))?;
            ExitCode::SUCCESS
        }
        (Ok(_), Output::Table) => {
            screen::print(&token);
            ExitCode::SUCCESS
        }
    })
}

async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let approvers = open_existing(config).await?.approvers().await?;
    match output {
        Output::Json => screen::json(&approvers)?,
        Output::Table if approvers.is_empty() => {
            screen::print(
                "Nobody is enrolled, so nobody can approve anything. `sweeper approvers add NAME` enrols somebody.",
            );
        }
        Output::Table => {
            let time = |at: jiff::Timestamp| words::time(at.as_millisecond());
            let mut table = bare_table(["NAME", "SINCE", "SLACK", "TOKENS"]);
            for one in &approvers {
                let tokens = one.tokens.iter().map(|token| {
                    let used = token.used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {}", time(at)));
                    format!("until {}, {used}", time(token.expires_at))
                });
                let tokens: Vec<_> = tokens.collect();
                let or_none = |texts: &[String]| if texts.is_empty() { "none".to_owned() } else { texts.join("\n") };
                table.add_row([one.name.clone(), time(one.enrolled_at), or_none(&one.accounts), or_none(&tokens)]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_accounts_are_ids() {
        for good in ["ada", "ada.lovelace@example.com", "a-1_b"] {
            assert_eq!(name(good), Ok(good.to_owned()));
        }
        for bad in ["", "Ada", "ada lovelace", "аda", "a\u{200B}", &"a".repeat(65), "*"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert!(account("T0123ABCD/U0456EFGH").is_ok() && account("E0123ABCD/W0456EFGH").is_ok());
        for bad in [
            "T0123ABCD",
            "U0456EFGH/T0123ABCD",
            "t0123abcd/u0456efgh",
            "T0123ABCD/ada",
            "T1/U1",
            "T0123ABCD/U0456EFGH/x",
        ] {
            assert!(account(bad).is_err(), "{bad}");
        }
    }
}
