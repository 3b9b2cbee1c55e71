#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::model::Delta;
use node_agent_ebpf::counter;

const NOTHING: Wanted = Wanted { process_events: false, taskstats: false };

fn own(deltas: &Deltas) -> Delta {
    deltas.by_key.iter().filter(|(key, _)| key.own == 1).map(|(_, delta)| *delta).next().unwrap()
}

#[test]
fn the_second_sample_shows_what_this_process_did_in_between() {
    let mut fallback = Fallback::start(NOTHING);
    let first = own(&fallback.read().unwrap());
    assert_eq!(first.totals.counters[counter::CPU_NS], 0);
    assert_eq!(first.live_processes, 1);
    let begin = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    while rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec < begin.tv_sec + 1 {
        std::hint::spin_loop();
    }
    assert!(own(&fallback.read().unwrap()).totals.counters[counter::CPU_NS] > 0);
}

#[test]
fn what_is_not_wanted_is_not_there_and_says_so() {
    let fallback = Fallback::start(NOTHING);
    assert_eq!(fallback.source(), wire::Source::Proc);
    assert_eq!(fallback.refusal(NOTHING), None);
    let both = Wanted { process_events: true, taskstats: true };
    assert_eq!(fallback.refusal(both), Some("switched off by configuration"));
    let statuses = fallback.statuses(&(Status::Denied, "no rights".to_owned()));
    assert!(!statuses.measured.process_events && !statuses.measured.execs && !statuses.measured.failures);
}
