//! Who sleeps until a timer wakes it, as the agent tells it.

use crate::once::Seen;
use std::collections::BTreeMap;

/// What makes them; a shell's script, with its arguments at its top.
pub const SCRIPT: &str = concat!(include_str!("measuring.sh"), include_str!("sleepers.sh"));

/// Asserts that naps, and waits with a timeout, are told with their time, and that waits without one are not.
///
/// # Panics
///
/// When it is otherwise.
pub fn check(heartbeat: &str, counters: &str) {
    let seen = Seen(serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")));
    let counters: BTreeMap<_, _> = counters.lines().filter_map(|line| line.split_once(' ')).collect();
    let moment_ns = |name: &str| {
        let (seconds, hundredths) = counters[name].split_once('.').expect("seconds and hundredths");
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|error| panic!("{error}: {text}"));
        (number(seconds) * 100 + number(hundredths)) * 10_000_000
    };
    let end = &seen.0["interval"]["end_boottime_ns"];
    let end_ns = end.as_u64().unwrap_or_else(|| panic!("no end: {end}"));
    let between = end_ns - moment_ns("asleep")..=end_ns - moment_ns("began");
    assert!(*between.start() > 1_000_000_000, "it slept for a second and more: {between:?}");
    for state in ["nap", "poll", "lock", "wait", "poll-for-ever"] {
        let row = seen.row(counters[state]);
        assert_eq!(row["states"]["sleeping"], 1, "{state}: {row}");
        let slept_ns = row["timed_wait_ns"].as_u64();
        if ["nap", "poll", "lock"].contains(&state) {
            assert!(slept_ns.is_some_and(|ns| between.contains(&ns)), "{state}: {slept_ns:?}, not {between:?}: {row}");
        } else {
            assert_eq!(slept_ns, None, "{state}: {row}");
        }
    }
}
