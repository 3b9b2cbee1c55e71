//! The machine, the sweeper that it reports to, and what the sweeper's own judge says of its heartbeats.

use super::INTERVAL;
use heartbeat::{BootId, wire};
use jiff::{SignedDuration, Timestamp};
use lab::{debian::Debian, partners::pace, sweeper::Sweeper, wait};
use model::Verdict;
use std::time::Duration;
use sweeper::{
    store::Store,
    verdict::{Case, Policy, judge, words},
};
use tokio::time::Instant;

type Heartbeats = Vec<(BootId, wire::Heartbeat)>;

/// Nothing that lasted less can be idle, and nothing that happened within it is out of reach.
const SHORTEST_WINDOW: Duration = Duration::from_secs(6);

pub(super) struct Site {
    pub(super) sweeper: Sweeper,
    pub(super) machine: Debian,
    pub(super) store: Store,
}

/// A line of `systemctl list-timers --output=json`; times are in microseconds since 1970-01-01 UTC.
#[derive(Debug, serde::Deserialize)]
struct Timer {
    unit: String,
    next: Option<i64>,
}

/// A verdict with what decided, and the row that did most of it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    pub(super) because: String,
    /// The decision as it is stored.
    pub(super) decision: String,
    /// Key of the row.
    pub(super) row: Option<String>,
}

impl Site {
    /// Runs commands on the machine and says when they had ended, in nanoseconds since its boot.
    pub(super) async fn run(&mut self, commands: &str) -> u64 {
        let said =
            self.machine.run(&format!("{{ {commands}; }} >/dev/null && read -r up _ </proc/uptime && echo $up")).await;
        let (seconds, hundredths) = said
            .lines()
            .last()
            .and_then(|uptime| uptime.split_once('.'))
            .unwrap_or_else(|| panic!("no uptime: {said}"));
        (seconds.parse::<u64>().unwrap() * 100 + hundredths.parse::<u64>().unwrap()) * 10_000_000
    }

    /// Waits until a heartbeat tells when the machine's timers elapse next as `systemctl` does, to two seconds; what both said at last, if none does.
    /// `ours` was made at run time, all others are the distribution's.
    pub(super) async fn tells_timers(&mut self, ours: &str, timeout: Duration) -> Result<(), String> {
        let (mut ticks, began) = (pace(INTERVAL), Instant::now());
        loop {
            ticks.tick().await;
            let listed = self.machine.run("systemctl list-timers --all --output=json").await;
            let listed: Vec<Timer> = serde_json::from_str(&listed).unwrap_or_else(|error| panic!("{error}: {listed}"));
            let now_ms = Timestamp::now().as_millisecond();
            let due = [false, true].map(|is_ours| {
                let of_kind = listed.iter().filter(|timer| (timer.unit == ours) == is_ours);
                of_kind.filter_map(|timer| Some(timer.next? / 1000)).filter(|next| *next > now_ms).min().unwrap()
            });
            let last = self.heartbeats().await.pop().map(|(_, last)| last).unwrap_or_default();
            let told = last.schedules.map(|all| [all.next_shipped_timer_unix_ms, all.next_other_timer_unix_ms]);
            let is_near = |(told, due): (Option<i64>, i64)| told.is_some_and(|told| (told - due).abs() <= 2000);
            if told.is_some_and(|told| told.into_iter().zip(due).all(is_near)) {
                return Ok(());
            }
            if began.elapsed() > timeout {
                let coverage = last.coverage.unwrap_or_default();
                let timers = coverage.capabilities.into_iter().find(|one| one.name == "timers");
                return Err(format!("{told:?} told, {due:?} due, {timers:?}"));
            }
        }
    }

    /// Asserts that the agent counts by its programs: without them it neither follows runs nor tells whose CPU time it was.
    pub(super) async fn counts_by_programs(&mut self, timeout: Duration) {
        let first = wait::until("a heartbeat", timeout, || async { self.heartbeats().await.into_iter().next() }).await;
        let coverage = first.1.coverage.unwrap_or_default();
        if coverage.source() != wire::Source::Ebpf {
            let said = self.machine.run("journalctl --no-pager --unit node-agent").await;
            panic!("the agent's programs do not run: {coverage:#?}\n{said}");
        }
    }

    /// The heartbeats of the last two minutes, oldest first.
    pub(super) async fn heartbeats(&self) -> Heartbeats {
        let Some(node) = self.store.nodes().await.unwrap().pop() else { return Vec::new() };
        let from = Timestamp::now() - SignedDuration::from_secs(120);
        let rows = self.store.heartbeats(&node.node_id, from, Timestamp::MAX).await.unwrap();
        rows.into_iter().map(|row| (row.boot_id, row.heartbeat)).collect()
    }

    /// What is said of the first span of at least `span` that began after this moment, once it is over and `fits`; else of the latest
    /// one when `timeout` is over.
    pub(super) async fn seen(
        &self,
        after_boottime_ns: u64,
        span: Duration,
        timeout: Duration,
        fits: impl Fn(&Seen) -> bool,
    ) -> Seen {
        let (began, fits) = (Instant::now(), &fits);
        wait::until("heartbeats to judge", 2 * (timeout + span), || async move {
            let mut all = self.heartbeats().await;
            all.retain(|(_, one)| one.interval.is_some_and(|interval| interval.end_boottime_ns >= after_boottime_ns));
            let end =
                |(_, one): &(BootId, wire::Heartbeat)| one.interval.map_or(0, |interval| interval.end_boottime_ns);
            let spans = (0..all.len()).filter_map(|first| {
                let last = (first..all.len())
                    .find(|last| u128::from(end(&all[*last]) - end(&all[first])) >= span.as_nanos())?;
                Some(&all[first..=last.max(first + 1).min(all.len() - 1)])
            });
            let mut latest = None;
            for judged in spans.filter(|judged| judged.len() > 1) {
                let seen = Seen::of(judged.to_vec(), span);
                if fits(&seen) {
                    return Some(seen);
                }
                latest = Some(seen);
            }
            latest.filter(|_| began.elapsed() > timeout + span)
        })
        .await
    }
}

impl Seen {
    fn of(heartbeats: Heartbeats, window: Duration) -> Self {
        let policy = Policy {
            // What a single interval shows is judged as if it were young.
            idle_after_ms: i64::try_from(window.max(SHORTEST_WINDOW).as_millis()).unwrap(),
            boot_grace_ms: 0,
            missed_heartbeats: 10,
            // As the sweeper's configuration has them.
            workload_cpu_threshold_ns_per_s: 20_000_000,
            housekeeping_cpu_budget_ns_per_s: 500_000_000,
            ..Policy::default()
        };
        let now = heartbeats.last().and_then(|(_, last)| last.interval).map_or(0, |interval| interval.end_unix_ms);
        let case = Case::new(now, policy, heartbeats);
        let judgement = judge(&case);
        Self {
            verdict: judgement.verdict,
            because: words::decision(&judgement, &case),
            decision: serde_json::to_string(&judgement.decision).unwrap(),
            row: judgement.deciding_row().map(|row| row.key.clone()),
        }
    }

    /// Whether the machine waits, and for something that is named so.
    pub(super) fn waits_for(&self, name: &str) -> bool {
        self.verdict == Verdict::Waiting && self.decision.contains(name)
    }
}
