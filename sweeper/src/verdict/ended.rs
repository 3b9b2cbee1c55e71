//! What ended last on a node: for the person who is asked whether anybody needs it.

use super::{Case, DecidingRow, Decision, Signal, last_work, signal::is_workload};
use heartbeat::wire;
use serde::{Deserialize, Serialize};

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// What drove it, for example `snakemake` or `slurm`.
    pub engine: String,
    /// The pipeline's name; empty if the command line did not tell it.
    pub pipeline: String,
    /// Identifies the run on its node and in its boot.
    pub run: String,
    /// When it ended, in milliseconds since 1970-01-01 UTC.
    pub ended_unix_ms: i64,
    /// How its first process ended, as wait(2) gives it; none if that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_status: Option<u32>,
    /// Tasks that ended.
    pub tasks: u64,
    /// Of these, those that failed.
    pub failed: u64,
}

impl EndedRun {
    /// The run that ended last of those that a heartbeat shows.
    pub(super) fn last_of(heartbeat: &wire::Heartbeat) -> Option<Self> {
        let interval = heartbeat.interval.as_ref()?;
        let of = |run: &wire::Run| {
            let ago_ms = interval.end_boottime_ns.saturating_sub(run.ended_boottime_ns?) / 1_000_000;
            Some(Self {
                engine: run.engine.clone(),
                pipeline: run.pipeline.clone(),
                run: run.id.clone(),
                ended_unix_ms: interval.end_unix_ms.saturating_sub(i64::try_from(ago_ms).ok()?),
                wait_status: run.wait_status,
                tasks: run.tasks_ended,
                failed: run.tasks_failed,
            })
        };
        let somebodys = heartbeat.runs.iter().filter(|run| run.activity.as_ref().is_none_or(|row| is_workload(&row)));
        somebodys.filter_map(of).max_by_key(|run| run.ended_unix_ms)
    }
}

/// What was last seen to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSignal {
    /// Which signal was above its threshold.
    pub signal: Signal,
    /// Until when, in milliseconds since 1970-01-01 UTC: to the agent's interval.
    pub until_unix_ms: i64,
    /// The row that did most of it, if a row did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<DecidingRow>,
}

/// What ended last on a node, as far as its heartbeats reach back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWork {
    /// What was last seen to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<LastSignal>,
    /// The run that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<EndedRun>,
}

impl LastWork {
    /// What a case shows; none if it shows nothing.
    #[must_use]
    pub fn of(case: &Case) -> Option<Self> {
        let signal = last_work(case).and_then(|judgement| match judgement.decision {
            Decision::Above { signal, observation } => Some(LastSignal {
                signal,
                until_unix_ms: observation.end_unix_ms,
                row: observation.deciding_row.filter(|row| row.signal == signal),
            }),
            Decision::AllQuiet { .. } | Decision::Waiting { .. } | Decision::Unknown(_) => None,
        });
        let run = case.node.as_ref().and_then(|node| node.last_run.clone());
        (signal.is_some() || run.is_some()).then_some(Self { signal, run })
    }

    /// What this shows, and what an earlier one showed of that on which this says nothing: heartbeats reach back for a few hours, and a finding lasts for weeks.
    #[must_use]
    pub fn or_else(now: Option<Self>, before: Option<&Self>) -> Option<Self> {
        let (Some(now), Some(before)) = (&now, before) else { return now.or_else(|| before.cloned()) };
        Some(Self {
            signal: now.signal.clone().or_else(|| before.signal.clone()),
            run: now.run.clone().or_else(|| before.run.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::words;

    const SECOND: u64 = 1_000_000_000;

    fn run(id: &str, ended_s: Option<u64>) -> wire::Run {
        wire::Run {
            id: id.to_owned(),
            engine: "snakemake".to_owned(),
            pipeline: "rna".to_owned(),
            ended_boottime_ns: ended_s.map(|second| second * SECOND),
            wait_status: ended_s.map(|_| 256),
            tasks_ended: 12,
            tasks_failed: 3,
            ..wire::Run::default()
        }
    }

    fn heartbeat(runs: Vec<wire::Run>) -> wire::Heartbeat {
        let interval = wire::Interval { end_unix_ms: 1_000_000, end_boottime_ns: 500 * SECOND, ..Default::default() };
        wire::Heartbeat { interval: Some(interval), runs, ..wire::Heartbeat::default() }
    }

    #[test]
    fn the_run_that_ended_last_is_told_and_none_that_is_open_or_the_systems_own() {
        let ended = EndedRun::last_of(&heartbeat(vec![run("1", Some(100)), run("2", Some(440)), run("3", None)]));
        let ended = ended.expect("an ended run");
        assert_eq!((ended.run.as_str(), ended.ended_unix_ms), ("2", 940_000));
        assert_eq!(EndedRun::last_of(&heartbeat(vec![run("3", None)])), None);
        let row = wire::WorkloadActivity { class: wire::Class::Housekeeping.into(), ..Default::default() };
        let own = wire::Run { activity: Some(row), ..run("1", Some(100)) };
        assert_eq!(EndedRun::last_of(&heartbeat(vec![own])), None);
        let last = LastWork { signal: None, run: Some(ended) };
        let told =
            ["the snakemake run rna ended at 1970-01-01 00:15:40 UTC with exit code 1: 12 tasks, 3 of them failed"];
        assert_eq!(words::last_work(&last), told);
    }

    #[test]
    fn what_later_heartbeats_do_not_reach_is_kept() {
        let row = DecidingRow {
            signal: Signal::WorkloadCpu,
            key: "/user.slice".to_owned(),
            container: String::new(),
            top_command: "bwa".to_owned(),
            amount: 7,
        };
        let signal = LastSignal { signal: Signal::WorkloadCpu, until_unix_ms: 60_000, row: Some(row) };
        let run = EndedRun::last_of(&heartbeat(vec![run("1", Some(100))]));
        let before = LastWork { signal: Some(signal.clone()), run: run.clone() };
        assert_eq!(LastWork::or_else(None, Some(&before)), Some(before.clone()));
        assert_eq!(LastWork::or_else(None, None), None);
        let later = LastSignal { until_unix_ms: 120_000, row: None, ..signal };
        let now = LastWork { signal: Some(later.clone()), run: None };
        assert_eq!(LastWork::or_else(Some(now), Some(&before)), Some(LastWork { signal: Some(later), run }));
        assert_eq!(
            words::last_work(&before)[0],
            "last seen at work until 1970-01-01 00:01:00 UTC: CPU time of workloads, mostly of /user.slice (bwa)"
        );
    }
}
