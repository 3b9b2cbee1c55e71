//! What makes a container housekeeping, and each thing that does not.

use super::*;

const ID: &str = "95170dda2fbbcc71f895af766e9c6a3b09ad7db0ef30be211ee4881afbc2c0f0";
const OTHER_ID: &str = "bf25c5c5b2d4dba68846c7236e75b6915e1e778d31611e3c6a06831e39814a15";
const UID: &str = "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11";
const IMAGE: &str = "602401143452.dkr.ecr.eu-central-1.amazonaws.com/amazon-k8s-cni:v1.18.3-eksbuild.1";

fn aws_node() -> Container {
    Container {
        id: ID.to_owned(),
        name: "aws-node".to_owned(),
        pod: "aws-node-x7q2w".to_owned(),
        pod_uid: UID.to_owned(),
        namespace: "kube-system".to_owned(),
        owner: "DaemonSet/aws-node".to_owned(),
        image: IMAGE.to_owned(),
        is_ephemeral: false,
    }
}

fn path() -> String {
    let slice = UID.replace('-', "_");
    format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{ID}.scope")
}

fn said(source: Source, containers: &[Container]) -> Answer {
    Answer::new(source, Ok(containers.to_vec()))
}

fn failed(source: Source, failure: Failure) -> Answer {
    Answer::new(source, Err(failure))
}

/// What follows from these answers, right away.
fn is_upkeep(answers: Vec<Answer>, path: &str) -> bool {
    let (mut known, now) = (Known::default(), Instant::now());
    known.take(answers, now);
    known.is_upkeep(&workload_rules::built_in().housekeeping, path, now)
}

#[test]
fn namespace_daemonset_and_image_together_make_a_container_housekeeping_by_kubelets_word() {
    let kubelet = || said(Source::Kubelet, &[aws_node()]);
    for (answers, path) in [
        (vec![kubelet()], path()),
        (vec![kubelet()], format!("/kubepods/burstable/pod{UID}/{ID}")),
        (vec![kubelet()], format!("{}/init", path())),
        (vec![kubelet(), said(Source::Cri, &[Container { owner: String::new(), ..aws_node() }])], path()),
        // A runtime that does not answer takes nothing from kubelet's word.
        (vec![kubelet(), failed(Source::Cri, Failure::Broken("slow".to_owned()))], path()),
    ] {
        assert!(is_upkeep(answers, &path), "{path}");
    }
    let proxy = Container {
        pod_uid: "d8bb7efbe52b9f2d4a6c0f3f3f2d1a0b".to_owned(),
        owner: "StaticPod/kube-proxy".to_owned(),
        image: "gke.gcr.io/kube-proxy-amd64:v1.30.2-gke.1587003".to_owned(),
        ..aws_node()
    };
    let place = format!("/kubepods/burstable/pod{}/{ID}", proxy.pod_uid);
    assert!(is_upkeep(vec![said(Source::Kubelet, &[proxy])], &place));
}

#[test]
fn a_container_of_an_archive_that_root_keeps_is_housekeeping_where_docker_puts_it() {
    let ecs = || Container {
        id: ID.to_owned(),
        name: "ecs-agent".to_owned(),
        owner: "Archive/var/cache/ecs/ecs-agent.tar".to_owned(),
        image: "amazon/amazon-ecs-agent:latest".to_owned(),
        ..Container::default()
    };
    let docker = |container| vec![said(Source::Docker, &[container])];
    let scope = format!("/system.slice/docker-{ID}.scope");
    for path in [scope.clone(), format!("/docker/{ID}"), format!("{scope}/init"), format!("/docker/{ID}/a/b")] {
        assert!(is_upkeep(docker(ecs()), &path), "{path}");
    }
    for path in [
        format!("/user.slice/user-1000.slice/docker-{ID}.scope"),
        format!("/docker/{OTHER_ID}"),
        format!("/docker/{ID}/{OTHER_ID}"),
        format!("/docker/{ID}/docker/{OTHER_ID}"),
        format!("{scope}/user.slice"),
        format!("/docker/x/{ID}"),
        format!("/ecs/{ID}"),
        format!("/system.slice/libpod-{ID}.scope"),
        format!("docker/{ID}"),
        "/docker".to_owned(),
        path(),
    ] {
        assert!(!is_upkeep(docker(ecs()), &path), "{path}");
    }
    for owner in ["", "Archive", "Task/1", "DaemonSet/aws-node"] {
        assert!(!is_upkeep(docker(Container { owner: owner.to_owned(), ..ecs() }), &scope), "{owner}");
    }
    for source in [Source::Ecs, Source::Cri, Source::Kubelet] {
        assert!(!is_upkeep(vec![said(source, &[ecs()])], &scope), "{source:?}");
    }
    let (mut known, now) = (Known::default(), Instant::now());
    known.take(docker(ecs()), now);
    let rules = &workload_rules::built_in().housekeeping;
    assert!(known.is_upkeep(rules, &scope, now + GRACE));
    assert!(!known.is_upkeep(rules, &scope, now + GRACE + Duration::from_millis(1)), "Docker is silent");
    assert!(!known.has_unknown());
    assert!(!known.is_upkeep(rules, &format!("/docker/{OTHER_ID}"), now));
    assert!(known.has_unknown(), "it is asked for");
}

#[test]
fn a_container_that_lacks_one_of_them_is_work() {
    for container in [
        Container { namespace: "default".to_owned(), ..aws_node() },
        Container { owner: "DaemonSet/aws-node-2".to_owned(), ..aws_node() },
        Container { owner: "ReplicaSet/aws-node".to_owned(), ..aws_node() },
        Container { owner: "DaemonSet.evil.example.com/v1/aws-node".to_owned(), ..aws_node() },
        Container { owner: String::new(), ..aws_node() },
        Container { image: "quay.io/acme/miner:v1".to_owned(), ..aws_node() },
        Container { image: String::new(), ..aws_node() },
        // put into the pod afterwards
        Container { is_ephemeral: true, ..aws_node() },
        // another pod's, or another one's id
        Container { pod_uid: "00000000-52a3-4a2f-9b52-6d1f0a7d9c11".to_owned(), ..aws_node() },
        Container { id: OTHER_ID.to_owned(), ..aws_node() },
        Container { id: "aws-node".to_owned(), ..aws_node() },
    ] {
        assert!(!is_upkeep(vec![said(Source::Kubelet, std::slice::from_ref(&container))], &path()), "{container:?}");
    }
}

#[test]
fn what_anybody_may_tell_the_runtime_proves_nothing() {
    assert!(!is_upkeep(vec![said(Source::Cri, &[aws_node()])], &path()), "labels alone");
    assert!(!is_upkeep(vec![said(Source::Ecs, &[aws_node()])], &path()));
    let kubelet = || said(Source::Kubelet, &[aws_node()]);
    for contradiction in [
        vec![],
        vec![Container { id: OTHER_ID.to_owned(), ..aws_node() }],
        vec![Container { pod_uid: "00000000-52a3-4a2f-9b52-6d1f0a7d9c11".to_owned(), ..aws_node() }],
        vec![Container { name: "miner".to_owned(), ..aws_node() }],
    ] {
        assert!(!is_upkeep(vec![kubelet(), said(Source::Cri, &contradiction)], &path()), "{contradiction:?}");
    }
}

#[test]
fn only_kubelets_own_cgroups_hold_its_containers() {
    let slice = UID.replace('-', "_");
    for path in [
        // what a user with a cgroup tree of his own can make
        format!("/user.slice/user-1000.slice/user@1000.service{}", path()),
        format!("/system.slice/nightly.service{}", path()),
        // a container inside the container, and a cluster inside a container
        format!("{}/docker/{OTHER_ID}", path()),
        format!("{}/docker-{OTHER_ID}.scope", path()),
        format!("{}/{OTHER_ID}", path()),
        format!("/docker/{OTHER_ID}{}", path()),
        format!("/kubepods.slice/kubepods-pod{slice}.slice"),
        format!("/kubepods.slice/evil-pod{slice}.slice/cri-containerd-{ID}.scope"),
        format!("/kubepods.slice/kubepods-pod{slice}.slice/crio-conmon-{ID}.scope"),
        format!("/kubepods.slice/cri-containerd-{ID}.scope"),
        "/kubepods.slice".to_owned(),
        "/".to_owned(),
        String::new(),
    ] {
        assert!(!is_upkeep(vec![said(Source::Kubelet, &[aws_node()])], &path), "{path}");
    }
}

#[test]
fn a_source_that_falls_silent_is_believed_for_one_missed_answer_and_no_longer() {
    let rules = &workload_rules::built_in().housekeeping;
    let (mut known, start) = (Known::default(), Instant::now());
    known.take(vec![said(Source::Kubelet, &[aws_node()])], start);
    assert_eq!(known.status(), (Status::Ok, String::new()));
    known.take(vec![failed(Source::Kubelet, Failure::Broken("no answer".to_owned()))], start + Duration::from_secs(60));
    assert_eq!(known.status(), (Status::Broken, "kubelet: no answer".to_owned()), "named at once");
    assert!(known.is_upkeep(rules, &path(), start + GRACE));
    assert!(!known.is_upkeep(rules, &path(), start + GRACE + Duration::from_millis(1)));
    assert!(known.describe(ID, start).is_some(), "its name is still shown");
    known.take(vec![said(Source::Kubelet, &[aws_node()])], start + GRACE * 2);
    assert!(known.is_upkeep(rules, &path(), start + GRACE * 2));
}

#[test]
fn an_id_that_is_used_again_is_what_it_is_now() {
    let rules = &workload_rules::built_in().housekeeping;
    let (mut known, start) = (Known::default(), Instant::now());
    known.take(vec![said(Source::Kubelet, &[aws_node()])], start);
    let job = Container { namespace: "omics".to_owned(), owner: "Job/align".to_owned(), ..aws_node() };
    known.take(vec![said(Source::Kubelet, std::slice::from_ref(&job))], start);
    assert!(!known.is_upkeep(rules, &path(), start));
    assert_eq!(known.describe(ID, start), Some(&job));
}

#[test]
fn what_has_ended_is_known_until_its_last_counters_are_added() {
    let rules = &workload_rules::built_in().housekeeping;
    let (mut known, start) = (Known::default(), Instant::now());
    known.take(vec![said(Source::Kubelet, &[aws_node()])], start);
    known.take(vec![said(Source::Kubelet, &[])], start + LINGER);
    assert!(known.is_upkeep(rules, &path(), start + LINGER));
    known.take(vec![said(Source::Kubelet, &[])], start + LINGER + Duration::from_millis(1));
    assert!(!known.is_upkeep(rules, &path(), start + LINGER + Duration::from_millis(1)));
}

#[test]
fn what_nobody_knows_is_asked_for_again_and_again_but_ever_later() {
    let (mut known, start) = (Known::default(), Instant::now());
    known.take(vec![said(Source::Cri, &[])], start);
    let asked = (0..2 * 64).map(|half_seconds| Duration::from_millis(500 * half_seconds)).filter(|after| {
        // Both are looked up in each sample.
        let lookups = [known.describe(ID, start + *after).is_none(), known.describe(ID, start + *after).is_none()];
        assert_eq!(lookups, [true; 2]);
        known.has_unknown()
    });
    assert_eq!(asked.map(|after| after.as_secs()).collect::<Vec<_>>(), [0, 2, 6, 14, 30, 62]);
    assert_eq!(known.describe("not-an-id", start), None);
    assert!(!known.has_unknown());
}

#[test]
fn kubelets_word_comes_before_what_the_runtime_was_told() {
    let (mut known, start) = (Known::default(), Instant::now());
    let runtimes = Container { namespace: "spoofed".to_owned(), ..aws_node() };
    known.take(vec![said(Source::Cri, &[runtimes]), said(Source::Kubelet, &[aws_node()])], start);
    assert_eq!(known.describe(ID, start).map(|told| told.namespace.as_str()), Some("kube-system"));
}

#[test]
fn the_capability_says_who_does_not_answer_and_how() {
    let status = |answers: Vec<Answer>| {
        let mut known = Known::default();
        answers.into_iter().for_each(|answer| known.take(vec![answer], Instant::now()));
        known.status()
    };
    let why = || "why".to_owned();
    let absent = || failed(Source::Cri, Failure::Absent(why()));
    let runtime = "the container runtime (CRI): why".to_owned();
    assert_eq!(status(vec![]).0, Status::Broken);
    assert_eq!(status(vec![absent()]), (Status::NotApplicable, runtime.clone()));
    assert_eq!(
        status(vec![said(Source::Kubelet, &[]), absent()]),
        (Status::Ok, runtime.clone()),
        "one of two is there"
    );
    assert_eq!(status(vec![said(Source::Cri, &[]), absent()]), (Status::Broken, runtime.clone()), "it was there");
    assert_eq!(status(vec![failed(Source::Cri, Failure::Denied(why()))]), (Status::Denied, runtime));
    let many = vec![aws_node(); super::super::report::MAX_CONTAINERS + 1];
    assert_eq!(status(vec![said(Source::Kubelet, &many)]).0, Status::Broken, "more than can be kept is no answer");
}
