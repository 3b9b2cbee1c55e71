use super::*;
use crate::verdict::Wait;

fn in_pod(pod: &str, owner: &str, cpu_ns: u64) -> wire::WorkloadActivity {
    let told = wire::Container {
        name: "main".into(),
        pod: pod.into(),
        namespace: "omics".into(),
        owner: owner.into(),
        image: "bwa:1".into(),
    };
    let row = container("kubernetes", pod, cpu_ns);
    wire::WorkloadActivity { name: row.name.map(|name| wire::WorkloadName { container: Some(told), ..name }), ..row }
}

fn with(minutes_ago: i64, rows: Vec<wire::WorkloadActivity>) -> wire::Heartbeat {
    let runs = Vec::new();
    wire::Heartbeat { workloads: rows, runs, ..heartbeat(minutes_ago) }
}

fn job_pod(cpu_ns: u64) -> wire::WorkloadActivity {
    in_pod("align-x7q2w", "Job/align", cpu_ns)
}

fn contract() -> Contract {
    Contract::open_pods(&with(0, vec![job_pod(5)])).next().expect("a pod")
}

/// Judges the pod with these rows beside it, at the begin and at the end.
fn beside(begin: Vec<wire::WorkloadActivity>, end: Vec<wire::WorkloadActivity>) -> WorkJudgement {
    let rows = |rows: Vec<_>| [job_pod(5)].into_iter().chain(rows).collect();
    judge(&case_of(contract(), with(31, rows(begin)), with(0, rows(end))))
}

#[test]
fn a_pod_of_a_job_is_work_that_should_finish_and_one_of_a_service_is_not() {
    for (owner, expected) in
        [("Job/align", 1), ("Workflow/rna", 1), ("ReplicaSet/web", 0), ("DaemonSet/aws-node", 0), ("", 0), ("Job", 0)]
    {
        let beat = with(0, vec![in_pod("align-x7q2w", owner, 5)]);
        assert_eq!(Contract::open_pods(&beat).count(), expected, "{owner}");
    }
    let ended = wire::WorkloadActivity { live_processes: 0, ..job_pod(5) };
    assert_eq!(Contract::open_pods(&with(0, vec![ended])).count(), 0);
    let contract = contract();
    assert_eq!(contract.local_id().as_deref(), Some("pod/omics/align-x7q2w"));
    assert_eq!(
        (contract.name(), contract.what().as_str()),
        (Some("align-x7q2w"), "pod of Job/align in namespace omics")
    );
}

#[test]
fn a_machine_waits_for_its_pods_of_jobs() {
    let waits = crate::verdict::wait::waits(&with(0, vec![job_pod(5)]));
    let expected = Wait::BatchStep { kind: "kubernetes".into(), id: "align-x7q2w".into() };
    assert!(waits.contains(&expected), "{waits:?}");
    assert!(crate::verdict::wait::waits(&with(0, vec![in_pod("web-1", "ReplicaSet/web", 5)])).is_empty());
}

#[test]
fn a_pod_of_which_nothing_runs_is_stuck_unless_something_may_run_for_it() {
    assert_eq!(beside(vec![], vec![]).verdict, Verdict::Stuck);
    let worked = judge(&case_of(contract(), with(31, vec![job_pod(5)]), with(0, vec![job_pod(6)])));
    assert_eq!(worked.verdict, Verdict::Active);
    let other = |cpu_ns| vec![in_pod("web-1", "ReplicaSet/web", cpu_ns)];
    assert_eq!(beside(other(5), other(6)).verdict, Verdict::Stuck, "Kubernetes placed that one");
    let docker = |cpu_ns| vec![container("docker", "c9", cpu_ns)];
    assert_eq!(beside(docker(5), docker(6)).verdict, Verdict::Waiting);
    let sidecar = |cpu_ns| vec![job_pod(cpu_ns)];
    assert_eq!(beside(sidecar(5), sidecar(6)).verdict, Verdict::Active, "another container of it");
    let connected = wire::WorkloadActivity { peers: Some(1), ..job_pod(5) };
    let case = case_of(contract(), with(31, vec![job_pod(5)]), with(0, vec![connected]));
    assert_eq!(judge(&case).verdict, Verdict::Waiting, "it waits for the API server, or for whom it asked");
}

#[test]
fn a_pod_that_is_shown_no_more_is_over_unless_names_are_hidden() {
    let of = |end: wire::Heartbeat| judge(&case_of(contract(), with(31, vec![job_pod(5)]), end)).decision;
    assert_eq!(of(with(0, vec![])), WorkDecision::Unknown(WorkUnknown::NotShown));
    let hidden = WorkDecision::Unknown(WorkUnknown::NotMeasured { what: vec!["names of containers".into()] });
    let mut unread = with(0, vec![container("kubernetes", "align-x7q2w", 5)]);
    let status = wire::CapabilityStatus::Broken.into();
    let capability = wire::Capability { name: "containers".into(), status, ..wire::Capability::default() };
    unread.coverage.as_mut().expect("coverage").capabilities.push(capability);
    assert_eq!(of(unread), hidden);
    assert_eq!(of(with(0, vec![row("overflow", 5)])), hidden, "it may be one of those");
}
