//! Evidence that an older version stored is judged as it was.

use model::Verdict;
use sweeper::verdict::{Case, Judgement, judge};

/// What the version before cross-checks, waits and attributed network bytes stored of a host that was quiet for ten minutes and lacked three of these counters: a case
/// and its judgement, as a finding holds them.
const BEFORE_CROSS_CHECKS: &str = include_str!("stored/before_cross_checks.json");

#[test]
fn a_case_from_before_cross_checks_waits_and_attributed_bytes_replays_to_the_same_judgement() {
    let stored: serde_json::Value = serde_json::from_str(BEFORE_CROSS_CHECKS).unwrap();
    let case: Case = serde_json::from_value(stored["case"].clone()).unwrap();
    let judgement: Judgement = serde_json::from_value(stored["judgement"].clone()).unwrap();
    assert_eq!(judgement.verdict, Verdict::Idle);
    assert_eq!(judge(&case), judgement);
    // It says nothing of what it did not know.
    for key in ["unchecked", "waited", "housekeeping_cpu_ns", "unattributed_network_bytes", "waits"] {
        assert!(!serde_json::to_string(&case).unwrap().contains(&format!("\"{key}\"")), "{key}");
    }
}
