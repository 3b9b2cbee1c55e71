use super::*;
use proptest::prelude::*;

const HOUR_MS: u64 = 3_600_000;
const CORE_HOUR: u64 = 3_600_000_000_000;
/// A GiB for an hour.
const GIB_HOUR: u64 = (1 << 20) * HOUR_MS;

/// Two cores and 8 GiB for a whole hour, of which so many core-seconds and so much memory were in use.
fn machine(seconds: u64, in_use: (u64, u64), used: Vec<Used>) -> Seen {
    let of = |capacity: u64, in_use: u64| Measure { capacity: capacity / 3_600 * seconds, in_use, ms: seconds * 1_000 };
    Seen::Measured {
        seconds,
        cpu: of(2 * CORE_HOUR, in_use.0),
        memory: Some(of(8 * GIB_HOUR, in_use.1)),
        gpu: Measure { ms: seconds * 1_000, ..Measure::default() },
        used,
    }
}

fn used(cpu_ns: u64, memory_kib_ms: u64) -> Used {
    Used { cpu_ns: Some(cpu_ns), memory_kib_ms: Some(memory_kib_ms), ..Used::default() }
}

fn parts(bill: u64, billed_s: u64, seen: &Seen) -> Vec<(To, u64)> {
    split(bill, billed_s, seen, &Weights::default()).into_iter().map(|part| (part.to, part.micros)).collect()
}

/// $0.096 an hour. Cores weigh 2 × 31,611 = 63,222 and memory 8 × 4,237 = 33,896 of 97,118: $0.062494 and $0.033506.
#[test]
fn an_hour_is_split_over_cores_and_memory_and_then_over_what_used_each() {
    let seen = machine(3_600, (CORE_HOUR, 2 * GIB_HOUR), vec![used(CORE_HOUR, 2 * GIB_HOUR)]);
    // Half of the cores: 31,247. A quarter of the memory: 8,376.5, and of two equal remainders the first gets the micro-dollar.
    assert_eq!(parts(96_000, 3_600, &seen), [(To::Used(0), 31_247 + 8_377), (To::Idle, 31_247 + 25_129)]);
}

#[test]
fn what_is_in_use_and_nobodys_is_told_as_that_and_not_as_idle() {
    let seen = machine(3_600, (CORE_HOUR, 4 * GIB_HOUR), vec![used(CORE_HOUR / 2, 2 * GIB_HOUR)]);
    let expected = [(To::Used(0), 15_624 + 8_377), (To::Unowned, 15_623 + 8_376), (To::Idle, 31_247 + 16_753)];
    assert_eq!(parts(96_000, 3_600, &seen), expected);
}

/// Half of the hour was seen: half of the bill is nobody's, and the other half is split as the half that was seen.
#[test]
fn what_no_agent_saw_is_never_spread() {
    let busy = machine(1_800, (CORE_HOUR, 0), vec![used(CORE_HOUR, 0)]);
    assert_eq!(parts(96_000, 3_600, &busy), [(To::Used(0), 31_247), (To::Idle, 16_753), (To::Unattributed, 48_000)]);
    for seen in [Seen::Not("no agent".into()), machine(0, (0, 0), Vec::new())] {
        assert_eq!(parts(96_000, 3_600, &seen), [(To::Unattributed, 96_000)]);
    }
    // Started in mid-hour, and seen from then on, and for a moment longer.
    let seen = machine(1_810, (0, 0), Vec::new());
    assert_eq!(parts(48_000, 1_800, &seen), [(To::Idle, 48_000)]);
}

#[test]
fn what_is_reserved_and_not_used_is_a_part_of_its_own() {
    let reserving = Used {
        reserved_cpu_ns: Some(CORE_HOUR),
        reserved_memory_kib_ms: Some(GIB_HOUR),
        ..used(CORE_HOUR / 4, 2 * GIB_HOUR)
    };
    let seen = machine(3_600, (CORE_HOUR / 4, 2 * GIB_HOUR), vec![reserving]);
    // An eighth of the cores is used and three eighths are reserved; of memory more is used than reserved.
    let expected = [(To::Used(0), 7_812 + 8_377), (To::Reserved(0), 23_435), (To::Idle, 31_247 + 25_129)];
    assert_eq!(parts(96_000, 3_600, &seen), expected);
}

/// 4 cores (126,444), 16 GiB (67,792) and a GPU (950,000): of $1.144236 each is its weight in micro-dollars.
#[test]
fn a_gpu_is_a_resource_of_its_own() {
    let with = |busy: u64, told: Option<u64>| Seen::Measured {
        seconds: 3_600,
        cpu: Measure { capacity: 4 * CORE_HOUR, in_use: 0, ms: HOUR_MS },
        memory: Some(Measure { capacity: 16 * GIB_HOUR, in_use: 0, ms: HOUR_MS }),
        gpu: Measure { capacity: CORE_HOUR, in_use: busy, ms: HOUR_MS },
        used: vec![Used { gpu_ns: told, ..used(0, 0) }],
    };
    let idle = 126_444 + 67_792;
    let half = CORE_HOUR / 2;
    assert_eq!(parts(1_144_236, 3_600, &with(half, Some(half))), [(To::Used(0), 475_000), (To::Idle, idle + 475_000)]);
    assert_eq!(parts(1_144_236, 3_600, &with(half, None)), [(To::Unowned, 475_000), (To::Idle, idle + 475_000)]);
}

#[test]
fn where_memory_was_not_measured_cores_are_all_that_counts() {
    let cpu = Measure { capacity: 2 * CORE_HOUR, in_use: CORE_HOUR, ms: HOUR_MS };
    let gpu = Measure { ms: HOUR_MS, ..Measure::default() };
    let seen = Seen::Measured { seconds: 3_600, cpu, memory: None, gpu, used: vec![used(CORE_HOUR, 0)] };
    assert_eq!(parts(96_000, 3_600, &seen), [(To::Used(0), 48_000), (To::Idle, 48_000)]);
}

/// More than there is, as samples a moment apart may tell: nothing is idle, and all is split by what was told.
#[test]
fn more_use_than_there_is_takes_all() {
    let seen =
        machine(3_600, (2 * CORE_HOUR, 0), vec![used(3 * CORE_HOUR, 6 * GIB_HOUR), used(CORE_HOUR, 6 * GIB_HOUR)]);
    assert_eq!(parts(96_000, 3_600, &seen), [(To::Used(0), 46_871 + 16_753), (To::Used(1), 15_623 + 16_753)]);
}

/// The rule in floating point, part by part, from its definition alone.
fn by_definition(bill: f64, billed_s: u64, seen: &Seen, to: To, weights: &Weights) -> f64 {
    let Seen::Measured { seconds, cpu, memory, gpu, used } = seen else { unreachable!("made by the test") };
    let seen_part = (*seconds).min(billed_s) as f64 / billed_s as f64;
    let nothing = Measure::default();
    let memory = memory.as_ref().unwrap_or(&nothing);
    type Of = fn(&Used) -> (Option<u64>, Option<u64>);
    let resources: [(&Measure, f64, Of); 3] = [
        (cpu, f64::from(weights.core) / 3.6e12, |used| (used.cpu_ns, used.reserved_cpu_ns)),
        (gpu, f64::from(weights.gpu) / 3.6e12, |used| (used.gpu_ns, None)),
        (memory, f64::from(weights.gib) / 3.6e6 / 1_048_576.0, |used| {
            (used.memory_kib_ms, used.reserved_memory_kib_ms)
        }),
    ];
    let rate = |measure: &Measure, weight: f64| {
        if measure.ms == 0 { 0.0 } else { weight * measure.capacity as f64 / measure.ms as f64 }
    };
    let all: f64 = resources.iter().map(|(measure, weight, _)| rate(measure, *weight)).sum();
    if all == 0.0 || seen_part == 0.0 {
        return if to == To::Unattributed { bill } else { 0.0 };
    }
    if to == To::Unattributed {
        return bill * (1.0 - seen_part);
    }
    let of_resource = |(measure, weight, of): &(&Measure, f64, Of)| {
        let use_of = |used: &Used| of(used).0.unwrap_or(0) as f64;
        let unused = |used: &Used| (of(used).1.unwrap_or(0) as f64 - use_of(used)).max(0.0);
        let told: f64 = used.iter().map(use_of).sum();
        let unowned = (measure.in_use as f64 - told).max(0.0);
        let idle = (measure.capacity as f64 - told - used.iter().map(unused).sum::<f64>() - unowned).max(0.0);
        let whole = told + used.iter().map(unused).sum::<f64>() + unowned + idle;
        let part = match to {
            To::Used(at) => use_of(&used[at]),
            To::Reserved(at) => unused(&used[at]),
            To::Unowned => unowned,
            To::Idle => idle,
            To::Unattributed => 0.0,
        };
        if whole == 0.0 { 0.0 } else { bill * seen_part * rate(measure, *weight) / all * part / whole }
    };
    resources.iter().map(of_resource).sum()
}

/// What a machine of up to 192 cores, 2 TiB and 8 GPUs may show of an hour.
pub(crate) fn any_seen() -> impl Strategy<Value = Seen> {
    let amounts = (0..=192_u64, 0..=2_048_u64, 0..=8_u64, 1..=3_700_u64, any::<bool>());
    amounts.prop_flat_map(|(cores, gib, gpus, seconds, measured)| {
        let ms = seconds * 1_000;
        let (cpu, memory, gpu) = (cores * ms * 1_000_000, gib * (1 << 20) * ms, gpus * ms * 1_000_000);
        let up_to = |most: u64| proptest::option::weighted(0.9, 0..=most / 2);
        let one =
            (up_to(cpu), up_to(memory), up_to(gpu), proptest::option::of(0..=cpu), proptest::option::of(0..=memory));
        let one = one.prop_map(|(cpu_ns, memory_kib_ms, gpu_ns, reserved_cpu_ns, reserved_memory_kib_ms)| Used {
            cpu_ns,
            memory_kib_ms,
            gpu_ns,
            reserved_cpu_ns,
            reserved_memory_kib_ms,
        });
        (proptest::collection::vec(one, 0..6), 0..=cpu, 0..=memory, 0..=gpu).prop_map(
            move |(used, cpu_used, memory_used, gpu_used)| {
                let of = |capacity, in_use| Measure { capacity, in_use, ms };
                let memory = measured.then(|| of(memory, memory_used));
                Seen::Measured { seconds, cpu: of(cpu, cpu_used), memory, gpu: of(gpu, gpu_used), used }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_parts_come_to_the_bill_and_each_is_what_the_rule_says(
        seen in any_seen(),
        bill in 0..100_000_000_u64,
        billed_s in 1..=3_660_u64,
    ) {
        let weights = Weights::default();
        let parts = split(bill, billed_s, &seen, &weights);
        prop_assert_eq!(parts.iter().map(|part| part.micros).sum::<u64>(), bill);
        let Seen::Measured { used, .. } = &seen else { unreachable!("made so") };
        let subjects = (0..used.len()).flat_map(|at| [To::Used(at), To::Reserved(at)]);
        for to in subjects.chain([To::Unowned, To::Idle, To::Unattributed]) {
            let told = parts.iter().find(|part| part.to == to).map_or(0, |part| part.micros);
            let exact = by_definition(bill as f64, billed_s, &seen, to, &weights);
            // One micro-dollar is rounded twice for each of three resources.
            prop_assert!((told as f64 - exact).abs() < 6.01, "{to:?}: {told} and not {exact}");
        }
        prop_assert_eq!(split(bill, billed_s, &seen, &weights), parts, "the same twice");
    }
}
