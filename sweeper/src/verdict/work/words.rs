//! A judgement of work in words.

use super::{Failure, Held, Progress, Spin, WorkCase, WorkDecision, WorkJudgement, WorkUnknown, WorkWait};
use crate::verdict::words::{count, ended_with, span, time};
use heartbeat::text::visible;

/// What decided, in one sentence.
#[must_use]
pub fn decision(judgement: &WorkJudgement, case: &WorkCase) -> String {
    match &judgement.decision {
        WorkDecision::Moved { by } if by.is_empty() => "it began within the window".to_owned(),
        WorkDecision::Moved { by } => format!("it made progress: {}", list(by.iter().map(|what| counter(*what)))),
        WorkDecision::Waiting { on } => format!("it has not run, and may wait for {}", list(on.iter().map(wait))),
        WorkDecision::Still { held, processes, threads, not_run_ms } => {
            let window =
                judgement.window_unix_ms.map_or(case.policy.stuck_after_ms, |[from, to]| to.saturating_sub(from));
            let whose =
                format!("{} ({})", count(*processes, "process", "processes"), count(*threads, "thread", "threads"));
            let how = match held {
                Held::Frozen => ", frozen by its cgroup",
                Held::Stopped => ", stopped by a signal or a debugger",
                Held::Uninterruptible => ", in a wait that no signal ends (D), mostly for storage",
                Held::Asleep => ", asleep",
                Held::NotTold => "",
            };
            let longer = not_run_ms.filter(|ms| *ms > window);
            let longer =
                longer.map(|ms| format!("; those that live have not run for {}", span(ms))).unwrap_or_default();
            format!(
                "no task of it has run for {}: {whose}{how}; nothing was read, written, sent, started or ended, and nothing is seen that it waits for{longer}",
                span(window)
            )
        }
        WorkDecision::Succeeded { tasks } => format!("{} succeeded", count(*tasks, "task", "tasks")),
        WorkDecision::Failing { tasks, last } => {
            let window =
                judgement.window_unix_ms.map_or(case.policy.stuck_after_ms, |[from, to]| to.saturating_sub(from));
            let last = last.as_ref().map(|Failure { name, wait_status, .. }| {
                format!("; the last one was {}, which ended with {}", visible(name), ended_with(*wait_status))
            });
            let failed = count(*tasks, "task of it failed", "tasks of it failed");
            format!("{failed} within {}, and none succeeded{}", span(window), last.unwrap_or_default())
        }
        WorkDecision::Orphaned { run_ended_unix_ms, run_wait_status, processes, cpu_ms } => {
            let how = run_wait_status.map_or_else(String::new, |status| format!(" with {}", ended_with(status)));
            let (lives, it) = if *processes == 1 { ("lives", "it") } else { ("live", "they") };
            let used = cpu_ms.zip(judgement.window_unix_ms).map_or_else(String::new, |(ms, [from, to])| {
                let used = i64::try_from(ms).map_or_else(|_| "more than can be told".to_owned(), span);
                format!("; {it} used {used} of CPU time in the last {}", span(to.saturating_sub(from)))
            });
            let count = count(*processes, "process", "processes");
            format!("its run ended at {}{how}, and {count} of it {lives} on{used}", time(*run_ended_unix_ms))
        }
        WorkDecision::Unknown(why) => unknown(why),
    }
}

/// What only computes, in one sentence.
#[must_use]
pub fn spin_in_words(spin: &Spin) -> String {
    match spin {
        Spin::Computes { since_unix_ms, until_unix_ms, cpu_ms } => {
            let used = i64::try_from(*cpu_ms).map_or_else(|_| "more than can be told".to_owned(), span);
            let long = span(until_unix_ms.saturating_sub(*since_unix_ms));
            format!(
                "it has used {used} of CPU time in {long} and done nothing else: nothing was read, written, sent, allocated, started or ended, and no thread of it has waited for anything"
            )
        }
        Spin::DoesMore { what } => format!("it does more than compute: {what}"),
        Spin::NotKnown => "whether it only computes is not known".to_owned(),
    }
}

fn list<T: AsRef<str>>(parts: impl Iterator<Item = T>) -> String {
    parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join(", ")
}

/// Which counters moved; what began or ended has none of before, or of now.
pub(super) fn counters(by: &[Progress]) -> String {
    if by.is_empty() { "some of it began or ended".to_owned() } else { list(by.iter().map(|what| counter(*what))) }
}

pub(super) fn counter(what: Progress) -> &'static str {
    match what {
        Progress::Cpu => "CPU time",
        Progress::Starts => "processes and programs started",
        Progress::Exits => "processes ended",
        Progress::Switches => "context switches",
        Progress::Faults => "page faults",
        Progress::Calls => "read and write calls",
        Progress::Disk => "disk bytes",
        Progress::Network => "network bytes",
    }
}

fn wait(on: &WorkWait) -> String {
    match on {
        WorkWait::Connections { count: connections } => {
            format!("{} with other machines", count(*connections, "connection", "connections"))
        }
        WorkWait::Gpu => "a GPU that works".to_owned(),
        WorkWait::Rdma => "an RDMA adapter that moves data".to_owned(),
        WorkWait::Others { names } => format!("what runs beside it ({})", list(names.iter().map(|name| visible(name)))),
        WorkWait::Person { last_input_unix_ms } => {
            format!("a person, who typed at {}", time(*last_input_unix_ms))
        }
    }
}

fn unknown(why: &WorkUnknown) -> String {
    match why {
        WorkUnknown::NoAgent => "no agent reports from its machine".to_owned(),
        WorkUnknown::Disputed => "who speaks for its machine is disputed".to_owned(),
        WorkUnknown::Silent { last_heartbeat_unix_ms } => {
            format!("its machine's agent was last heard at {}", time(*last_heartbeat_unix_ms))
        }
        WorkUnknown::NotShown => "the newest heartbeat does not show it".to_owned(),
        WorkUnknown::ObservedTooShort => "one agent has not observed it for long enough".to_owned(),
        WorkUnknown::Gaps { made, expected } => {
            format!(
                "only {made} of {expected} heartbeats were made: the machine, or its agent, did not run all the time"
            )
        }
        WorkUnknown::NotMeasured { what } => format!("not measured: {}", what.join(", ")),
        WorkUnknown::LostEvents { count: lost } => format!("{lost} kernel events were lost"),
        WorkUnknown::FewFailures { failed } => {
            format!(
                "{} within the window, which is too few to say so",
                count(*failed, "task of it failed", "tasks of it failed")
            )
        }
        WorkUnknown::EndedLately { run_ended_unix_ms } => {
            format!("its run has only ended at {}", time(*run_ended_unix_ms))
        }
        WorkUnknown::HeldBack { threads } => {
            format!("{} of it could run and had no CPU", count(*threads, "thread", "threads"))
        }
    }
}
