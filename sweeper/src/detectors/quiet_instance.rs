//! A quiet instance, judged by its provider's metrics, and those in words.
//!
//! A quiet instance: if and only if the provider says that the instance is running, no agent reports from it, and the provider measured
//! it over a look-back of at least [`after_s`](crate::snapshot::QuietPolicy::after_s), in at least nine of ten periods, CPU and network both, and no
//! period was above [`cpu_millionths`](crate::snapshot::QuietPolicy::cpu_millionths) or [`network_bytes_per_s`](crate::snapshot::QuietPolicy::network_bytes_per_s).
//!
//! One on which AWS Batch has a job that starts or runs is none.
//!
//! Pure. It is weak evidence: a machine that waits for something, serves rarely or works in memory of a GPU looks the same. So it
//! raises a finding and never an action: no rule is asked for a plan. An instance that an agent reports from is judged by that
//! alone, and is an idle instance or none.

use super::{Answer, Class, Detector, Of};
use crate::{
    snapshot::{MachineInputs, QuietCase, SnapshotPart},
    verdict::Judgement,
};

pub(super) const DETECTOR: Detector = Detector {
    class: Class::QuietInstance,
    version: 1,
    rests_on: &[SnapshotPart::Inventory, SnapshotPart::ProviderMetrics],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    if !judgement.is_blind() {
        return Answer::Refuted { because: "an agent reports from it: its own word counts from now on".to_owned() };
    }
    // Whether a machine runs, its provider alone can say here.
    let case = inputs.metrics.as_ref().filter(|_| inputs.presence.listed.is_some());
    match case.map(|case| (judge(case), case)) {
        Some((Quietness::Quiet, _)) if !inputs.jobs.is_none() => Answer::NotKnown,
        Some((Quietness::Quiet, QuietCase { seen, .. })) => {
            Answer::Confirmed { since: seen.from, until: seen.until, work: None }
        }
        Some((Quietness::Busy, case)) => {
            Answer::Refuted { because: format!("busy: {}", case.thresholds()[..2].join(", ")) }
        }
        Some((Quietness::NotKnown, _)) | None => Answer::NotKnown,
    }
}

/// What the metrics come to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Quietness {
    /// Quiet over the whole look-back.
    Quiet,
    /// Some period was above a threshold.
    Busy,
    /// Too little was measured to say so of the whole look-back.
    NotKnown,
}

/// Judges. One busy period is enough to be busy, however few there are; to be quiet takes nearly all.
fn judge(case: &QuietCase) -> Quietness {
    let QuietCase { seen, policy } = case;
    let (cpu, network) = (seen.busiest_cpu_millionths, seen.busiest_network_bytes_per_s);
    if cpu.is_some_and(|cpu| cpu > policy.cpu_millionths)
        || network.is_some_and(|network| network > policy.network_bytes_per_s)
    {
        return Quietness::Busy;
    }
    let long_enough = seen.seconds() >= policy.after_s;
    let enough = u64::from(seen.periods).saturating_mul(10) >= seen.expected().saturating_mul(9);
    if cpu.is_some() && network.is_some() && long_enough && enough && seen.periods > 0 {
        Quietness::Quiet
    } else {
        Quietness::NotKnown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{QuietPolicy, Seen, seen};
    use proptest::prelude::*;

    fn case(seen: Seen) -> QuietCase {
        let policy = QuietPolicy { after_s: 7 * 86_400, cpu_millionths: 20_000, network_bytes_per_s: 5_000 };
        QuietCase { seen, policy }
    }

    #[test]
    fn quiet_is_quiet_in_all_it_says_and_in_nearly_every_period() {
        let of = |change: fn(&mut QuietCase)| {
            let mut case = case(seen());
            change(&mut case);
            judge(&case)
        };
        assert_eq!(of(|_| {}), Quietness::Quiet);
        assert_eq!(of(|case| case.seen.periods = 303), Quietness::Quiet);
        assert_eq!(of(|case| case.seen.periods = 302), Quietness::NotKnown, "less than nine of ten");
        assert_eq!(of(|case| case.seen.busiest_network_bytes_per_s = None), Quietness::NotKnown);
        assert_eq!(of(|case| case.seen.busiest_cpu_millionths = None), Quietness::NotKnown);
        assert_eq!(of(|case| case.policy.after_s = 15 * 86_400), Quietness::NotKnown, "the look-back is too short");
        assert_eq!(of(|case| case.seen.until = case.seen.from), Quietness::NotKnown);
    }

    #[test]
    fn one_busy_period_is_enough_however_few_there_are() {
        let busy = Seen { busiest_cpu_millionths: Some(20_001), periods: 1, ..seen() };
        assert_eq!(judge(&case(busy)), Quietness::Busy);
        let busy = Seen { busiest_network_bytes_per_s: Some(5_001), busiest_cpu_millionths: None, ..seen() };
        assert_eq!(judge(&case(busy)), Quietness::Busy);
    }

    proptest! {
        #[test]
        fn a_kept_case_is_judged_alike_and_more_work_is_never_quieter(
            periods in 0_u32..400, cpu in prop::option::of(0_u32..50_000), network in prop::option::of(0_u64..10_000),
        ) {
            let seen = Seen { periods, busiest_cpu_millionths: cpu, busiest_network_bytes_per_s: network, ..seen() };
            let case = case(seen);
            let kept: QuietCase = serde_json::from_str(&serde_json::to_string(&case).unwrap_or_default()).expect("JSON");
            prop_assert_eq!(judge(&kept), judge(&case));
            if judge(&case) == Quietness::Quiet {
                prop_assert!(cpu.is_some_and(|cpu| cpu <= 20_000) && network.is_some_and(|n| n <= 5_000) && periods >= 303);
            }
        }
    }
}
