//! What holds of all machines, records and catalogues.
//!
//! The oracle below was written from the definition in `docs/recommendations.md`, and shares no function with the rule: it replays each hour by itself.

use proptest::{collection::vec, prelude::*};
use recommender::{
    catalogue::{Burst, Catalogue, MachineType},
    demand::{Flow, Hour, Record},
    recommendation::{Change, Recommendation},
};

use crate::support::{Case, GIB, catalogue, judged, price, record};

/// Eight days from Monday on, with a weekend.
const HOURS: u32 = 8 * 24;

/// What one hour did: how many thousandths of a core for how many minutes above the usual ones, memory in MiB, network in MB/s.
type Drawn = (u64, u64, u64, u64);

/// What is usual, for how many hours at the begin nothing else comes, what comes then, again and again, and how many per cent of that.
type Load = (u64, usize, Vec<Drawn>, u64);

fn loads() -> impl Strategy<Value = Load> {
    // Most hours are moderate, some are not: both have to come up.
    let minutes = prop_oneof![3 => Just(0_u64), 2 => 1..60_u64];
    let usual = prop_oneof![2 => 20..500_u64, 1 => 500..2_500_u64];
    (usual, 0..30_usize, vec((0..4_500_u64, minutes, 0..9_000_u64, 0..150_u64), 1..40), 5..100_u64)
}

fn made((usual, calm, drawn, per_cent): &Load) -> Record {
    record(HOURS, |at, hour| {
        let at = usize::try_from(at).unwrap();
        let (burst, minutes, memory_mib, megabytes) = drawn[at % drawn.len()];
        let minutes = if at < *calm { 0 } else { minutes };
        let levels = [(*usual, (60 - minutes) * 60_000), (usual + burst * per_cent / 100, minutes * 60_000)];
        hour.milli_cores = levels.into_iter().filter(|(_, ms)| *ms > 0).collect();
        hour.memory_peak_bytes = Some(GIB + memory_mib * per_cent / 100 * (1 << 20));
        let bytes = megabytes * per_cent * 10_000;
        hour.network = Some(Flow { mean: bytes, peak: bytes * 2 });
        // Up to nine tenths of what a m5.4xlarge may withhold and let wait.
        (hour.steal_ms, hour.run_queue_delay_ms) = (Some(minutes * 8_900), Some(minutes * 89_000));
    })
}

/// All sorts of types, or burstable ones alone, beside the machine's own.
fn offered() -> impl Strategy<Value = Catalogue> {
    let mut burstable = catalogue();
    burstable
        .offers
        .retain(|offer| offer.machine_type.burst != Burst::Steady || offer.machine_type.name == "m5.4xlarge");
    prop_oneof![all_sorts(), Just(burstable)]
}

/// Prices of the offers in some order, and which of them there are; the machine's own type always is.
fn all_sorts() -> impl Strategy<Value = Catalogue> {
    let offers = catalogue().offers.len();
    (vec(10_000..400_000_i64, offers), vec(any::<bool>(), offers)).prop_map(|(prices, there)| {
        let mut offered = catalogue();
        let mut at = 0;
        offered.offers.retain_mut(|offer| {
            let is_own = offer.machine_type.name == "m5.4xlarge";
            if !is_own {
                // Burstable types are the cheap ones.
                let part = if offer.machine_type.burst == Burst::Steady { 1 } else { 4 };
                offer.prices = price(prices[at] / part);
            }
            at += 1;
            is_own || there[at - 1]
        });
        offered
    })
}

/// Seconds of one vCPU above the baseline, and below it, in thousandths.
fn above_and_below(hour: &Hour, baseline: u64) -> (i128, i128) {
    let (mut above, mut below) = (0_i128, 0_i128);
    for (milli_cores, ms) in hour.milli_cores.iter() {
        let difference = (i128::from(milli_cores) - i128::from(baseline)) * i128::from(ms);
        if difference > 0 { above += difference } else { below -= difference }
    }
    (above, below)
}

/// Whether this type would have failed in any hour of the record: by its vCPUs, memory, network and credits.
fn would_have_failed(record: &Record, it: &MachineType) -> Option<String> {
    let mut credits = 0_i128;
    for hour in &record.hours {
        let most = hour.milli_cores.iter().map(|(milli_cores, _)| milli_cores).max().unwrap();
        if most > u64::from(it.vcpus) * 1_000 {
            return Some(format!("{most} thousandths of a core at {}", hour.begin));
        }
        let peak = hour.memory_peak_bytes.unwrap();
        if peak > it.memory_mib * 1_048_576 {
            return Some(format!("{peak} bytes at {}", hour.begin));
        }
        let flow = hour.network.unwrap();
        if flow.mean > it.network.baseline.unwrap() || flow.peak > it.network.burst.unwrap() {
            return Some(format!("{flow:?} at {}", hour.begin));
        }
        if let Burst::Credits { baseline_milli_cores, most_kept_ms } = it.burst {
            let (above, below) = above_and_below(hour, baseline_milli_cores);
            if above > credits {
                return Some(format!("{above} of {credits} credits at {}", hour.begin));
            }
            credits = (credits - above + below).min(i128::from(most_kept_ms) * 1_000);
        }
    }
    None
}

fn chosen(recommended: &Recommendation, case: &Case) -> MachineType {
    let Change::Rightsize { to, .. } = &recommended.change else { panic!("{recommended:?}") };
    case.catalogue.offer(to).unwrap().machine_type.clone()
}

fn case(record: Record, catalogue: Catalogue) -> Case {
    Case { catalogue, ..Case::of("m5.4xlarge", record) }
}

/// What a machine costs a month after the recommendation, or as it is.
fn costs(case: &Case) -> i64 {
    let own = 768_000 * 730;
    judged(case).map_or(own, |recommended| own - recommended.saving.as_ref().unwrap().list_per_month.micros())
}

/// One more of something, in every hour or in one.
fn add(record: &mut Record, what: u8, more: u64, at: Option<usize>) {
    let hours = match at {
        Some(at) => &mut record.hours[at..=at],
        None => &mut record.hours[..],
    };
    for hour in hours {
        match what {
            0 => hour.milli_cores = hour.milli_cores.map(|milli_cores| milli_cores + more),
            1 => hour.memory_peak_bytes = hour.memory_peak_bytes.map(|bytes| bytes + more * (1 << 20)),
            2 => {
                hour.network = hour.network.map(|flow| Flow { mean: flow.mean + more, peak: flow.peak + more * 9_000 });
            }
            3 => hour.disk = hour.disk.map(|flow| Flow { mean: flow.mean + more * 100_000, peak: flow.peak + more }),
            4 => hour.disk_operations = hour.disk_operations.map(|flow| Flow { mean: flow.mean + more, ..flow }),
            5 => hour.oom_kills = hour.oom_kills.map(|kills| kills + more % 2),
            6 => hour.steal_ms = hour.steal_ms.map(|ms| ms + more * 10),
            _ => hour.run_queue_delay_ms = hour.run_queue_delay_ms.map(|ms| ms + more * 100),
        }
    }
}

fn forget(record: &mut Record, what: u8) {
    for hour in &mut record.hours {
        match what {
            0 => hour.milli_cores = [].into_iter().collect(),
            1 => hour.memory_peak_bytes = None,
            2 => hour.network = None,
            3 => hour.disk = None,
            4 => hour.disk_operations = None,
            5 => hour.oom_kills = None,
            6 => hour.swap_pages = None,
            _ => hour.steal_ms = None,
        }
    }
}

/// Whether a type offers less of what was forgotten.
fn offers_less(what: u8, now: &MachineType, then: &MachineType) -> bool {
    match what {
        0 | 1 => true,
        2 => then.network.baseline < now.network.baseline || then.network.burst < now.network.burst,
        3 => then.disk.baseline < now.disk.baseline || then.disk.burst < now.disk.burst,
        4 => {
            then.disk_operations.baseline < now.disk_operations.baseline
                || then.disk_operations.burst < now.disk_operations.burst
        }
        5 | 6 => then.memory_mib < now.memory_mib,
        _ => then.vcpus < now.vcpus || then.burst != Burst::Steady,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_is_recommended_that_would_have_failed_its_own_history(drawn in loads(), catalogue in offered()) {
        let case = case(made(&drawn), catalogue);
        if let Ok(recommended) = judged(&case) {
            let it = chosen(&recommended, &case);
            prop_assert_eq!(would_have_failed(&case.record, &it), None, "{}", it.name);
            prop_assert!(recommended.saving.as_ref().unwrap().surely() >= case.policy.least_saving);
        }
    }

    #[test]
    fn what_is_not_known_is_never_reduced(drawn in loads(), catalogue in offered(), what in 0..8_u8) {
        let mut case = case(made(&drawn), catalogue);
        forget(&mut case.record, what);
        if let Ok(recommended) = judged(&case) {
            let now = case.catalogue.offer("m5.4xlarge").unwrap();
            prop_assert!(!offers_less(what, &now.machine_type, &chosen(&recommended, &case)), "{what}");
        }
    }

    #[test]
    fn more_load_never_makes_a_recommendation_cheaper(
        drawn in loads(), catalogue in offered(), what in 0..8_u8, more in 1..3_000_u64, at in proptest::option::of(0..192_usize),
    ) {
        let before = case(made(&drawn), catalogue);
        let mut after = before.clone();
        add(&mut after.record, what, more, at);
        prop_assert!(costs(&after) >= costs(&before));
        // Within one family, whose prices grow with the size, no smaller type either.
        let m5 = &["m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge"];
        let priced = |case: &Case| Case { catalogue: crate::support::catalogue(), ..case.clone() }.offering(m5);
        let size = |case: &Case| judged(case).map_or(16, |recommended| chosen(&recommended, case).vcpus);
        prop_assert!(size(&priced(&after)) >= size(&priced(&before)));
    }

    #[test]
    fn the_same_is_recommended_in_whatever_order_the_offers_come(drawn in loads(), catalogue in offered(), turn in 0..7_usize) {
        let one = case(made(&drawn), catalogue);
        let mut other = one.clone();
        let offers = other.catalogue.offers.len();
        other.catalogue.offers.rotate_left(turn % offers);
        prop_assert_eq!(judged(&one), judged(&other));
        other.catalogue.offers.reverse();
        prop_assert_eq!(judged(&one), judged(&other));
    }
}

/// What the properties rest on: of what is drawn, some is recommended, among it burstable and steady types, and some is not.
#[test]
fn what_is_drawn_is_of_all_kinds() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut burstable, mut steady, mut nothing) = (0, 0, 0);
    for _ in 0..300 {
        let drawn = loads().new_tree(&mut runner).unwrap().current();
        let offered = offered().new_tree(&mut runner).unwrap().current();
        let case = case(made(&drawn), offered);
        match judged(&case) {
            Ok(recommended) if chosen(&recommended, &case).burst == Burst::Steady => steady += 1,
            Ok(_) => burstable += 1,
            Err(_) => nothing += 1,
        }
    }
    assert!(burstable > 10 && steady > 50 && nothing > 20, "{burstable} {steady} {nothing}");
}
