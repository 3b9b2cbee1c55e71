//! `slack.teams`: whose findings are told in which channel.

use super::SlackConfig;
use guards::policy::Hours;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which findings are a team's, and where it is told of them. All that it names must hold, and one of each list; one that names nothing is everybody's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlackTeam {
    /// What people call it.
    pub name: String,
    /// Name or id of its channel.
    pub channel: String,
    /// The resource carries all of these tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// One of these owns it, by its tags; upper and lower case are one.
    #[serde(default)]
    pub owners: Vec<String>,
    /// One of these started the machine or submitted the job: the whole principal, or its end behind a `/` or `:`; `*` is any text.
    #[serde(default)]
    pub launchers: Vec<String>,
    /// It is in one of these accounts or projects.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// When its channel is read; at any time if left out.
    #[serde(default)]
    pub hours: Option<Hours>,
    /// The channel of all other times: of whoever may decide then.
    #[serde(default)]
    pub channel_outside_hours: Option<String>,
}

impl SlackTeam {
    /// Whether it asks for nothing, and so is about every finding.
    #[must_use]
    pub fn is_everybodys(&self) -> bool {
        self.tags.is_empty() && self.owners.is_empty() && self.launchers.is_empty() && self.accounts.is_empty()
    }

    /// Whether a moment is outside its hours.
    #[must_use]
    pub fn is_outside_hours(&self, at: Timestamp) -> bool {
        self.hours.as_ref().is_some_and(|hours| !hours.hold(at))
    }

    /// The channel in which it is told at a moment.
    #[must_use]
    pub fn channel_at(&self, at: Timestamp) -> &str {
        self.channel_outside_hours.as_deref().filter(|_| self.is_outside_hours(at)).unwrap_or(&self.channel)
    }

    /// The key of the first thing that cannot work, and why.
    fn wrong(&self) -> Option<(&'static str, String)> {
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return Some(("name", "is empty or has control characters; say what people call the team".to_owned()));
        }
        let channels =
            [("channel", Some(&self.channel)), ("channel_outside_hours", self.channel_outside_hours.as_ref())];
        for (key, channel) in channels {
            match channel.map(|channel| (notifier::slack::channel(channel), channel)) {
                Some((Err(error), _)) => return Some((key, error.to_string())),
                Some((Ok(clean), written)) if clean != *written => {
                    return Some((
                        key,
                        format!("has blanks around it, or characters that nobody sees; write `{clean}`"),
                    ));
                }
                _ => {}
            }
        }
        let lists = [("owners", &self.owners), ("launchers", &self.launchers), ("accounts", &self.accounts)];
        if let Some((key, _)) = lists.iter().find(|(_, list)| list.iter().any(|text| text.trim().is_empty())) {
            return Some((key, "has an empty text, which nothing is like; leave it out".to_owned()));
        }
        if self.tags.keys().any(String::is_empty) {
            return Some(("tags", "has an empty key; tags have none".to_owned()));
        }
        match (&self.hours, &self.channel_outside_hours) {
            (Some(_), None) => {
                Some(("channel_outside_hours", "is needed, because `hours` is set: name who is told then".to_owned()))
            }
            (None, Some(_)) => Some((
                "hours",
                "is needed, because `channel_outside_hours` is set: say when `channel` is read".to_owned(),
            )),
            (Some(hours), Some(_)) if hours.days.is_empty() => Some((
                "hours.days",
                "is empty, so that `channel` would never be used; name days such as \"mon\"".to_owned(),
            )),
            _ => None,
        }
    }
}

impl SlackConfig {
    /// The first key of its teams that cannot work, and why.
    pub(super) fn wrong_team(&self) -> Option<(String, String)> {
        for (n, team) in self.teams.iter().enumerate() {
            if let Some((key, reason)) = team.wrong() {
                return Some((format!("slack.teams[{n}].{key}"), reason));
            }
            if let Some(other) = self.teams[..n].iter().position(|other| other.name == team.name) {
                let reason =
                    format!("is `{}`, as that of `slack.teams[{other}]` is; give each another name", team.name);
                return Some((format!("slack.teams[{n}].name"), reason));
            }
            if let Some(before) = self.teams[..n].iter().find(|before| before.is_everybodys()) {
                let reason = format!(
                    "comes behind `{}`, which asks for nothing and so takes every finding; put that one last",
                    before.name
                );
                return Some((format!("slack.teams[{n}]"), reason));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: &str = "name = \"genomics\"\nchannel = \"#genomics\"\n";
    const HOURS: &str = "hours = { days = [\"mon\"], from = \"08:00\", to = \"18:00\", zone = \"Europe/Berlin\" }\n";

    fn wrong(teams: &[String]) -> Option<String> {
        let teams = teams.iter().map(|team| toml::from_str(team).expect("a team")).collect();
        SlackConfig { teams, ..SlackConfig::default() }.wrong_team().map(|(key, _)| key)
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_key() {
        let with = |more: &str| wrong(&[format!("{TEAM}{more}")]);
        let outside = "channel_outside_hours = \"#on-call\"\n";
        assert_eq!(with("tags = { team = \"genomics\" }"), None);
        assert_eq!(with(&format!("{HOURS}{outside}")), None);
        for (more, key) in [
            (HOURS.to_owned(), "channel_outside_hours"),
            (outside.to_owned(), "hours"),
            (format!("{}{outside}", HOURS.replace("\"mon\"", "")), "hours.days"),
            ("channel_outside_hours = \" \\u200b\"\n".to_owned() + HOURS, "channel_outside_hours"),
            ("owners = [\"ada\", \" \"]".to_owned(), "owners"),
            ("launchers = [\"\"]".to_owned(), "launchers"),
            ("accounts = [\"\"]".to_owned(), "accounts"),
            ("tags = { \"\" = \"x\" }".to_owned(), "tags"),
        ] {
            assert_eq!(with(&more), Some(format!("slack.teams[0].{key}")), "{more}");
        }
        for (text, key) in [("name = \"\"\nchannel = \"#c\"", "name"), ("name = \"n\"\nchannel = \"\"", "channel")] {
            assert_eq!(wrong(&[text.to_owned()]), Some(format!("slack.teams[0].{key}")), "{text}");
        }
        let (owned, other) = (format!("{TEAM}owners = [\"ada\"]"), "name = \"n\"\nchannel = \"#c\"".to_owned());
        assert_eq!(wrong(&[owned.clone(), TEAM.to_owned()]).as_deref(), Some("slack.teams[1].name"));
        assert_eq!(wrong(&[other.clone(), owned.clone()]).as_deref(), Some("slack.teams[1]"), "nothing reaches it");
        assert_eq!(wrong(&[owned, other]), None);
    }
}
