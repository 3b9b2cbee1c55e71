//! What somebody asks by the slash command. Pure.
//!
//! Anybody of the workspace can type it, in any channel, with any text: who that is, and whether they may, is the caller's to find out. Of the text only known words
//! and ids of the right form are kept, so that nothing of it is ever shown again; what is not understood asks for help.
//! <https://docs.slack.dev/interactivity/implementing-slash-commands>

use slack_morphism::prelude::SlackCommandEvent;
use url::Url;

use super::{people::Account, reply::Reply};

/// The command, as the app's manifest names it.
pub const COMMAND: &str = "/sweeper";
/// Longest text that is read, in bytes: a word and a hash need 72.
const TEXT_LIMIT: usize = 200;
/// Slack's ids have eleven characters, and may get longer.
const ID_LIMIT: usize = 32;
/// What a finding's id begins with, and how many digits may follow.
const FINDING: (&str, std::ops::RangeInclusive<usize>) = ("f-", 1..=12);
/// How many digits of its hash name a plan, as in the shell.
const PLAN_DIGITS: std::ops::RangeInclusive<usize> = 4..=64;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// What is open.
    Findings,
    /// One finding with its evidence.
    Explain {
        /// Its id, or the beginning of it: `f-` and hexadecimal digits.
        finding: String,
    },
    /// What would be done.
    Plans,
    /// One plan, with the buttons by which it is approved.
    Approve {
        /// Its content hash, or the beginning of it: at least four hexadecimal digits.
        plan: String,
    },
    /// What was saved.
    Savings,
    /// What can be asked, or something that is not understood.
    Help,
}

/// What somebody asked by the slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Whose account it was, in the workspace in which it was typed.
    pub account: Account,
    /// What they asked.
    pub asked: Asked,
    /// Where they are answered, and nobody else.
    pub reply: Reply,
}

/// What a request's fields say; none if it is no command of ours.
pub(super) fn of_fields<'a>(field: impl Fn(&str) -> Option<std::borrow::Cow<'a, str>>) -> Option<Command> {
    let url = Url::parse(&field("response_url")?).ok()?;
    let text = field("text").unwrap_or_default();
    command(&field("command")?, &field("team_id")?, &field("user_id")?, &text, url)
}

/// The same of what a socket says.
pub(super) fn of_event(event: SlackCommandEvent) -> Option<Command> {
    let text = event.text.unwrap_or_default();
    command(&event.command.0, &event.team_id.0, &event.user_id.0, &text, event.response_url.0)
}

fn command(command: &str, team: &str, user: &str, text: &str, url: Url) -> Option<Command> {
    let is_id = |id: &str| (1..=ID_LIMIT).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if command != COMMAND || !is_id(team) || !is_id(user) {
        return None;
    }
    let account = Account { team: team.to_owned(), user: user.to_owned() };
    Some(Command { account, asked: asked(text), reply: Reply::at(url)? })
}

fn asked(text: &str) -> Asked {
    if text.len() > TEXT_LIMIT {
        return Asked::Help;
    }
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match words.as_slice() {
        ["findings"] => Asked::Findings,
        ["plans"] => Asked::Plans,
        ["savings"] => Asked::Savings,
        ["explain", id] => {
            let (lead, digits) = FINDING;
            match id.strip_prefix(lead).filter(|rest| digits.contains(&rest.len()) && is_hex(rest)) {
                Some(_) => Asked::Explain { finding: (*id).to_owned() },
                None => Asked::Help,
            }
        }
        ["approve", hash] if PLAN_DIGITS.contains(&hash.len()) && is_hex(hash) => {
            Asked::Approve { plan: (*hash).to_owned() }
        }
        _ => Asked::Help,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const URL: &str = "https://hooks.slack.com/commands/T0LAB1/1/x";

    fn typed(text: &str) -> Asked {
        asked(text)
    }

    #[test]
    fn words_and_ids_are_understood_as_people_type_them() {
        assert_eq!(typed("findings"), Asked::Findings);
        assert_eq!(typed("  Plans \n"), Asked::Plans);
        assert_eq!(typed("SAVINGS"), Asked::Savings);
        assert_eq!(typed("help"), Asked::Help);
        assert_eq!(typed(""), Asked::Help);
        assert_eq!(typed("explain  F-3F9A"), Asked::Explain { finding: "f-3f9a".to_owned() });
        assert_eq!(typed("explain f-0123456789ab"), Asked::Explain { finding: "f-0123456789ab".to_owned() });
        assert_eq!(typed("approve 5d0F66e0"), Asked::Approve { plan: "5d0f66e0".to_owned() });
        assert_eq!(typed(&format!("approve {}", "5d".repeat(32))), Asked::Approve { plan: "5d".repeat(32) });
    }

    #[test]
    fn what_is_not_understood_asks_for_help() {
        for text in [
            "explain",
            "explain f-",
            "explain f-0123456789abc",
            "explain 3f9a",
            "explain f-3f%",
            "explain f-3f9a f-3f9b",
            "explain <!channel>",
            "approve",
            "approve 5d0",
            "approve 5d0_",
            "approve ../../etc/passwd",
            "approve 5d0f66e0 --because you",
            "deny 5d0f66e0",
            "findings now",
            "`findings`",
            &"findings".repeat(1_000),
            &format!("findings{}", " ".repeat(200)),
            &format!("approve {}", "5d".repeat(33)),
        ] {
            assert_eq!(typed(text), Asked::Help, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_kept_but_ids(text in "(explain|approve) [ -~\u{a0}-\u{2fff}]{0,80}|.{0,250}") {
            let kept = match asked(&text) {
                Asked::Explain { finding } => finding.strip_prefix("f-").unwrap().to_owned(),
                Asked::Approve { plan } => plan,
                _ => String::new(),
            };
            prop_assert!(kept.len() <= 64 && kept.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn only_a_command_of_this_name_by_somebody_who_is_named_is_one() {
        let of = |name: &str, team: &str, user: &str, url: &str| {
            let fields = [("command", name), ("team_id", team), ("user_id", user), ("response_url", url)];
            of_fields(|field| fields.iter().find(|(name, _)| *name == field).map(|(_, value)| (*value).into()))
        };
        let command = of("/sweeper", "T0LAB1", "U0ADA1", URL).unwrap();
        assert_eq!((command.account.to_string().as_str(), command.asked), ("T0LAB1/U0ADA1", Asked::Help));
        assert_eq!(format!("{:?}", command.reply), "Reply", "whoever has the address may answer");
        assert_eq!(of("/other", "T0LAB1", "U0ADA1", URL), None);
        assert_eq!(of("/sweeper", "", "U0ADA1", URL), None);
        assert_eq!(of("/sweeper", "T0LAB1", "U0/ADA", URL), None);
        assert_eq!(of("/sweeper", "T0LAB1", "U0ADA1", "no address"), None);
        assert_eq!(of("/sweeper", "T0LAB1", "U0ADA1", &format!("{URL}{}", "x".repeat(500))), None);
    }
}
