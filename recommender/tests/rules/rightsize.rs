//! The *rightsize* rule: cases computed by hand, each with the trap that it is about.

use jiff::SignedDuration;
use model::{HourlyRate, Usd, machine::Machine};
use recommender::{
    blocker::{Blocker, NotRecommended, Unfit},
    catalogue::{Architecture, Platform, Rate, Worth},
    demand::{Cpus, Demand, Flow, Hour},
    fit::{Dimension, Misfit, Shortage},
    recommendation::{Change, Doubt, Level, Recommendation, Risk, Undo},
};

use crate::support::{
    self, Case, GIB, WEEKS, blockers, gpus, judged, mbit, minutes_at, record, to, too_small, why_not,
};

#[test]
fn a_quiet_machine_becomes_the_cheapest_that_would_have_done() {
    // 0.1 cores and 2 GiB: a t3.large has 2 vCPUs with a baseline of 0.6, and 8 GiB.
    let case = Case::of("m5.2xlarge", record(WEEKS, |_, _| ()));
    let recommended = judged(&case).unwrap();
    assert_eq!(recommended.change, Change::Rightsize { from: "m5.2xlarge".into(), to: "t3.large".into() });
    // (0.384 - 0.0832) × 730
    assert_eq!(recommended.saving.as_ref().unwrap().list_per_month, Usd::from_micros(219_584_000));
    assert_eq!(recommended.saving.as_ref().unwrap().effective_per_month, Worth::Known(Usd::from_micros(219_584_000)));
    assert_eq!(recommended.undo, Undo::ChangeBack { machine_type: "m5.2xlarge".into() });
    assert_eq!(recommended.risks.iter().filter(|risk| matches!(risk, Risk::Credits | Risk::Stopped)).count(), 2);
    assert_eq!(recommended.confidence.doubts, [Doubt::OtherProcessor]);
    assert_eq!(recommended.confidence.level, Level::Medium);
    let same_family = judged(&case.offering(&["m5.2xlarge", "m5.xlarge", "m5.large"])).unwrap();
    assert_eq!(same_family.change, Change::Rightsize { from: "m5.2xlarge".into(), to: "m5.large".into() });
    assert_eq!((same_family.confidence.level, same_family.confidence.doubts), (Level::High, vec![]));
}

#[test]
fn a_memory_spike_once_a_day_counts_in_full() {
    let spike = |gib_tenths: u64| {
        let bytes = gib_tenths * GIB / 10;
        Case::of(
            "m5.2xlarge",
            record(WEEKS, move |at, hour| {
                if at % 24 == 3 {
                    hour.memory_peak_bytes = Some(bytes);
                }
            }),
        )
    };
    // 80 % of 16 GiB are 12.8; 13 GiB are needed once a day.
    assert_eq!(to(&spike(128)), "t3.xlarge");
    assert_eq!(to(&spike(129)), "r5.xlarge", "the one with 32 GiB and 4 vCPUs");
    let case = spike(130).offering(&["m5.2xlarge", "m5.xlarge"]);
    let needed = 13 * GIB;
    // 16 GiB × 80 / 100, in whole bytes.
    assert_eq!(why_not(&case, "m5.xlarge"), too_small(Dimension::Memory, needed, 13_743_895_347));
}

#[test]
fn what_is_known_of_hours_before_an_upgrade_speaks_against_a_change() {
    let of = |change: fn(&mut Hour)| {
        let mut since = record(WEEKS, |_, _| ());
        let mut before = Hour::unmeasured(since.hours[0].begin - SignedDuration::from_hours(9));
        change(&mut before);
        since.earlier = vec![before];
        Case::of("m5.2xlarge", since).offering(&["m5.2xlarge", "m5.xlarge"])
    };
    assert_eq!(to(&of(|_| ())), "m5.xlarge", "what is not known of them takes nothing away");
    let understated = Unfit::Misfit(Misfit::Understated { shortage: Shortage::OomKills(1) });
    assert_eq!(why_not(&of(|hour| hour.oom_kills = Some(1)), "m5.xlarge"), understated);
    // More than its four cores.
    assert!(matches!(why_not(&of(|hour| hour.milli_cores = minutes_at(60, 4_100)), "m5.xlarge"), Unfit::Failed(_)));
}

#[test]
fn memory_that_was_short_before_is_not_taken_away() {
    let killed = Case::of("m5.2xlarge", record(WEEKS, |at, hour| hour.oom_kills = Some(u64::from(at == 100))));
    let understated = |shortage| Unfit::Misfit(Misfit::Understated { shortage });
    let of_m5 = killed.clone().offering(&["m5.2xlarge", "m5.xlarge"]);
    assert_eq!(why_not(&of_m5, "m5.xlarge"), understated(Shortage::OomKills(1)));
    assert_eq!(to(&killed), "r5.xlarge", "it has no less memory");
    let swapped = Case::of("m5.2xlarge", record(WEEKS, |at, hour| hour.swap_pages = Some(u64::from(at < 2) * 4)));
    assert_eq!(
        why_not(&swapped.offering(&["m5.2xlarge", "m5.xlarge"]), "m5.xlarge"),
        understated(Shortage::Swapped(8))
    );
}

#[test]
fn cpu_time_that_was_short_before_is_not_taken_away() {
    let understated = |shortage| Unfit::Misfit(Misfit::Understated { shortage });
    let case = |change: fn(u32, &mut Hour)| {
        Case::of("m5.2xlarge", record(WEEKS, change)).offering(&["m5.2xlarge", "m5.xlarge"])
    };
    // 8 vCPUs: 800 thousandths of a task may wait, for an hour 2,880 s.
    let waits = case(|at, hour| hour.run_queue_delay_ms = Some(if at == 5 { 2_880_001 } else { 0 }));
    assert_eq!(why_not(&waits, "m5.xlarge"), understated(Shortage::Waiting(801)));
    assert_eq!(to(&case(|_, hour| hour.run_queue_delay_ms = Some(2_880_000))), "m5.xlarge");
    // Of each vCPU 10 thousandths may be withheld: 80, for an hour 288 s.
    let throttled = case(|at, hour| hour.throttled_ms = Some(if at == 5 { 288_001 } else { 0 }));
    assert_eq!(why_not(&throttled, "m5.xlarge"), understated(Shortage::Throttled(81)));
    assert_eq!(to(&case(|_, hour| hour.throttled_ms = Some(288_000))), "m5.xlarge");
    let stolen = case(|_, hour| hour.steal_ms = Some(576_000));
    assert_eq!(why_not(&stolen, "m5.xlarge"), understated(Shortage::Stolen(160)));
}

#[test]
fn high_percentiles_get_headroom_and_the_peak_must_fit() {
    let case = |minutes: u64, milli_cores: u64| {
        let steady = record(WEEKS, move |_, hour| hour.milli_cores = minutes_at(minutes, milli_cores));
        Case::of("m5.4xlarge", steady).offering(&["m5.4xlarge", "m5.2xlarge"])
    };
    // 80 % of 8 vCPUs are 6,400 thousandths.
    assert_eq!(to(&case(30, 6_400)), "m5.2xlarge");
    assert_eq!(why_not(&case(30, 6_401), "m5.2xlarge"), too_small(Dimension::Cpu, 6_401, 6_400));
    // Above 6,400 for half a minute in four hours (2 thousandths of the time) is above the 99th percentile: the peak needs no headroom, but must fit.
    let rare = |milli_cores: u64| {
        let mut case = case(30, 100);
        case.record.hours.iter_mut().step_by(4).for_each(|hour| {
            hour.milli_cores = [(milli_cores, 30_000), (100, 3_570_000)].into_iter().collect();
        });
        case
    };
    assert_eq!(to(&rare(8_000)), "m5.2xlarge");
    assert_eq!(why_not(&rare(8_001), "m5.2xlarge"), too_small(Dimension::Cpu, 8_001, 8_000));
}

#[test]
fn disks_of_the_host_and_accelerators_are_kept() {
    let mut local = Case::of("m5.2xlarge", record(WEEKS, |_, _| ()));
    local.offer("m5.2xlarge").machine_type.local_disk_gib = Some(300);
    assert_eq!(blockers(&local), [Blocker::LocalDisks { gib: 300 }]);
    local.offer("m5.2xlarge").machine_type.local_disk_gib = None;
    assert!(matches!(blockers(&local)[..], [Blocker::FactUnknown { .. }]));
    // Four GPUs and one: how many of them were used is not known.
    let mut gpu = Case::of("m5.2xlarge", record(WEEKS, |_, _| ())).offering(&["m5.2xlarge", "m5.xlarge", "m5.large"]);
    gpu.offer("m5.2xlarge").machine_type.accelerators = gpus(4);
    gpu.offer("m5.xlarge").machine_type.accelerators = gpus(1);
    for name in ["m5.xlarge", "m5.large"] {
        assert_eq!(why_not(&gpu, name), Unfit::Misfit(Misfit::OtherAccelerators));
    }
    gpu.offer("m5.xlarge").machine_type.accelerators = gpus(4);
    assert_eq!(to(&gpu), "m5.xlarge");
    gpu.offer("m5.xlarge").machine_type.accelerators = None;
    gpu.offer("m5.2xlarge").machine_type.accelerators = None;
    assert_eq!(why_not(&gpu, "m5.xlarge"), Unfit::Misfit(Misfit::OtherAccelerators), "two unknowns are not the same");
    let rdma = Case::of("m5.2xlarge", record(WEEKS, |_, hour| hour.rdma_bytes = Some(1)));
    assert_eq!(blockers(&rdma), [Blocker::Rdma { bytes: u64::from(WEEKS) }]);
}

#[test]
fn a_machine_that_was_set_up_with_other_cpus_than_its_type_is_not_weighed() {
    let with = |cpus: fn(usize) -> Option<u32>| {
        let mut case = Case::of("m5.2xlarge", record(WEEKS, |_, _| ()));
        case.record.hours.iter_mut().enumerate().for_each(|(at, hour)| hour.cpus = cpus(at));
        case
    };
    let other = |fewest, most| {
        let cpus = Cpus { fewest, most };
        [Blocker::OtherCpus { cpus, machine_type: "m5.2xlarge".into(), vcpus: 8 }]
    };
    // Four whole cores, with hyper-threading off, of which a m5.xlarge has two.
    let whole = with(|_| Some(4));
    assert_eq!(blockers(&whole), other(4, 4));
    assert!(blockers(&whole)[0].to_string().starts_with("it ran with 4 CPUs, and its type m5.2xlarge has 8 vCPUs"));
    assert_eq!(blockers(&with(|at| Some(if at == 7 { 4 } else { 8 }))), other(4, 8));
    assert_eq!(blockers(&with(|_| Some(9))), other(9, 9));
    let unknown = [Blocker::NotMeasured { what: "the number of its CPUs".into() }];
    assert_eq!(blockers(&with(|_| None)), unknown);
    assert_eq!(blockers(&with(|at| (at % 100 >= 6).then_some(8))), unknown, "known in 94 % of the hours");
    assert_eq!(to(&with(|at| (at % 100 >= 4).then_some(8))), "t3.large");
}

#[test]
fn network_and_disk_are_held_to_baseline_and_burst() {
    let of = |flow: Flow| {
        let record = record(WEEKS, move |at, hour| {
            if at == 50 {
                hour.network = Some(flow);
            }
        });
        Case::of("m5.2xlarge", record).offering(&["m5.2xlarge", "m5.xlarge", "t3.xlarge"])
    };
    // 80 % of 1,250 Mbit/s are 1,000. The burst is 10,000 as before, so any peak may come.
    assert_eq!(to(&of(Flow { mean: mbit(1_000), peak: mbit(9_900) })), "m5.xlarge");
    let dense = of(Flow { mean: mbit(1_001), peak: mbit(1_001) });
    assert_eq!(why_not(&dense, "m5.xlarge"), too_small(Dimension::Network, mbit(1_001), mbit(1_000)));
    // A t3.xlarge bursts to 5,000 Mbit/s: 4,000 may be used.
    let peak = of(Flow { mean: mbit(100), peak: mbit(4_001) }).offering(&["m5.2xlarge", "t3.xlarge"]);
    assert_eq!(why_not(&peak, "t3.xlarge"), too_small(Dimension::NetworkBurst, mbit(4_001), mbit(4_000)));
    let mut unsaid = of(Flow { mean: 1, peak: 1 });
    unsaid.offer("m5.xlarge").machine_type.disk.baseline = None;
    unsaid.offer("t3.xlarge").machine_type.network.burst = None;
    let unknown = |what| Unfit::Misfit(Misfit::LimitUnknown { what });
    assert_eq!(why_not(&unsaid, "m5.xlarge"), unknown(Dimension::Disk));
    assert_eq!(why_not(&unsaid, "t3.xlarge"), unknown(Dimension::NetworkBurst));
    let mut many = of(Flow { mean: 1, peak: 1 });
    many.offer("m5.xlarge").machine_type.interfaces = Some(3);
    many.interfaces = Some(4);
    assert_eq!(
        why_not(&many.clone().offering(&["m5.2xlarge", "m5.xlarge"]), "m5.xlarge"),
        too_small(Dimension::Interfaces, 4, 3)
    );
}

#[test]
fn other_processors_platforms_and_architectures_are_told_apart() {
    let mut case = Case::of("m5.2xlarge", record(WEEKS, |_, _| ())).offering(&["m5.2xlarge", "t3.xlarge"]);
    case.offer("t3.xlarge").machine_type.mhz = None;
    assert_eq!(why_not(&case, "t3.xlarge"), Unfit::Misfit(Misfit::SpeedUnknown));
    case.offer("t3.xlarge").machine_type.mhz = Some(3_100);
    case.offer("t3.xlarge").machine_type.platform = Platform::Hypervisor("xen".into());
    assert_eq!(why_not(&case, "t3.xlarge"), Unfit::Misfit(Misfit::OtherPlatform));
    for name in ["m5.2xlarge", "t3.xlarge"] {
        case.offer(name).machine_type.platform = Platform::Unknown;
    }
    assert_eq!(why_not(&case, "t3.xlarge"), Unfit::Misfit(Misfit::OtherPlatform), "two unknowns are not the same");
    case.offer("t3.xlarge").machine_type.architecture = Architecture::Arm64;
    let other = Misfit::OtherArchitecture { is: Architecture::Arm64, wanted: Architecture::X86_64 };
    assert_eq!(why_not(&case, "t3.xlarge"), Unfit::Misfit(other));
}

#[test]
fn what_the_zone_does_not_offer_or_nobody_priced_is_not_recommended() {
    let quiet = || Case::of("m5.2xlarge", record(WEEKS, |_, _| ()));
    let here = quiet().offering(&["m5.2xlarge"]);
    assert_eq!(blockers(&here), [Blocker::NothingFits { zone: "us-east-1a".into() }]);
    let gone = quiet().offering(&["m5.xlarge"]);
    assert_eq!(blockers(&gone), [Blocker::NotOffered { machine_type: "m5.2xlarge".into(), zone: "us-east-1a".into() }]);
    let mut unpriced = quiet().offering(&["m5.2xlarge", "m5.xlarge", "m5.large"]);
    unpriced.offer("m5.large").prices.list = Rate::Unknown("two rows".into());
    assert_eq!(to(&unpriced), "m5.xlarge");
    unpriced.offer("m5.2xlarge").prices.list = Rate::Unknown("no row".into());
    assert_eq!(blockers(&unpriced), [Blocker::PriceUnknown { why: "no row".into() }]);
    // Of the same price the larger one.
    let mut tie = quiet().offering(&["m5.2xlarge", "m5.xlarge", "r5.xlarge"]);
    tie.offer("r5.xlarge").prices = support::price(192_000);
    assert_eq!(to(&tie), "r5.xlarge");
    let mut same = quiet().offering(&["m5.2xlarge", "m5.xlarge"]);
    same.offer("m5.xlarge").prices = support::price(384_000);
    assert_eq!(blockers(&same), [Blocker::NothingFits { zone: "us-east-1a".into() }], "the same price is no saving");
    // 377,151 × 730 are 4.99977 dollars less than 384,000 × 730.
    same.offer("m5.xlarge").prices = support::price(377_151);
    assert!(
        matches!(why_not(&same, "m5.xlarge"), Unfit::NotWorthIt(why) if matches!(*why, Blocker::SavesTooLittle { .. }))
    );
    same.offer("m5.xlarge").prices = support::price(377_150);
    assert_eq!(to(&same), "m5.xlarge");
}

#[test]
fn what_is_paid_in_any_case_saves_nothing_and_what_is_not_known_of_the_bill_is_said() {
    let mut reserved = Case::of("m5.2xlarge", record(WEEKS, |_, _| ())).offering(&["m5.2xlarge", "m5.xlarge"]);
    reserved.offer("m5.2xlarge").prices.effective = Rate::Known(HourlyRate::from_micros(0));
    match why_not(&reserved, "m5.xlarge") {
        Unfit::NotWorthIt(why) => assert_eq!(
            *why,
            Blocker::Covered { list: Usd::from_micros(140_160_000), effective: Usd::from_micros(-140_160_000) }
        ),
        other => panic!("{other:?}"),
    }
    // Also where a site thinks nothing too little: nothing is saved by the bill.
    reserved.policy.least_saving = Usd::from_micros(0);
    reserved.offer("m5.xlarge").prices.effective = Rate::Known(HourlyRate::from_micros(0));
    assert!(
        matches!(why_not(&reserved, "m5.xlarge"), Unfit::NotWorthIt(why) if matches!(*why, Blocker::Covered { .. }))
    );
    reserved.offer("m5.2xlarge").prices.effective = Rate::Unknown("commitments were not read".into());
    let recommended = judged(&reserved).unwrap();
    assert_eq!(
        recommended.saving.as_ref().unwrap().effective_per_month,
        Worth::Unknown("commitments were not read".into())
    );
    assert_eq!(recommended.confidence.doubts, [Doubt::BillUnknown { why: "commitments were not read".into() }]);
}

#[test]
fn a_machine_that_may_not_be_stopped_is_not_changed() {
    let mut member = Case::of("m5.2xlarge", record(WEEKS, |_, _| ()));
    member.facts().autoscaling = model::machine::AutoScaling::Member("workers".into());
    assert!(matches!(blockers(&member)[..], [Blocker::Guarded { .. }]));
    let own = Case { machine: Machine::OnPrem, ..member.clone() };
    assert_eq!(blockers(&own)[0], Blocker::OnPrem);
    let google = Case { machine: Machine::NotKnown("gcp".into()), ..member };
    assert_eq!(blockers(&google)[0], Blocker::ProviderNotKnown { provider: "gcp".into() });
}

#[test]
fn a_recommendation_survives_storage() {
    let recommended = judged(&Case::of("m5.2xlarge", record(WEEKS, |_, _| ()))).unwrap();
    let text = serde_json::to_string(&recommended).unwrap();
    assert_eq!(serde_json::from_str::<Recommendation>(&text).unwrap(), recommended);
    let refused = judged(&Case::of("m5.2xlarge", record(WEEKS, |_, hour| hour.disk = None))).unwrap_err();
    let text = serde_json::to_string(&refused).unwrap();
    assert_eq!(serde_json::from_str::<NotRecommended>(&text).unwrap(), refused);
    assert!(Demand::of(&record(0, |_, _| ())).cores.is_none());
}
