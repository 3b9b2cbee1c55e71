#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::model::Share;
use node_agent_ebpf::counter;

const NOTHING: Wanted = Wanted { births: false, taskstats: false };

fn own(ledger: &Ledger) -> Share {
    ledger.shares.iter().filter(|(key, _)| key.own == 1).map(|(_, share)| *share).next().unwrap()
}

#[test]
fn the_second_reading_shows_what_this_process_did_in_between() {
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
    assert_eq!(fallback.collector(), wire::Collector::Proc);
    assert_eq!(fallback.refusal(NOTHING), None);
    let both = Wanted { births: true, taskstats: true };
    assert_eq!(fallback.refusal(both), Some("switched off by configuration"));
    let standing = fallback.standing(&(Status::Denied, "no rights".to_owned()));
    assert!(!standing.measured.births && !standing.measured.execs && !standing.measured.failures);
}
