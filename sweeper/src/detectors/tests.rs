//! Both sides of every clause that all detectors have in common, and of each class's own.

use super::*;
use crate::{
    inventory::{InstanceState, UsageSource, UsedBy},
    snapshot::{Coverage, Presence, QuietCase, QuietPolicy, Seen},
    verdict::{Case, Decision, Observation, Policy, Signal, Unknown},
};
use jiff::SignedDuration;
use model::Verdict;
use proptest::prelude::*;

mod hours;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
}

fn presence(listed: Option<InstanceState>, coverage: Coverage) -> Presence {
    Presence {
        listed,
        coverage,
        launched_at: Some(at(-9_000)),
        last_heard: Some(at(0)),
        gone_after_s: 7 * 86_400,
        silent_after_s: 3_600,
    }
}

fn inputs(presence: Presence) -> MachineInputs {
    let case = Case::new(at(60).as_millisecond(), Policy::default(), Vec::new());
    MachineInputs::new(presence, case)
}

fn running() -> MachineInputs {
    inputs(presence(Some(InstanceState::Running), Coverage::Complete))
}

fn metrics(cpu_millionths: u32) -> Option<QuietCase> {
    let seen = Seen {
        source: UsageSource::CloudWatch,
        from: at(0) - SignedDuration::from_hours(24 * 14),
        until: at(0),
        period_s: 3_600,
        periods: 336,
        busiest_cpu_millionths: Some(cpu_millionths),
        busiest_network_bytes_per_s: Some(100),
    };
    let policy = QuietPolicy { after_s: 7 * 86_400, cpu_millionths: 20_000, network_bytes_per_s: 5_000 };
    Some(QuietCase { seen, policy })
}

fn judgement(verdict: Verdict, decision: Decision) -> Judgement {
    Judgement { verdict, since_unix_ms: Some(at(0).as_millisecond()), decision }
}

fn observation() -> Observation {
    let text = format!(
        r#"{{"start_unix_ms":{},"end_unix_ms":{},"lost_events":0}}"#,
        at(0).as_millisecond(),
        at(30).as_millisecond()
    );
    serde_json::from_str(&text).expect("an observation")
}

/// What the detector of a class of machines says.
fn answer(class: Class, inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let Of::Machine(decide) = class.detector().answer else { panic!("{class:?} is found on no machine") };
    of_machine(class.detector(), decide, inputs, judgement)
}

fn idle() -> Judgement {
    judgement(Verdict::Idle, Decision::AllQuiet { observations: 1, total: observation() })
}

fn blind() -> Judgement {
    judgement(Verdict::Unknown, Decision::Unknown(Unknown::NoAgent))
}

#[test]
fn every_class_has_one_detector_of_its_own_and_its_word_leads_back_to_it() {
    assert_eq!(DETECTORS.len(), Class::ALL.len());
    for class in Class::ALL {
        assert_eq!(class.detector().class, class);
        let turn = |class| DETECTORS.iter().position(|detector| detector.class == class);
        assert!(class.yields_to().iter().all(|other| turn(class) < turn(*other)), "{class:?}");
        assert_eq!(Class::from_word(class.as_str()), Some(class));
        assert!(class.version() > 0);
    }
}

#[test]
fn what_is_not_there_or_does_not_run_is_no_waste_of_any_class() {
    for (listed, coverage, because, is_gone) in [
        (Some(InstanceState::Stopped), Coverage::Complete, "the instance is stopped", false),
        (Some(InstanceState::Terminated), Coverage::Failed, "the instance is terminated", false),
        (None, Coverage::Complete, "the provider lists the instance no more", true),
    ] {
        for class in [Class::IdleNode, Class::QuietInstance, Class::IdleGpu, Class::BarelyUsed] {
            let because = because.to_owned();
            let expected = if is_gone { Answer::Gone { because } } else { Answer::Refuted { because } };
            let mut inputs = inputs(presence(listed.clone(), coverage));
            inputs.metrics = metrics(10_000);
            assert_eq!(answer(class, &inputs, &idle()), expected, "{class:?}");
            assert_eq!(answer(class, &inputs, &blind()), expected, "{class:?}");
        }
    }
}

#[test]
fn a_host_that_no_inventory_covers_is_gone_when_it_has_been_silent_for_long_enough() {
    let silent = |seconds: i64, coverage| {
        let mut inputs = inputs(presence(None, coverage));
        inputs.case.now_unix_ms = at(seconds).as_millisecond();
        matches!(answer(Class::IdleNode, &inputs, &blind()), Answer::Gone { .. })
    };
    let after = 7 * 86_400;
    assert!(!silent(after - 1, Coverage::NotAsked));
    assert!(silent(after, Coverage::NotAsked));
    assert!(!silent(after, Coverage::Failed), "its provider was asked, and did not answer");
    assert!(!silent(-after, Coverage::NotAsked), "heard in the future: a clock is off");
    let mut never = inputs(Presence { last_heard: None, ..presence(None, Coverage::NotAsked) });
    never.case.now_unix_ms = i64::MAX;
    assert_eq!(answer(Class::IdleNode, &never, &blind()), Answer::NotKnown);
}

/// A machine with a GPU that nobody used from the first second to the 3,600th, as its agent says.
fn with_gpu() -> MachineInputs {
    let (start, end) = (at(0).as_millisecond(), at(3_600).as_millisecond());
    let node = serde_json::json!({
        "hostname": "gpu", "kernel_release": "6.1", "agent_version": "0.1.0", "cpus": 8, "boot_id": uuid::Uuid::nil(), "booted_unix_ms": 0,
        "interval_ms": 3_600_000, "last_heartbeat_unix_ms": end, "gpu": "measured", "source": "ebpf", "workloads": [], "more_workloads": 0,
    });
    let mut inputs = running();
    inputs.case.node = Some(serde_json::from_value(node).expect("a node"));
    inputs.case.observations =
        vec![Observation { start_unix_ms: start, end_unix_ms: end, gpu_busy_ns: Some(0), ..observation() }];
    inputs
}

#[test]
fn an_idle_gpu_is_one_of_a_machine_that_works_or_waits() {
    let of = |verdict: Verdict, change: fn(&mut MachineInputs)| {
        let mut inputs = with_gpu();
        change(&mut inputs);
        answer(Class::IdleGpu, &inputs, &Judgement { verdict, ..blind() })
    };
    let confirmed = Answer::Confirmed { since: at(0), until: at(3_600), work: None };
    assert_eq!(of(Verdict::Active, |_| {}), confirmed);
    assert_eq!(of(Verdict::Waiting, |_| {}), confirmed);
    assert_eq!(of(Verdict::Unknown, |_| {}), Answer::NotKnown);
    assert!(
        matches!(of(Verdict::Idle, |_| {}), Answer::Refuted { because } if because == "the machine is idle as a whole")
    );
    let used = of(Verdict::Active, |inputs| inputs.case.observations[0].gpu_busy_ns = Some(3_600_000_001));
    assert!(
        matches!(&used, Answer::Refuted { because } if because.starts_with("work of the GPUs was seen up to")),
        "{used:?}"
    );
    assert_eq!(of(Verdict::Active, |inputs| inputs.case.observations[0].gpu_busy_ns = None), Answer::NotKnown);
    assert_eq!(of(Verdict::Active, |inputs| inputs.case.policy.gpu_unused_after_ms += 1), Answer::NotKnown);
    let gpu = |gpu| move |inputs: &mut MachineInputs| inputs.case.node.as_mut().expect("a node").gpu = gpu;
    let mut inputs = with_gpu();
    gpu(crate::verdict::Gpu::NotMeasured)(&mut inputs);
    assert_eq!(answer(Class::IdleGpu, &inputs, &idle()), Answer::NotKnown);
    gpu(crate::verdict::Gpu::Absent)(&mut inputs);
    assert!(matches!(answer(Class::IdleGpu, &inputs, &idle()), Answer::Refuted { .. }));
    let mut failed = with_gpu();
    failed.failed = vec![SnapshotPart::Inventory];
    let active = Judgement { verdict: Verdict::Active, ..blind() };
    assert_eq!(answer(Class::IdleGpu, &failed, &active), Answer::NotKnown, "whether it runs was not read");
}

#[test]
fn a_silent_agent_is_one_that_was_heard_and_is_not_any_more_on_a_machine_that_runs() {
    let of = |seconds: i64, presence: Presence| {
        let mut inputs = inputs(presence);
        inputs.case.now_unix_ms = at(seconds).as_millisecond();
        answer(Class::SilentAgent, &inputs, &blind())
    };
    let listed = |state| presence(Some(state), Coverage::Complete);
    let since = Answer::Confirmed { since: at(0), until: at(3_600), work: None };
    assert_eq!(of(3_600, listed(InstanceState::Running)), since);
    let heard = of(3_599, listed(InstanceState::Running));
    assert!(matches!(&heard, Answer::Refuted { because } if because.starts_with("its agent was heard")), "{heard:?}");
    assert!(matches!(of(-3_600, listed(InstanceState::Running)), Answer::Refuted { .. }), "a clock is off");
    assert!(matches!(of(9_999, listed(InstanceState::Stopped)), Answer::Refuted { .. }), "what is off is silent");
    assert_eq!(of(9_999, listed(InstanceState::Pending)), Answer::NotKnown);
    assert_eq!(of(9_999, presence(None, Coverage::NotAsked)), Answer::NotKnown, "nobody says that it runs");
    assert_eq!(of(9_999, presence(None, Coverage::Failed)), Answer::NotKnown);
    let started = |second| Presence { launched_at: Some(at(second)), ..listed(InstanceState::Running) };
    assert_eq!(of(9_999, started(6_400)), Answer::NotKnown, "it was started anew, and its agent may still come");
    assert_eq!(of(9_999, started(6_399)), Answer::Confirmed { since: at(6_399), until: at(9_999), work: None });
    let unsaid = Presence { launched_at: None, ..listed(InstanceState::Running) };
    assert_eq!(of(9_999, unsaid), Answer::NotKnown);
    let never = Presence { last_heard: None, ..listed(InstanceState::Running) };
    assert_eq!(of(9_999, never), Answer::NotKnown, "a blind spot");
}

#[test]
fn no_class_is_confirmed_without_all_that_it_rests_on_and_what_refutes_it_stands() {
    let confirmed = Answer::Confirmed { since: at(-60), until: at(0), work: None };
    let refuted = Answer::Refuted { because: "it works".to_owned() };
    let parts = [SnapshotPart::Inventory, SnapshotPart::ProviderMetrics, SnapshotPart::EcsTasks];
    for detector in &DETECTORS {
        assert!(!detector.rests_on.is_empty(), "{:?}", detector.class);
        assert_eq!(detector.unless_it_lacks(&[], confirmed.clone()), confirmed);
        for part in parts {
            let expected = if detector.rests_on.contains(&part) { Answer::NotKnown } else { confirmed.clone() };
            assert_eq!(detector.unless_it_lacks(&[part], confirmed.clone()), expected, "{:?} {part:?}", detector.class);
            assert_eq!(detector.unless_it_lacks(&[part], refuted.clone()), refuted);
        }
    }
}

#[test]
fn a_part_that_failed_makes_not_known_what_rests_on_it_and_nothing_else() {
    for (class, judgement, part, rests_on_it) in [
        (Class::IdleNode, idle(), SnapshotPart::Inventory, true),
        (Class::IdleNode, idle(), SnapshotPart::ProviderMetrics, false),
        (Class::QuietInstance, blind(), SnapshotPart::Inventory, true),
        (Class::QuietInstance, blind(), SnapshotPart::ProviderMetrics, true),
    ] {
        let mut inputs = running();
        inputs.metrics = metrics(10_000);
        assert!(matches!(answer(class, &inputs, &judgement), Answer::Confirmed { .. }), "{class:?}");
        inputs.failed = vec![part];
        let is_known = answer(class, &inputs, &judgement) != Answer::NotKnown;
        assert_eq!(is_known, !rests_on_it, "{class:?} {part:?}");
    }
    // Work that was seen was seen.
    let above = Decision::Above { signal: Signal::WorkloadCpu, observation: observation() };
    let unread = MachineInputs { failed: vec![SnapshotPart::Inventory], ..inputs(presence(None, Coverage::Failed)) };
    let works = answer(Class::IdleNode, &unread, &judgement(Verdict::Active, above));
    assert!(matches!(works, Answer::Refuted { .. }), "{works:?}");
}

#[test]
fn an_idle_node_is_one_whose_verdict_is_idle() {
    let of = |judgement| answer(Class::IdleNode, &running(), &judgement);
    assert_eq!(of(idle()), Answer::Confirmed { since: at(0), until: at(30), work: None });
    let above = Decision::Above { signal: Signal::WorkloadCpu, observation: observation() };
    assert!(matches!(of(judgement(Verdict::Active, above)), Answer::Refuted { .. }));
    assert_eq!(of(judgement(Verdict::Unknown, Decision::Unknown(Unknown::GpuNotMeasured))), Answer::NotKnown);
    assert_eq!(of(blind()), Answer::NotKnown);
    let endless = Judgement { since_unix_ms: None, ..idle() };
    assert_eq!(of(endless), Answer::NotKnown, "an idle verdict without a begin proves nothing");
    let on_premises = inputs(presence(None, Coverage::NotAsked));
    assert!(matches!(answer(Class::IdleNode, &on_premises, &idle()), Answer::Confirmed { .. }));
}

#[test]
fn a_quiet_instance_is_one_that_runs_without_an_agent_and_was_seen_quiet() {
    let of = |inputs: &MachineInputs, judgement| answer(Class::QuietInstance, inputs, &judgement);
    let quiet = MachineInputs { metrics: metrics(20_000), ..running() };
    let since = at(0) - SignedDuration::from_hours(24 * 14);
    assert_eq!(of(&quiet, blind()), Answer::Confirmed { since, until: at(0), work: None });
    let busy = MachineInputs { metrics: metrics(20_001), ..running() };
    assert!(matches!(of(&busy, blind()), Answer::Refuted { because } if because.starts_with("busy: CPU")));
    assert!(matches!(of(&quiet, idle()), Answer::Refuted { because } if because.starts_with("an agent reports")));
    assert_eq!(of(&running(), blind()), Answer::NotKnown, "nothing was measured");
    let not_listed = MachineInputs { presence: presence(None, Coverage::NotAsked), ..quiet };
    assert_eq!(of(&not_listed, blind()), Answer::NotKnown, "its provider alone says that it runs");
}

#[test]
fn inputs_come_back_from_their_kept_form_and_give_the_same_answer() {
    let states = [
        InstanceState::Running,
        InstanceState::Other("hibernating".into()),
        InstanceState::Unknown,
        InstanceState::ShuttingDown,
    ];
    for state in states {
        let mut kept = inputs(presence(Some(state), Coverage::Complete));
        kept.metrics = metrics(10_000);
        kept.failed = vec![SnapshotPart::ProviderMetrics];
        let text = serde_json::to_string(&kept).expect("JSON");
        let read: MachineInputs = serde_json::from_str(&text).expect("inputs");
        assert_eq!(read, kept);
        let [read, kept] = [read, kept].map(|inputs| Inputs::Machine(Box::new(inputs)));
        assert!(Class::ALL.into_iter().all(|class| replay(class, &read) == replay(class, &kept)));
    }
}

/// What the detector of a class of leftovers says of one that has been tied to nothing for so many seconds, where an hour is asked for.
fn left(class: Class, since: Option<i64>, change: impl FnOnce(&mut LeftoverInputs)) -> Answer {
    let mut inputs = LeftoverInputs {
        not_before: Timestamp::MIN,
        at: at(0),
        used_by: Some(UsedBy::Nothing),
        coverage: Coverage::Complete,
        since: since.map(|seconds| at(-seconds)),
        after_s: 3_600,
        failed: Vec::new(),
    };
    change(&mut inputs);
    let text = serde_json::to_string(&inputs).expect("JSON");
    assert_eq!(serde_json::from_str::<LeftoverInputs>(&text).expect("inputs"), inputs);
    replay(class, &Inputs::Leftover(inputs))
}

#[test]
fn what_is_left_over_is_tied_to_nothing_for_long_enough_and_listed_so() {
    for (class, tied) in [
        (Class::UnattachedVolume, "it is attached to i-1"),
        (Class::UnusedAddress, "it is tied to i-1"),
        (Class::OrphanedSnapshot, "it is needed by i-1"),
        (Class::StoppedInstance, "the instance is i-1"),
    ] {
        let confirmed = Answer::Confirmed { since: at(-3_600), until: at(0), work: None };
        assert_eq!(left(class, Some(3_600), |_| {}), confirmed);
        assert_eq!(left(class, Some(3_599), |_| {}), Answer::NotKnown, "not for long enough");
        assert_eq!(left(class, None, |_| {}), Answer::NotKnown, "this list is the first");
        assert_eq!(left(class, Some(3_600), |inputs| inputs.not_before = at(1)), Answer::NotKnown, "it is too young");
        assert_eq!(left(class, Some(3_600), |inputs| inputs.not_before = at(0)), confirmed);
        assert_eq!(left(class, Some(-60), |_| {}), Answer::NotKnown, "a clock is off");
        let used = |used_by: UsedBy| left(class, Some(7_200), |inputs| inputs.used_by = Some(used_by));
        assert_eq!(used(UsedBy::Something { what: "i-1".into() }), Answer::Refuted { because: tied.into() });
        let managed = Answer::Refuted { because: "alb keeps it for itself".into() };
        assert_eq!(used(UsedBy::Managed { by: "alb".into() }), managed);
        assert_eq!(used(UsedBy::NotTold), Answer::NotKnown);
        let unlisted =
            |coverage| left(class, Some(7_200), |inputs| (inputs.used_by, inputs.coverage) = (None, coverage));
        assert_eq!(unlisted(Coverage::Complete), Answer::Gone { because: "the provider lists it no more".into() });
        assert_eq!(unlisted(Coverage::Failed), Answer::NotKnown);
        assert_eq!(unlisted(Coverage::NotAsked), Answer::NotKnown);
        let failed = left(class, Some(7_200), |inputs| inputs.failed = vec![SnapshotPart::Inventory]);
        assert_eq!(failed, Answer::NotKnown);
        assert_eq!(replay(class, &Inputs::Machine(Box::new(running()))), Answer::NotKnown, "inputs of another kind");
    }
}

proptest! {
    /// Of anything that is listed, or not, and read, or not: left over is what is unused for long enough, and nothing that could not be read.
    #[test]
    fn what_is_left_over_was_read_listed_unused_and_is_so_for_long_enough(
        used_by in prop::sample::select(vec![
            None,
            Some(UsedBy::Nothing),
            Some(UsedBy::NotTold),
            Some(UsedBy::Something { what: "i-1".into() }),
            Some(UsedBy::Managed { by: "alb".into() }),
        ]),
        coverage in prop::sample::select(vec![Coverage::Complete, Coverage::Failed, Coverage::NotAsked]),
        since in prop::option::of(-100_i64..10_000),
        after_s in 0_u64..10_000,
        failed in any::<bool>(),
    ) {
        for class in Class::ALL.into_iter().filter(|class| class.found_on() == FoundOn::Leftover) {
            let answer = left(class, since, |inputs| {
                inputs.used_by.clone_from(&used_by);
                (inputs.coverage, inputs.after_s) = (coverage, after_s);
                inputs.failed = if failed { vec![SnapshotPart::Inventory] } else { Vec::new() };
            });
            let is_unused = used_by == Some(UsedBy::Nothing);
            let for_long = since.is_some_and(|seconds| seconds >= after_s.cast_signed());
            let is_confirmed = matches!(answer, Answer::Confirmed { .. });
            prop_assert_eq!(is_confirmed, is_unused && for_long && !failed, "{:?}", answer);
            let is_over = matches!(answer, Answer::Refuted { .. } | Answer::Gone { .. });
            let is_used = matches!(used_by, Some(UsedBy::Something { .. } | UsedBy::Managed { .. }));
            prop_assert_eq!(is_over, is_used || used_by.is_none() && coverage == Coverage::Complete);
        }
    }
}
