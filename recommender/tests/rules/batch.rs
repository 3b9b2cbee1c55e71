//! The rules *batch* and *request*: cases computed by hand.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::{ResourceKey, Usd};
use proptest::{collection::vec, prelude::*};
use recommender::{
    blocker::{Blocker, NotRecommended},
    catalogue::{Offer, Prices, Rate},
    demand::Observed,
    policy::Policy,
    rank::rank,
    recommendation::{Change, Doubt, Evidence, Recommendation, Risk, Undo},
    requests::{Attempt, Request},
    rules::{
        batch::{self, EnvironmentInput, UsedHour},
        request::{self, RequestInput},
    },
};

use crate::support::{BEGIN, GIB, WEEKS, catalogue, price, record};

fn key() -> ResourceKey {
    "aws:123456789012:us-east-1:i-0123456789abcdef0".parse().unwrap()
}

/// An environment that reserves 32 vCPUs at 48,000 each, of which this was used in the hours of four weeks.
fn environment(used: impl Fn(u32) -> u32) -> Result<Recommendation, NotRecommended> {
    reserving(Some(32), WEEKS, &price(48_000), used)
}

fn reserving(
    min_vcpus: Option<u32>,
    hours: u32,
    vcpu: &Prices,
    used: impl Fn(u32) -> u32,
) -> Result<Recommendation, NotRecommended> {
    let begin: Timestamp = BEGIN.parse().unwrap();
    let hour = |at: u32| UsedHour { begin: begin + SignedDuration::from_hours(at.into()), vcpus: used(at) };
    let hours: Vec<_> = (0..hours).map(hour).collect();
    let input = EnvironmentInput { resource: &key(), min_vcpus, hours: &hours, zone: &TimeZone::UTC, vcpu };
    batch::recommend(&input, &Policy::default())
}

fn min_vcpus(recommended: &Recommendation) -> (u32, Usd) {
    match recommended.change {
        Change::MinVcpus { to, .. } => (to, recommended.saving.as_ref().unwrap().list_per_month),
        ref other => panic!("{other:?}"),
    }
}

fn is_night(at: u32) -> bool {
    !(6..22).contains(&(at % 24))
}

#[test]
fn a_reserve_that_nothing_uses_is_not_kept() {
    let recommended = environment(|_| 0).unwrap();
    // 32 × 0.048 × 730
    assert_eq!(min_vcpus(&recommended), (0, Usd::from_micros(1_121_280_000)));
    assert_eq!((recommended.undo, recommended.risks), (Undo::MinVcpus { vcpus: 32 }, vec![Risk::JobsStartLater]));
    // One hour a day with 64: 4.2 % of the hours. What is used then is bought as before: 23 of 24 hours stand in vain.
    let recommended = environment(|at| if at % 24 == 9 { 64 } else { 0 }).unwrap();
    assert_eq!(min_vcpus(&recommended), (0, Usd::from_micros(1_121_280_000 / 24 * 23)));
    let Evidence::Reserve { most: 64, hours_above_per_cent: 5, .. } = recommended.evidence else {
        panic!("{recommended:?}")
    };
}

#[test]
fn a_reserve_that_is_used_at_night_is_kept() {
    let refused = environment(|at| if is_night(at) { 32 } else { 0 }).unwrap_err();
    assert_eq!(refused.blockers, [Blocker::ReserveIsUsed { vcpus: 32, per_cent: 34 }], "8 of 24 hours");
    // Half of it at night: the other half is never used.
    let recommended = environment(|at| if is_night(at) { 16 } else { 0 }).unwrap();
    assert_eq!(min_vcpus(&recommended), (16, Usd::from_micros(1_121_280_000 / 2)));
    // Two hours a day are 8.3 %.
    let refused = environment(|at| if at % 24 < 2 { 40 } else { 0 }).unwrap_err();
    assert_eq!(refused.blockers, [Blocker::ReserveIsUsed { vcpus: 32, per_cent: 9 }]);
}

#[test]
fn what_is_not_known_of_an_environment_is_refused_by_name() {
    let unpriced = Prices { list: Rate::Unknown("no row".into()), ..price(1) };
    let refused = |min_vcpus, hours, vcpu: &Prices| reserving(min_vcpus, hours, vcpu, |_| 0).unwrap_err().blockers;
    assert_eq!(refused(None, WEEKS, &price(48_000)), [Blocker::FactUnknown { fact: "its minvCpus".into() }]);
    assert_eq!(refused(Some(0), WEEKS, &price(48_000)), [Blocker::NothingReserved]);
    assert_eq!(refused(Some(1), WEEKS, &unpriced), [Blocker::PriceUnknown { why: "no row".into() }]);
    assert!(matches!(refused(Some(1), 100, &price(48_000))[..], [Blocker::TooEarly { .. }]));
    assert!(matches!(refused(Some(1), 0, &price(48_000))[..], [Blocker::TooEarly { .. }]));
    // 6,849 × 730 are 4.99977.
    assert!(matches!(refused(Some(1), WEEKS, &price(6_849))[..], [Blocker::SavesTooLittle { .. }]));
    assert!(reserving(Some(1), WEEKS, &price(6_850), |_| 0).is_ok());
}

/// What the tests change: 4 vCPUs and 16 GiB on m5.xlarge, 20 attempts of ten hours with a core and 4 GiB.
struct Asked {
    request: Option<Request>,
    attempts: Vec<Attempt>,
    observed: Observed,
    offer: Option<Offer>,
}

fn asked() -> Asked {
    let attempt = Attempt {
        lasted: SignedDuration::from_hours(10),
        milli_cores: Some(900),
        memory_peak_bytes: Some(4 * GIB),
        out_of_memory: Some(false),
    };
    Asked {
        request: Some(Request { milli_vcpus: 4_000, memory_mib: 16_384 }),
        attempts: vec![attempt; 20],
        observed: record(WEEKS, |_, _| ()).observed(),
        offer: catalogue().offer("m5.xlarge").cloned(),
    }
}

fn judged(asked: &Asked) -> Result<Recommendation, NotRecommended> {
    let Asked { request, attempts, observed, offer } = asked;
    let offer = offer.as_ref();
    let input =
        RequestInput { resource: &key(), name: "align:7", request: *request, attempts, observed: *observed, offer };
    request::recommend(&input, &Policy::default())
}

fn to(asked: &Asked) -> (u64, u64) {
    match judged(asked).unwrap().change {
        Change::Request { to, .. } => (to.milli_vcpus, to.memory_mib),
        other => panic!("{other:?}"),
    }
}

fn blockers(change: impl FnOnce(&mut Asked)) -> Vec<Blocker> {
    let mut asked = asked();
    change(&mut asked);
    judged(&asked).unwrap_err().blockers
}

#[test]
fn a_request_is_lowered_to_the_most_that_was_used_with_headroom() {
    // 900 thousandths with a fifth free are 1,125: 2 vCPUs. 4,096 MiB are 5,120.
    assert_eq!(to(&asked()), (2_000, 5_120));
    // 20 × 10 of 672 hours at 140.16 a month fill a whole machine, and then half of one: 140,160,000 × 200 ÷ 672 ÷ 2
    let recommended = judged(&asked()).unwrap();
    assert_eq!(recommended.saving.unwrap().list_per_month, Usd::from_micros(20_857_142));
    assert_eq!(recommended.undo.to_string(), "let it ask for 4 vCPUs and 16384 MiB again");
    // One attempt of 20 needed more, once.
    let mut spike = asked();
    spike.attempts[7].memory_peak_bytes = Some(8 * GIB);
    assert_eq!(to(&spike), (2_000, 10_240));
    // With 12 GiB it would take fifteen sixteenths of the machine for its memory, and 2.607142 a month are not worth it.
    spike.attempts[7].memory_peak_bytes = Some(12 * GIB);
    let refused = judged(&spike).unwrap_err().blockers;
    assert!(matches!(refused[..], [Blocker::SavesTooLittle { saving, .. }] if saving == Usd::from_micros(2_607_142)));
    // Cores were not measured: they stay, and so does what a job takes of the machine.
    let unmeasured = blockers(|asked| asked.attempts.iter_mut().for_each(|one| one.milli_cores = None));
    assert!(matches!(unmeasured[..], [Blocker::SavesTooLittle { saving, .. }] if saving == Usd::from_micros(0)));
    // On a machine with as much memory for each vCPU as it asks for half as many of, memory is the larger part.
    let mut memory = asked();
    memory.request = Some(Request { milli_vcpus: 1_000, memory_mib: 16_384 });
    memory.attempts.iter_mut().for_each(|one| one.milli_cores = None);
    let recommended = judged(&memory).unwrap();
    // From the whole machine to 5,120 of 16,384 MiB: 11 sixteenths less of 41.714285.
    assert_eq!(recommended.saving.unwrap().list_per_month, Usd::from_micros(28_678_571));
    assert!(recommended.confidence.doubts.contains(&Doubt::CoresNotMeasured));
}

#[test]
fn a_task_that_was_short_of_memory_gets_more_and_never_less() {
    let mut short = asked();
    short.attempts[3].out_of_memory = Some(true);
    assert_eq!(to(&short), (4_000, 24_576), "half as much again");
    let recommended = judged(&short).unwrap();
    assert_eq!((recommended.saving.clone(), recommended.risks.clone()), (None, vec![Risk::FewerAtOnce]));
    // It needs neither days, nor runs, nor prices.
    short.attempts.truncate(4);
    short.observed = record(3, |_, _| ()).observed();
    short.offer = None;
    assert_eq!(to(&short), (4_000, 24_576));
    // Without a limit it was seen to use 30 GiB: 37.5 GiB with the headroom.
    short.attempts[0].memory_peak_bytes = Some(30 * GIB);
    assert_eq!(to(&short), (4_000, 38_400));
    // It comes first, and excludes nothing of another definition.
    let mut other = judged(&asked()).unwrap();
    if let Change::Request { of, .. } = &mut other.change {
        *of = "sort:2".into();
    }
    let groups = rank(vec![other, recommended]);
    assert_eq!(groups.iter().map(|group| group.part.clone().unwrap()).collect::<Vec<_>>(), ["align:7", "sort:2"]);
}

#[test]
fn what_is_not_known_of_attempts_lowers_nothing() {
    let not_measured = |what: &str| vec![Blocker::NotMeasured { what: what.into() }];
    assert_eq!(blockers(|asked| asked.attempts.truncate(19)), [Blocker::TooFewRuns { runs: 19, least: 20 }]);
    let memory = blockers(|asked| asked.attempts.iter_mut().take(2).for_each(|one| one.memory_peak_bytes = None));
    assert_eq!(memory, not_measured("the memory of its attempts"));
    let ends = blockers(|asked| asked.attempts.iter_mut().take(2).for_each(|one| one.out_of_memory = None));
    assert_eq!(ends, not_measured("whether its attempts were short of memory"));
    assert_eq!(blockers(|asked| asked.request = None), [Blocker::FactUnknown { fact: "what it asks for".into() }]);
    assert!(matches!(blockers(|asked| asked.offer = None)[..], [Blocker::PriceUnknown { .. }]));
    let needed = Request { milli_vcpus: 2_000, memory_mib: 5_120 };
    assert_eq!(blockers(|asked| asked.request = Some(needed)), [Blocker::RequestIsNeeded { request: needed }]);
    let early = blockers(|asked| asked.observed = record(100, |_, _| ()).observed());
    assert!(matches!(early[..], [Blocker::TooEarly { .. }]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The oracle counts the hours.
    #[test]
    fn a_lower_reserve_is_exceeded_in_few_hours_and_more_use_never_lowers_it_further(
        used in vec(0..48_u32, 168..200), more in vec(0..16_u32, 200), every in 1..30_usize,
    ) {
        // Few hours are used, or nothing would be lowered.
        let used: Vec<u32> = used.iter().enumerate().map(|(at, used)| if at % every == 0 { *used } else { used / 8 }).collect();
        let hours = u32::try_from(used.len()).unwrap();
        let of = |used: &[u32]| reserving(Some(32), hours, &price(48_000), |at| used[usize::try_from(at).unwrap()]);
        let lowered = |used: &[u32]| of(used).map_or((32, Usd::from_micros(0)), |recommended| min_vcpus(&recommended));
        let (to, saving) = lowered(&used);
        if to < 32 {
            prop_assert!(used.iter().filter(|used| **used > to).count() * 20 <= used.len());
        }
        let busier: Vec<u32> = used.iter().zip(&more).map(|(used, more)| used + more).collect();
        let (busier_to, busier_saving) = lowered(&busier);
        prop_assert!(busier_to >= to && busier_saving <= saving);
    }

    #[test]
    fn a_request_leaves_the_headroom_above_every_attempt_and_more_use_never_lowers_it(
        peaks in vec((1..16_000_u64, 1..4_000_u64), 20..40), more in vec((0..4_000_u64, 0..1_000_u64), 40),
    ) {
        let with = |of: &dyn Fn(usize) -> (u64, u64)| {
            let mut asked = asked();
            asked.attempts = vec![asked.attempts[0].clone(); peaks.len()];
            for (at, attempt) in asked.attempts.iter_mut().enumerate() {
                let (mib, milli_cores) = of(at);
                attempt.memory_peak_bytes = Some(mib * (1 << 20));
                attempt.milli_cores = Some(milli_cores);
            }
            judged(&asked).ok().map_or((4_000, 16_384), |recommended| match recommended.change {
                Change::Request { to, .. } => (to.milli_vcpus, to.memory_mib),
                other => panic!("{other:?}"),
            })
        };
        let (vcpus, mib) = with(&|at| peaks[at]);
        if (vcpus, mib) != (4_000, 16_384) {
            let leaves = |offered: u64, asked_for: u64, needed: u64| offered == asked_for || needed * 100 <= offered * 80;
            prop_assert!(peaks.iter().all(|(peak, cores)| leaves(mib, 16_384, *peak) && leaves(vcpus, 4_000, *cores)));
        }
        let after = with(&|at| (peaks[at].0 + more[at].0, peaks[at].1 + more[at].1));
        prop_assert!(after.0 >= vcpus && after.1 >= mib, "{after:?} after {vcpus} {mib}");
    }
}
