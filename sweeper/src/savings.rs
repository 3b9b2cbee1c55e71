//! What was saved: of each action that was carried out for how long the machine stayed stopped, or the address released, since, as the inventory saw it, at the rate of the plan that people approved. Pure but for [`realised()`], which reads it.
//!
//! Time counts from when the machine was seen to be stopped, up to when it was undone or first seen otherwise, or else up to the last listing that shows it stopped: where nobody has looked since, nothing is saved yet.

mod realised;
mod shadow;
mod summary;
mod twin;

pub(crate) use realised::listed_until;
pub use realised::{NotKnown, realised};
pub use shadow::Shadow;
pub use summary::{Plans, Savings, until};
pub use twin::{successor, twin};

use crate::{findings::FindingId, inventory::InstanceState, store::Version};
use jiff::Timestamp;
use model::{
    HourlyRate, ResourceKey, Usd,
    plan::{ContentHash, Plan, Saving},
};
use serde::{Deserialize as _, Serialize};

/// Why the time that counts has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It has not: the last listing shows the machine stopped, or lacks what was released.
    Lasts,
    /// No complete listing has shown it so yet.
    NotSeen,
    /// Somebody wanted it undone.
    Undone,
    /// Somebody has started it by another way.
    Restarted,
    /// It is there no more; what that saves is nobody's merit here.
    Gone,
}

/// For how long a machine stayed stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// When it was seen to be stopped.
    pub since: Timestamp,
    /// Up to when that counts.
    pub until: Timestamp,
    /// What ended it.
    pub ending: Ending,
}

/// What one action has saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// The plan that was carried out.
    pub plan: ContentHash,
    /// The finding that it ended.
    pub finding: FindingId,
    /// On what.
    pub resource: ResourceKey,
    /// What was done.
    pub title: String,
    /// Who approved it.
    pub approved_by: Vec<String>,
    /// For how long.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// What an hour saves, as the plan says; none if that is not known.
    pub per_hour: Option<HourlyRate>,
    /// What was saved so far; none if that is not known.
    pub saved: Option<Usd>,
}

impl Saved {
    /// What it saved within a time; none if that is not known.
    #[must_use]
    pub fn within(&self, from: Timestamp, until: Timestamp) -> Option<Usd> {
        let (from, until) = (from.max(self.stopped.since), until.min(self.stopped.until));
        self.per_hour.map(|rate| rate.over(until.duration_since(from)))
    }

    /// Of a plan that was carried out.
    #[must_use]
    pub fn of(plan: &Plan, approved_by: Vec<String>, stopped: Stopped) -> Self {
        let content = plan.content();
        let per_hour = match &content.net_saving {
            Saving::Known { per_hour, .. } => Some(*per_hour),
            Saving::Unknown { .. } => None,
        };
        Self {
            plan: plan.content_hash().clone(),
            finding: FindingId(content.finding.clone()),
            resource: content.resource.clone(),
            title: content.title.clone(),
            approved_by,
            stopped,
            per_hour,
            saved: per_hour.map(|rate| rate.over(stopped.until.duration_since(stopped.since))),
        }
    }
}

/// For how long a machine stayed stopped that was seen to be stopped at `since`: by what it has been, oldest first, and until when listings of its kind went well.
#[must_use]
pub fn stopped(
    since: Timestamp,
    undone_at: Option<Timestamp>,
    versions: &[Version],
    listed_until: Option<Timestamp>,
) -> Stopped {
    let later: Vec<&Version> = versions.iter().filter(|version| version.from > since).collect();
    // What it was before lasts until a listing shows it otherwise.
    let seen_so = later.first().is_some_and(|version| is_stopped(version))
        || (later.is_empty() && versions.last().is_some_and(|version| version.until.is_none() && is_stopped(version)));
    let otherwise = later.iter().find(|version| !is_stopped(version));
    let gone_at = versions.last().and_then(|version| version.until).filter(|until| *until > since);
    let (until, ending) = match (otherwise, gone_at, listed_until) {
        (Some(version), ..) if is_gone(version) => (version.from, Ending::Gone),
        (Some(version), ..) => (version.from, Ending::Restarted),
        (None, Some(gone_at), _) => (gone_at, Ending::Gone),
        (None, None, Some(listed)) if seen_so && listed > since => (listed, Ending::Lasts),
        (None, None, _) => (since, Ending::NotSeen),
    };
    match undone_at {
        Some(undone_at) if undone_at < until || matches!(ending, Ending::Lasts | Ending::NotSeen) => {
            Stopped { since, until: undone_at.max(since), ending: Ending::Undone }
        }
        _ => Stopped { since, until, ending },
    }
}

/// For how long a machine stayed away that was seen to be ended at `since`: lists go on to show it for about an hour, as ended.
#[must_use]
pub fn ended(since: Timestamp, versions: &[Version], listed_until: Option<Timestamp>) -> Stopped {
    let is_away = versions.last().is_some_and(|version| version.until.is_some() || is_gone(version));
    match listed_until {
        Some(listed) if is_away && listed > since => Stopped { since, until: listed, ending: Ending::Lasts },
        _ => Stopped { since, until: since, ending: Ending::NotSeen },
    }
}

/// For how long something stayed away that was seen to be given back at `since`: by what it has been, oldest first, and until when listings of its kind went well.
#[must_use]
pub fn released(since: Timestamp, versions: &[Version], listed_until: Option<Timestamp>) -> Stopped {
    let is_listed = versions.last().is_none_or(|version| version.until.is_none());
    match listed_until {
        Some(listed) if !is_listed && listed > since => Stopped { since, until: listed, ending: Ending::Lasts },
        _ => Stopped { since, until: since, ending: Ending::NotSeen },
    }
}

/// When a machine was first seen to run again that had been called to stop at `called_at`: by what it has been since, oldest first. None before it was seen to be stopped: what
/// a listing saw that began before the call is no relapse.
#[must_use]
pub fn started_again(called_at: Timestamp, versions: &[Version]) -> Option<Timestamp> {
    let since = versions.iter().filter(|version| version.from >= called_at);
    let is_on = |version: &&Version| matches!(state(version), Some(InstanceState::Pending | InstanceState::Running));
    since.skip_while(|version| !is_stopped(version)).find(is_on).map(|version| version.from)
}

fn state(version: &Version) -> Option<InstanceState> {
    InstanceState::deserialize(version.record.get("state")?).ok()
}

fn is_stopped(version: &Version) -> bool {
    matches!(state(version), Some(InstanceState::Stopping | InstanceState::Stopped))
}

fn is_gone(version: &Version) -> bool {
    matches!(state(version), Some(InstanceState::ShuttingDown | InstanceState::Terminated))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(minute)
    }

    fn was(state: &str, from: i64, until: Option<i64>) -> Version {
        let record = json!({ "state": state });
        Version { kind: "instance".into(), resource: "i-1".into(), from: at(from), until: until.map(at), record }
    }

    #[test]
    fn time_counts_as_far_as_somebody_has_seen_the_machine_stopped() {
        let running = was("running", 0, Some(12));
        let of = |undone: Option<i64>, versions: &[Version], listed: i64| {
            let stopped = stopped(at(10), undone.map(at), versions, Some(at(listed)));
            (stopped.until.duration_since(at(0)).as_mins(), stopped.ending)
        };
        let still = [running.clone(), was("stopped", 12, None)];
        assert_eq!(of(None, &still, 60), (60, Ending::Lasts));
        assert_eq!(of(None, &still, 9), (10, Ending::NotSeen), "the listing is older");
        assert_eq!(of(Some(40), &still, 60), (40, Ending::Undone));
        // Nobody has looked since, or whoever did saw it run.
        assert_eq!(of(None, &[was("running", 0, None)], 9), (10, Ending::NotSeen));
        assert_eq!(of(None, &[was("running", 0, None)], 60), (10, Ending::NotSeen));
        assert_eq!(of(None, &[], 60), (10, Ending::NotSeen));
        let restarted =
            [running.clone(), was("stopping", 12, Some(15)), was("stopped", 15, Some(30)), was("running", 30, None)];
        assert_eq!(of(None, &restarted, 60), (30, Ending::Restarted));
        assert_eq!(of(Some(29), &restarted, 60), (29, Ending::Undone), "who undid it is seen to run a while later");
        let terminated = [running.clone(), was("stopped", 12, Some(30)), was("terminated", 30, None)];
        assert_eq!(of(None, &terminated, 60), (30, Ending::Gone));
        assert_eq!(of(None, &[running, was("stopped", 12, Some(45))], 60), (45, Ending::Gone), "it is listed no more");
        assert_eq!(of(None, &[was("stopped", 0, None)], 60), (60, Ending::Lasts), "a listing was there first");
        assert_eq!(
            of(None, &[was("a new word", 12, None)], 60),
            (12, Ending::Restarted),
            "what is not known saves nothing"
        );
    }

    #[test]
    fn what_was_released_saves_for_as_long_as_whole_lists_lack_it() {
        let of = |versions: &[Version], listed: Option<i64>| {
            let released = released(at(10), versions, listed.map(at));
            (released.until.duration_since(at(0)).as_mins(), released.ending)
        };
        let gone = [was("tagged", 0, Some(5)), was("", 5, Some(12))];
        assert_eq!(of(&gone, Some(60)), (60, Ending::Lasts));
        assert_eq!(of(&gone, Some(9)), (10, Ending::NotSeen), "the listing is older");
        assert_eq!(of(&gone, None), (10, Ending::NotSeen), "nobody could list any");
        assert_eq!(of(&[was("", 0, None)], Some(60)), (10, Ending::NotSeen), "it is listed still");
        assert_eq!(of(&[], Some(60)), (10, Ending::NotSeen), "it never was");
    }

    #[test]
    fn what_was_ended_saves_for_as_long_as_lists_show_it_ended_or_lack_it() {
        let of = |versions: &[Version], listed: Option<i64>| {
            let ended = ended(at(10), versions, listed.map(at));
            (ended.until.duration_since(at(0)).as_mins(), ended.ending)
        };
        let shown = [was("running", 0, Some(12)), was("terminated", 12, None)];
        assert_eq!(of(&shown, Some(60)), (60, Ending::Lasts));
        let gone = [was("running", 0, Some(12)), was("terminated", 12, Some(70))];
        assert_eq!(of(&gone, Some(90)), (90, Ending::Lasts));
        assert_eq!(of(&shown, Some(9)), (10, Ending::NotSeen), "the listing is older");
        assert_eq!(of(&shown, None), (10, Ending::NotSeen));
        assert_eq!(of(&[was("running", 0, None)], Some(60)), (10, Ending::NotSeen), "it is listed still");
        assert_eq!(of(&[], Some(60)), (10, Ending::NotSeen));
    }

    #[test]
    fn of_a_time_counts_what_was_saved_within_it() {
        let plan = "5d".repeat(32).try_into().expect("a hash");
        let stopped = Stopped { since: at(60), until: at(180), ending: Ending::Lasts };
        let saved = Saved {
            plan,
            finding: FindingId("f-1".into()),
            resource: "aws:123456789012:eu-central-1:i-1".parse().expect("a key"),
            title: String::new(),
            approved_by: Vec::new(),
            stopped,
            per_hour: Some(HourlyRate::from_micros(100)),
            saved: None,
        };
        let micros = |from: i64, until: i64| saved.within(at(from), at(until)).map(Usd::micros);
        assert_eq!(micros(0, 30), Some(0));
        assert_eq!(micros(0, 120), Some(100));
        assert_eq!(micros(120, 600), Some(100));
        assert_eq!(micros(200, 600), Some(0));
        assert_eq!(Saved { per_hour: None, ..saved }.within(at(0), at(600)), None);
    }

    #[test]
    fn what_was_started_again_is_what_runs_after_it_was_seen_stopped() {
        let of = |versions: &[Version]| started_again(at(10), versions).map(|at| at.as_millisecond());
        let ms = |minute: i64| Some(at(minute).as_millisecond());
        let (running, stopped) = (was("running", 5, Some(12)), was("stopped", 12, Some(20)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[running.clone(), was("stopped", 12, None)]), None);
        assert_eq!(of(&[running.clone(), stopped.clone(), was("running", 20, None)]), ms(20));
        assert_eq!(of(&[running, was("stopping", 12, Some(13)), stopped, was("pending", 20, None)]), ms(20));
        // A listing that began before the call.
        assert_eq!(of(&[was("running", 11, Some(12)), was("stopped", 12, None)]), None);
        // It was stopped by somebody else before, or is gone.
        assert_eq!(of(&[was("stopped", 5, Some(11)), was("running", 11, None)]), None);
        assert_eq!(
            of(&[was("stopped", 12, Some(20)), was("shutting_down", 20, Some(21)), was("terminated", 21, None)]),
            None
        );
    }
}
