//! Settings of digests: which there are, whose machines each is about, when it comes and to whom.

use chrono_tz::Tz;
use notifier::digest::Every;
use serde::{Deserialize, Serialize};

/// Longest name of a list: a label of a host's name, since it becomes a part of `List-Id`.
const LONGEST_NAME: usize = 40;

/// `[digest]`: summaries by mail, through the server that `[email]` names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DigestConfig {
    /// The lists; without one nothing is sent.
    pub lists: Vec<DigestList>,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
pub enum Weekday {
    #[default]
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// `[[digest.lists]]`: one digest, and who gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DigestList {
    /// What it is called: small letters, digits and hyphens.
    pub name: String,
    /// Whose machines it is about, as their tags name the owner; everyone's if neither this nor an account is named.
    pub owner: Option<String>,
    /// The account or project that it is about.
    pub account: Option<String>,
    /// Who gets it. Each address gets a mail of its own.
    pub to: Vec<String>,
    /// How often it comes.
    pub every: Every,
    /// On which day, if it comes each week.
    pub on: Weekday,
    /// At what time, by the clock of `timezone`.
    pub at: String,
    /// IANA name of the readers' time zone.
    pub timezone: String,
}

impl Default for DigestList {
    fn default() -> Self {
        Self {
            name: String::new(),
            owner: None,
            account: None,
            to: Vec::new(),
            every: Every::Week,
            on: Weekday::Monday,
            at: "08:00".to_owned(),
            timezone: "UTC".to_owned(),
        }
    }
}

impl DigestList {
    /// Hour and minute, if it is a time.
    fn time(&self) -> Option<(u8, u8)> {
        let (hour, minute) = self.at.split_once(':')?;
        let number = |text: &str, below: u8| {
            let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number| is_number && *number < below)
        };
        Some((number(hour, 24)?, number(minute, 60).filter(|_| minute.len() == 2)?))
    }

    /// When it comes, as a cron expression with a field for seconds in the zone of its readers.
    #[must_use]
    pub fn schedule(&self) -> String {
        // Checked when the configuration is read.
        let (hour, minute) = self.time().unwrap_or((8, 0));
        let day = match self.every {
            Every::Day => "*".to_owned(),
            // Cron counts from Sunday.
            Every::Week => ((self.on as u8 + 1) % 7).to_string(),
        };
        format!("0 {minute} {hour} * * {day}")
    }

    /// The zone of its readers.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.timezone.parse().unwrap_or(Tz::UTC)
    }

    /// The key of the first thing that cannot work, and why.
    fn wrong(&self) -> Option<(&'static str, String)> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=LONGEST_NAME).contains(&self.name.len())
            && self.name.bytes().all(plain)
            && !self.name.starts_with('-')
            && !self.name.ends_with('-');
        if !is_name {
            return Some((
                "name",
                format!("`{}` is not a name of small letters, digits and hyphens, such as \"everyone\"", self.name),
            ));
        }
        if self.owner.is_some() && self.account.is_some() {
            return Some(("account", "and `owner` are both set; keep one".to_owned()));
        }
        if self.owner.as_deref().is_some_and(|owner| owner.trim().is_empty()) {
            return Some(("owner", "is empty; leave it out for a digest about everyone's machines".to_owned()));
        }
        if self.to.is_empty() {
            return Some(("to", "is empty; name at least one address".to_owned()));
        }
        let mut addresses = Vec::new();
        for recipient in &self.to {
            match notifier::email::address(recipient) {
                Err(error) => return Some(("to", error.to_string())),
                Ok(address) if addresses.contains(&address) => return Some(("to", format!("names `{address}` twice"))),
                Ok(address) => addresses.push(address),
            }
        }
        if self.time().is_none() {
            return Some(("at", format!("`{}` is not a time of the day such as \"08:00\"", self.at)));
        }
        let is_zone = self.timezone.parse::<Tz>().is_ok();
        (!is_zone).then(|| {
            let reason = format!("`{}` is not an IANA time zone such as \"UTC\" or \"Europe/Berlin\"", self.timezone);
            ("timezone", reason)
        })
    }
}

impl DigestConfig {
    /// The list of this name.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&DigestList> {
        self.lists.iter().find(|list| list.name == name)
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(String, String)> {
        for (n, list) in self.lists.iter().enumerate() {
            if let Some((key, reason)) = list.wrong() {
                return Some((format!("digest.lists[{n}].{key}"), reason));
            }
            if let Some(other) = self.lists[..n].iter().position(|other| other.name == list.name) {
                let reason =
                    format!("is `{}`, as that of `digest.lists[{other}]` is; give each another name", list.name);
                return Some((format!("digest.lists[{n}].name"), reason));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> DigestList {
        DigestList { name: "everyone".into(), to: vec!["ops@example.org".into()], ..DigestList::default() }
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_key() {
        let with = |change: &dyn Fn(&mut DigestList)| {
            let mut one = list();
            change(&mut one);
            DigestConfig { lists: vec![one] }.wrong().map(|(key, _)| key)
        };
        assert_eq!(with(&|_| {}), None);
        let wrong = |key: &str| Some(format!("digest.lists[0].{key}"));
        for name in ["", "Everyone", "a b", "-a", "a-", "a.b", &"a".repeat(41)] {
            assert_eq!(with(&|list| list.name = name.to_owned()), wrong("name"), "{name}");
        }
        for at in ["", "8", "24:00", "8:60", "08:0", "+8:00", "08:00:00", "noon"] {
            assert_eq!(with(&|list| list.at = at.to_owned()), wrong("at"), "{at}");
        }
        assert_eq!(with(&|list| list.at = "7:05".to_owned()), None);
        assert_eq!(with(&|list| list.timezone = "Mars".to_owned()), wrong("timezone"));
        assert_eq!(with(&|list| list.to.clear()), wrong("to"));
        assert_eq!(with(&|list| list.to.push("nobody".into())), wrong("to"));
        assert_eq!(with(&|list| list.to.push("Ops <ops@example.org>".into())), wrong("to"));
        assert_eq!(with(&|list| list.owner = Some(" ".into())), wrong("owner"));
        let both = |list: &mut DigestList| (list.owner, list.account) = (Some("ada".into()), Some("1".into()));
        assert_eq!(with(&both), wrong("account"));
        let twice = DigestConfig { lists: vec![list(), list()] };
        assert_eq!(twice.wrong().map(|(key, _)| key).as_deref(), Some("digest.lists[1].name"));
    }

    #[test]
    fn schedules_are_those_that_the_scheduler_reads() {
        let at = |every, on, at: &str| DigestList { every, on, at: at.to_owned(), ..list() }.schedule();
        assert_eq!(at(Every::Day, Weekday::Monday, "08:00"), "0 0 8 * * *");
        assert_eq!(at(Every::Week, Weekday::Monday, "17:30"), "0 30 17 * * 1");
        assert_eq!(at(Every::Week, Weekday::Saturday, "00:05"), "0 5 0 * * 6");
        assert_eq!(at(Every::Week, Weekday::Sunday, "23:59"), "0 59 23 * * 0");
    }
}
