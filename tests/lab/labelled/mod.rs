//! Machines of which it is known what they do, because a scenario makes them do it: what judges machines is held against them.
//!
//! A scenario boots a machine of its own under the real agent, lets it work for a while where it has a time before, and leaves it in the state that
//! is labelled. A real sweeper sweeps over and over meanwhile; when it first says something of the machine is its answer. Intervals and windows are
//! scaled down [`SCALE`] times by configuration, nothing else is; thresholds are those of emulated machines where it says so.

mod debian;
mod machines;
mod measure;
mod micro;
mod replays;
mod sample;
mod site;
mod worker;

pub use measure::{Found, Kept, Measured, measure};
pub use sample::Sample;
pub use site::Site;

use std::time::Duration;

/// So many times shorter than by default are all times: an interval is 2 s in place of 30 s.
pub const SCALE: u32 = 15;
/// Interval of the agents.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// `verdict.idle_after`: half an hour.
pub const IDLE_AFTER: Duration = Duration::from_secs(1_800 / SCALE as u64);
/// `verdict.interactive_after`: two hours.
pub const INTERACTIVE_AFTER: Duration = Duration::from_secs(7_200 / SCALE as u64);
/// `verdict.spinning_after`: two hours.
pub const SPINNING_AFTER: Duration = Duration::from_secs(7_200 / SCALE as u64);
/// Five minutes: so much longer than its window an answer may take.
pub const GRACE: Duration = Duration::from_secs(300 / SCALE as u64);

/// What a machine truly does, in the state in which it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// Nothing that anybody needs: it is to be found idle.
    Idle,
    /// It works: nobody may call it idle.
    Works,
    /// It waits for something that will come: likewise.
    Waits,
    /// A task on it will never end: that is to be found, and the machine is not idle.
    StuckTask,
    /// A task on it loops for ever, which is no proof: it is to be listed as suspicious, and the machine is not idle.
    Loops,
}

impl Truth {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Works => "works",
            Self::Waits => "waits",
            Self::StuckTask => "stuck task",
            Self::Loops => "a loop",
        }
    }
}

/// What a scenario's machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A micro-VM with busybox and the agent, with so many CPUs.
    Micro {
        /// CPUs.
        cpus: u32,
    },
    /// A whole Debian 12.
    Debian,
}

/// When such a machine is in which state, in the weeks that rules of many days look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Week {
    /// In the state in which it is left, from its start on.
    Always,
    /// At work from Monday to Friday, 9 to 18, and left on the second Friday at 18.
    Office,
    /// At work each night from 3 to 4.
    Nightly,
}

/// What AWS Batch says of a worker's job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// It runs, from the machine's start on.
    Runs,
    /// The same, and all other children of its array are over.
    LastOfArray,
    /// It ended when the machine was left, and another job of its queue runs on another machine.
    Tail,
    /// It ended when the machine was left, and it was the last one.
    Over,
}

/// Who takes part from outside the machine, once it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// Nobody.
    Nobody,
    /// Prometheus, each 15 s, from the start on.
    Scraper,
    /// Somebody who tries to log in by ssh, each 10 s, and has no key.
    Stranger,
    /// Somebody at a terminal, by ssh, who types for eight seconds, once, before the machine is left, and stays.
    TerminalLeft,
    /// Somebody at a terminal who types a key each 20 s.
    Typist,
    /// A client of the machine's server, who sends 16 bytes each second.
    Client,
    /// A client who connects for 4 s each 240 s: for a minute each hour.
    HourlyClient,
    /// Somebody who started this by ssh, without a terminal, and is gone.
    Ssh(&'static str),
}

/// A machine with a label.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What it is, for people; its host name is made of it.
    pub name: &'static str,
    /// The machine.
    pub machine: Machine,
    /// What it truly does in the state in which it is left.
    pub truth: Truth,
    /// Commands that put it to work, before it is left; empty if there is no such time.
    pub works: &'static str,
    /// Commands that end that, and bring about the state in which it is left.
    pub leaves: &'static str,
    /// Who takes part.
    pub partner: Partner,
    /// Its weeks.
    pub week: Week,
    /// So much longer than its window it may take, because of what happens after it was left.
    pub extra: Duration,
    /// What AWS Batch says of the job on it, if it is a worker of Batch's: an instance that an environment started.
    pub batch: Option<Jobs>,
    /// What succeeds at the end as long as the label is true, on a Debian; empty where the label says nothing of what runs there.
    pub holds: &'static str,
}

impl Scenario {
    /// A name that a host may have.
    #[must_use]
    pub fn hostname(&self) -> String {
        let letters =
            self.name.chars().map(|one| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' });
        let name: String = letters.collect();
        name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-").chars().take(60).collect()
    }

    /// The class of what is to be found; none where nothing is.
    #[must_use]
    pub fn class(&self) -> Option<&'static str> {
        match (self.truth, self.batch) {
            (Truth::Idle, Some(Jobs::Over)) => Some("idle_worker"),
            (Truth::Idle, _) => Some("idle_node"),
            (Truth::StuckTask, _) => Some("stuck_job"),
            (Truth::Loops, _) => Some("spinning_job"),
            (Truth::Works | Truth::Waits, _) => None,
        }
    }

    /// How long after it was left the answer must be there: the window, and five minutes.
    #[must_use]
    pub fn within(&self) -> Duration {
        IDLE_AFTER + GRACE + self.extra
    }
}

/// On a micro-VM with one CPU, in whose works nobody takes part from outside.
const fn micro(name: &'static str, truth: Truth, works: &'static str, leaves: &'static str) -> Scenario {
    let week = if works.is_empty() { Week::Always } else { Week::Office };
    let machine = Machine::Micro { cpus: 1 };
    Scenario {
        name,
        machine,
        truth,
        works,
        leaves,
        partner: Partner::Nobody,
        week,
        extra: Duration::ZERO,
        batch: None,
        holds: "",
    }
}

/// The same on a whole Debian.
const fn debian(name: &'static str, truth: Truth, works: &'static str, leaves: &'static str) -> Scenario {
    Scenario { machine: Machine::Debian, ..micro(name, truth, works, leaves) }
}

impl Scenario {
    /// The same on a worker of AWS Batch's, which says this of its job.
    const fn with_job(self, jobs: Jobs) -> Self {
        Self { batch: Some(jobs), ..self }
    }

    /// The same, and this succeeds at its end.
    const fn holding(self, holds: &'static str) -> Self {
        Self { holds, ..self }
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    micro::SCENARIOS.into_iter().chain(debian::SCENARIOS).collect()
}
