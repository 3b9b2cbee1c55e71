//! A verdict on a moment that has passed.

use crate::properties::history;
use jiff::Timestamp;
use proptest::prelude::*;
use sweeper::{config::Config, store::StoredHeartbeat, sweep::judge_at};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// What a node did at a moment is told by what it had sent by then.
    #[test]
    fn a_verdict_on_a_moment_depends_on_nothing_that_was_sent_after_it(history in history(), at in 0_usize..60) {
        let sent = history.node().sent.into_iter();
        let sent: Vec<_> = sent.map(|(boot_id, heartbeat)| StoredHeartbeat { boot_id, heartbeat }).collect();
        prop_assume!(!sent.is_empty());
        let at = at % sent.len();
        let end = sent[at].heartbeat.interval.as_ref().map(|interval| interval.end_unix_ms).unwrap();
        let moment = Timestamp::from_millisecond(end + 1_000).unwrap();
        let config = Config::default();
        prop_assert_eq!(judge_at(&config, moment, &sent), judge_at(&config, moment, &sent[..=at]));
    }
}
