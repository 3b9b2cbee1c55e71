//! The *task* rules: cases computed by hand.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use proptest::{collection::vec, prelude::*};
use recommender::{
    blocker::Blocker,
    policy::Policy,
    rules::task::{Slower, TaskRun, WaitsForDisks, slower, waits_for_disks},
};

use crate::support::BEGIN;

/// A run at 22:00 UTC of a day after Monday 5 October 2026, which took so many seconds.
fn run(day: i64, seconds: i64) -> TaskRun {
    let begin: Timestamp = BEGIN.parse().unwrap();
    TaskRun {
        began: begin + SignedDuration::from_hours(day * 24 + 22),
        lasted: SignedDuration::from_secs(seconds),
        cpu_ms: Some(10_000),
        blocked_ms: Some(1_000),
        read_bytes: Some(1_000),
    }
}

/// Two runs a day: 100 and 110 seconds before this day, 160 and 170 from then on.
fn slower_since(day: i64, days: i64) -> Vec<TaskRun> {
    let runs = (0..days).flat_map(|on| {
        let seconds = if on < day { 100 } else { 160 };
        [run(on, seconds), run(on, seconds + 10)]
    });
    runs.collect()
}

#[test]
fn the_day_is_told_on_which_it_became_slower() {
    let told = slower(&slower_since(20, 30), &TimeZone::UTC).unwrap();
    let seconds = SignedDuration::from_secs;
    let expected = Slower {
        since: "2026-10-25".parse().unwrap(),
        before: seconds(100),
        after: seconds(160),
        runs_before: 40,
        runs_after: 20,
        reads_more: Some(false),
    };
    assert_eq!(told, expected);
    // At 22:00 UTC it is the next day in Auckland.
    let auckland = slower(&slower_since(20, 30), &TimeZone::get("Pacific/Auckland").unwrap()).unwrap();
    assert_eq!(auckland.since, "2026-10-26".parse().unwrap());
    // One slow run before it, and one fast one after it, change nothing.
    let mut odd = slower_since(20, 30);
    odd[5].lasted = seconds(900);
    odd[51].lasted = seconds(90);
    assert_eq!(slower(&odd, &TimeZone::UTC).unwrap().since, expected.since);
    // It reads half as much again: there is more to do.
    let mut more = slower_since(20, 30);
    more[40..].iter_mut().for_each(|run| run.read_bytes = Some(1_500));
    assert_eq!(slower(&more, &TimeZone::UTC).unwrap().reads_more, Some(true));
    more[3].read_bytes = None;
    assert_eq!(slower(&more, &TimeZone::UTC).unwrap().reads_more, None);
}

#[test]
fn what_varies_grows_slowly_or_became_faster_has_no_such_day() {
    let not_slower = |runs: &[TaskRun]| assert_eq!(slower(runs, &TimeZone::UTC), Err(Blocker::NotSlower));
    // By less than half: 149 against 100.
    let mut little = slower_since(20, 30);
    little
        .iter_mut()
        .for_each(|run| run.lasted = SignedDuration::from_secs(if run.lasted.as_secs() > 120 { 149 } else { 100 }));
    not_slower(&little);
    little
        .iter_mut()
        .filter(|run| run.lasted.as_secs() == 149)
        .for_each(|run| run.lasted = SignedDuration::from_secs(150));
    assert!(slower(&little, &TimeZone::UTC).is_ok());
    let varies: Vec<_> =
        (0..30).flat_map(|day| [run(day, 100), run(day, if day % 2 == 0 { 100 } else { 300 })]).collect();
    not_slower(&varies);
    let faster: Vec<_> = (0..30).flat_map(|day| [run(day, 300 - 5 * day), run(day, 300 - 5 * day)]).collect();
    not_slower(&faster);
    // Six days of history, and four days of it.
    not_slower(&slower_since(6, 30));
    not_slower(&slower_since(26, 30));
    let few = slower(&slower_since(5, 9), &TimeZone::UTC);
    assert_eq!(few, Err(Blocker::TooFewRuns { runs: 18, least: 20 }));
}

#[test]
fn a_task_waits_for_disks_if_it_is_blocked_for_longer_than_it_computes() {
    let runs = |cpu_ms, blocked_ms| vec![TaskRun { cpu_ms, blocked_ms, ..run(0, 100) }; 20];
    let judged = |cpu_ms, blocked_ms| waits_for_disks(&runs(Some(cpu_ms), Some(blocked_ms)), &Policy::default());
    assert_eq!(judged(25_000, 75_000), Ok(WaitsForDisks { runs: 20, blocked_per_cent: 75 }));
    assert_eq!(judged(25_000, 25_000), Ok(WaitsForDisks { runs: 20, blocked_per_cent: 50 }));
    assert_eq!(judged(25_001, 25_000), Err(Blocker::DoesNotWaitForDisks { blocked_per_cent: 49 }));
    // Blocked for less than a quarter of 100 seconds: it waits for something else.
    assert_eq!(judged(1_000, 24_999), Err(Blocker::DoesNotWaitForDisks { blocked_per_cent: 96 }));
    let unmeasured = waits_for_disks(&runs(Some(1), None), &Policy::default());
    assert_eq!(unmeasured, Err(Blocker::NotMeasured { what: "CPU time or time blocked on storage".into() }));
    let few = waits_for_disks(&runs(Some(1), Some(1))[1..], &Policy::default());
    assert_eq!(few, Err(Blocker::TooFewRuns { runs: 19, least: 20 }));
}

proptest! {
    /// By counting and not by the rule's percentiles: at most a tenth of the earlier runs took as long as any of the slowest nine tenths of the later ones.
    #[test]
    fn whatever_is_called_slower_took_longer_on_both_counts(
        seconds in vec(50..200_i64, 24..80), factor in 100..300_i64, at in 0.2..0.8_f64,
    ) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short list")]
        let from = (seconds.len() as f64 * at) as usize;
        let slow = |at: usize, seconds: i64| if at < from { seconds } else { seconds * factor / 100 };
        let runs: Vec<_> = (0..).zip(&seconds).map(|(day, seconds)| run(day, slow(usize::try_from(day).unwrap(), *seconds))).collect();
        let mut other = runs.clone();
        other.reverse();
        prop_assert_eq!(slower(&runs, &TimeZone::UTC), slower(&other, &TimeZone::UTC));
        if let Ok(told) = slower(&runs, &TimeZone::UTC) {
            let is_after = |run: &&TaskRun| run.began.to_zoned(TimeZone::UTC).date() >= told.since;
            let after: Vec<_> = runs.iter().filter(is_after).map(|run| run.lasted).collect();
            let before: Vec<_> = runs.iter().filter(|run| !is_after(run)).map(|run| run.lasted).collect();
            prop_assert_eq!((before.len(), after.len()), (usize::try_from(told.runs_before).unwrap(), usize::try_from(told.runs_after).unwrap()));
            prop_assert!(told.after.as_millis() * 2 >= told.before.as_millis() * 3);
            let shorter = |limit: SignedDuration| after.iter().filter(|one| **one <= limit).count();
            let bound = before.iter().filter(|limit| before.iter().filter(|one| one <= limit).count() * 10 >= before.len() * 9).min().unwrap();
            prop_assert!(shorter(*bound) * 10 < after.len(), "{told:?}");
        }
    }
}
