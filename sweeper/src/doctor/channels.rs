//! What people are told by.

use super::{Check, Part, Status};
use crate::{config::Config, outbox};
use notifier::{
    SendError,
    slack::{Slack, Socket},
};

const NO_TEST: &str = "`sweeper doctor --send-test` posts one message there";

fn failed(part: Part, name: &str, error: &SendError) -> Check {
    Check::new(part, name, Status::Broken, error.to_string(), "")
}

/// The token, what it may, the connection over which buttons are heard and, where a test is asked for, the channel.
pub(super) async fn slack(config: &Config, send_test: bool) -> Vec<Check> {
    let part = Part::Slack;
    let Some(settings) = outbox::slack(&config.slack) else {
        return vec![Check::off(part, "channel", "not configured", "set `slack.token` and `slack.channel`")];
    };
    let slack = match Slack::new(settings.clone()) {
        Ok(slack) => slack,
        Err(error) => return vec![Check::new(part, "settings", Status::Broken, crate::chain(&error), "")],
    };
    let mut all = vec![match slack.check().await {
        Ok(who) => Check::ok(part, "token", format!("speaks for {} in {} ({})", who.user, who.workspace, who.team)),
        Err(error) => return vec![failed(part, "token", &error)],
    }];
    all.push(match (&config.slack.app_token, &config.slack.signing_secret) {
        (Some(token), _) => match Socket::new(&settings, token) {
            Ok(socket) => match socket.check().await {
                Ok(()) => Check::ok(part, "buttons", "heard over Socket Mode"),
                Err(error) => failed(part, "buttons", &error),
            },
            Err(error) => Check::new(part, "buttons", Status::Broken, crate::chain(&error), ""),
        },
        (None, Some(_)) => Check::off(
            part,
            "buttons",
            "heard by Slack's requests; whether Slack reaches this sweeper is not known here",
            "press one, or type `/sweeper help`",
        ),
        (None, None) => {
            Check::off(part, "buttons", "none in messages", "set `slack.app_token` or `slack.signing_secret`")
        }
    });
    for channel in channels(config) {
        all.push(if send_test {
            match slack.post_test(Some(channel)).await {
                Ok(receipt) => Check::ok(part, channel, receipt.said),
                Err(error) => failed(part, channel, &error),
            }
        } else {
            Check::off(part, channel, "whether the app may post there is not known", NO_TEST)
        });
    }
    all
}

/// The channel for all, and those of teams, each once.
fn channels(config: &Config) -> Vec<&str> {
    let of_teams =
        config.slack.teams.iter().flat_map(|team| {
            [Some(team.channel.as_str()), team.channel_outside_hours.as_deref()].into_iter().flatten()
        });
    let mut all: Vec<&str> = Vec::new();
    for channel in config.slack.channel.as_deref().into_iter().chain(of_teams) {
        if !all.contains(&channel) {
            all.push(channel);
        }
    }
    all
}

/// The mail server's connection, its certificate and the login; where a test is asked for, a mail.
pub(super) async fn email(config: &Config, send_test: bool) -> Vec<Check> {
    let part = Part::Email;
    let mailer = match outbox::mailer(&config.email) {
        Ok(Some(mailer)) => mailer,
        Ok(None) => {
            let remedy = "set `email.host`, `email.from` and `email.to`";
            return vec![Check::off(part, "server", "not configured", remedy)];
        }
        Err(error) => return vec![Check::new(part, "settings", Status::Broken, crate::chain(&error), "")],
    };
    let mut all = vec![match mailer.check().await {
        Ok(()) => Check::ok(part, "server", "takes the connection and the login"),
        Err(error) => return vec![failed(part, "server", &error)],
    }];
    all.push(if send_test {
        match mailer.send_test().await {
            Ok(receipt) => Check::ok(part, "recipients", format!("a test was taken: {}", receipt.said)),
            Err(error) => failed(part, "recipients", &error),
        }
    } else {
        Check::off(part, "recipients", "whether the server takes mail for them is not known", NO_TEST)
    });
    all
}
