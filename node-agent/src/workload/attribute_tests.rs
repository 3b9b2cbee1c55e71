//! Paths as engines really make them; each with the place where it was seen.

use super::*;
use proptest::prelude::*;

const ID: &str = "2227daf62df6694645fee5df53c1f91271546a9560e8600a525690ae252b7f63";
const POD: &str = "90d81341-92de-11e7-8cf2-507b9d4141fa";
const STATIC_POD: &str = "0d33f94bab1a11e69e1a68f7281d8004";
const TASK: &str = "dc454d1e84c0478fa8ed683523fe7e55";

fn of(path: &str) -> Attributed {
    attribute(&workload_rules::built_in(), path)
}

/// A path in short: `ID`, `POD` (and as systemd writes it, `P_D`), `STATIC`, `TASK` stand for real ones.
fn path(short: &str) -> String {
    let escaped = POD.replace('-', "_");
    let long = [("ID", ID), ("POD", POD), ("P_D", &escaped), ("STATIC", STATIC_POD), ("TASK", TASK)];
    long.iter().fold(short.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn name(path: &str) -> Option<(String, String)> {
    of(path).name.map(|name| (name.kind, name.id))
}

fn check(cases: &[(&str, &str, &str)]) {
    for (short, kind, id) in cases {
        assert_eq!(name(&path(short)), Some(((*kind).to_owned(), path(id))), "{short}");
    }
}

#[test]
fn docker_and_containerd() {
    check(&[
        // moby with systemd's cgroups (the default on v2) and with its own
        ("/system.slice/docker-ID.scope", "docker", "ID"),
        ("/docker/ID", "docker", "ID"),
        ("/system.slice/docker.service/docker/ID", "docker", "ID"),
        ("/docker/buildkit/wq3bsz1xkvfeonw5ey8y7ehfk", "docker", "wq3bsz1xkvfeonw5ey8y7ehfk"),
        // rootless
        ("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope", "docker", "ID"),
        // a container's own init system below it
        ("/docker/ID/init.scope", "docker", "ID"),
        ("/docker/ID/system.slice/nginx.service", "docker", "ID"),
        // nerdctl and ctr
        ("/system.slice/nerdctl-ID.scope", "containerd", "ID"),
        ("/default/web", "containerd", "web"),
        // containerd's shim with systemd's form of a path under plain cgroups
        ("/system.slice/containerd.service/system.slice:nerdctl:ID", "containerd", "ID"),
    ]);
}

#[test]
fn podman_and_cri_o() {
    check(&[
        ("/machine.slice/libpod-ID.scope", "podman", "ID"),
        ("/machine.slice/libpod-ID.scope/container", "podman", "ID"),
        ("/libpod_parent/libpod-ID", "podman", "ID"),
        // https://github.com/podman-container-tools/podman/issues/13673
        ("/srv.slice/container-homeassistant.service/libpod-payload-ID", "podman", "ID"),
        ("/machine.slice/machine-libpod_pod_ID.slice/libpod-ID.scope/container", "podman", "ID"),
        ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container", "podman", "ID"),
        ("/system.slice/crio-ID.scope", "cri-o", "ID"),
    ]);
}

#[test]
fn ecs_with_and_without_limits_of_a_task() {
    check(&[
        // https://github.com/aws/amazon-ecs-agent/issues/1119
        ("/ecs/48cb34f5-cd39-4d59-9bb9-89f3c1611afd/ID", "ecs", "48cb34f5-cd39-4d59-9bb9-89f3c1611afd/ID"),
        ("/ecs/TASK/ID", "ecs", "TASK/ID"),
        // https://github.com/open-telemetry/opentelemetry-collector-contrib/issues/33716
        ("/ecs/AL2023/TASK/ID", "ecs", "TASK/ID"),
        ("/ecs/TASK/TASK-1234567890", "ecs", "TASK/TASK-1234567890"),
        // https://github.com/aws/amazon-ecs-agent/pull/3127
        ("/ecstasks.slice/ecstasks-TASK.slice/docker-ID.scope", "ecs", "TASK/ID"),
        // the same page: a task without limits of its own looks like any container of Docker
        ("/system.slice/docker-ID.scope", "docker", "ID"),
    ]);
}

#[test]
fn kubernetes_on_every_runtime() {
    check(&[
        // https://github.com/cri-o/cri-o/issues/842
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podP_D.slice/docker-ID.scope",
            "kubernetes",
            "POD/ID",
        ),
        ("/kubepods/burstable/podPOD/ID", "kubernetes", "POD/ID"),
        ("/kubepods.slice/kubepods-podP_D.slice/cri-containerd-ID.scope", "kubernetes", "POD/ID"),
        ("/kubepods/podPOD/ID", "kubernetes", "POD/ID"),
        (
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podP_D.slice/crio-ID.scope",
            "kubernetes",
            "POD/ID",
        ),
        (
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podP_D.slice/crio-ID.scope/container",
            "kubernetes",
            "POD/ID",
        ),
        ("/kubepods/besteffort/podPOD/crio-ID", "kubernetes", "POD/ID"),
        // a static pod's uid is a sum
        ("/kubepods/burstable/podSTATIC/ID", "kubernetes", "STATIC/ID"),
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podSTATIC.slice/cri-containerd-ID.scope",
            "kubernetes",
            "STATIC/ID",
        ),
        // containerd with SystemdCgroup off under a kubelet with systemd's cgroups
        ("/system.slice/containerd.service/kubepods-burstable-podP_D.slice:cri-containerd:ID", "kubernetes", "POD/ID"),
        // kind, minikube: https://github.com/kubernetes/minikube/issues/11280
        (
            "/docker/ID/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podP_D.slice/crio-ID.scope",
            "kubernetes",
            "POD/ID",
        ),
        (
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podP_D.slice/cri-containerd-ID.scope",
            "kubernetes",
            "POD/ID",
        ),
        ("/docker/ID/kubelet/kubepods/burstable/podPOD/ID", "kubernetes", "POD/ID"),
        // the pod itself
        ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podP_D.slice", "kubernetes", "POD"),
        ("/kubepods/burstable/podPOD", "kubernetes", "POD"),
        // Docker inside a pod
        ("/kubepods/burstable/podPOD/ID/docker/ID", "docker", "ID"),
    ]);
}

#[test]
fn slurm_on_both_cgroup_versions() {
    check(&[
        ("/slurm/uid_1000/job_17/step_0/task_0", "slurm", "17"),
        ("/slurm/uid_1000/job_17/step_batch", "slurm", "17"),
        // https://github.com/plazonic/cgroup_exporter/pull/5
        ("/slurm_node01/uid_1000/job_17/step_0/task_0", "slurm", "17"),
        ("/system.slice/slurmstepd.scope/job_17/step_0/user/task_0", "slurm", "17"),
        ("/system.slice/slurmstepd.scope/job_17/step_extern/slurm", "slurm", "17"),
        // https://github.com/treydock/cgroup_exporter/issues/30
        ("/system.slice/node01_slurmstepd.scope/job_17/step_batch/user/task_0", "slurm", "17"),
        // https://github.com/guilbaults/slurm-job-exporter/issues/66
        ("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", "slurm", "s5K1KKYAYG5D00"),
        // slurmstepd's own place is no job
        ("/system.slice/slurmstepd.scope/system", "systemd", "slurmstepd.scope"),
    ]);
}

#[test]
fn units_and_sessions() {
    check(&[
        ("/system.slice/train.service", "systemd", "train.service"),
        ("/system.slice/system-getty.slice/getty@tty1.service", "systemd", "getty@tty1.service"),
        ("/system.slice/dev-disk-by\\x2duuid-1.swap", "systemd", "dev-disk-by\\x2duuid-1.swap"),
        ("/init.scope", "systemd", "init.scope"),
        ("/user.slice/user-1000.slice/session-3.scope", "session", "3"),
        ("/user.slice/user-1000.slice/session-c2.scope", "session", "c2"),
        ("/user/1000.user/3.session", "session", "3"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service", "systemd", "jupyter.service"),
        ("/user.slice/user-1000.slice/user@1000.service/init.scope", "systemd", "user@1000.service"),
        ("/system.slice/run-r0123456789abcdef.scope", "systemd", "run-r0123456789abcdef.scope"),
        ("/lxc.payload.web/system.slice/nginx.service", "lxc", "web"),
        ("/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service", "nspawn", "web"),
    ]);
    for nameless in ["/", "", "/user.slice", "/docker", "/docker/notes", "/slurm/uid_1000", "/a/b/c", "/kubepods"] {
        assert_eq!(of(nameless), Attributed::default(), "{nameless}");
    }
}

#[test]
fn a_container_inside_a_job_is_named_and_its_job_stays_known() {
    let slurm = |id: &str| Some(Name { kind: "slurm".to_owned(), id: id.to_owned() });
    for (short, kind, job) in [
        ("/system.slice/slurmstepd.scope/job_17/step_0/user/task_0/libpod-ID", "podman", slurm("17")),
        ("/slurm/uid_1000/job_17/step_0/task_0/docker/ID", "docker", slurm("17")),
        ("/slurm/uid_1000/job_17/step_0/task_0", "slurm", slurm("17")),
        // Slurm inside a pod, and a job inside a job
        ("/kubepods/podPOD/ID/system.slice/slurmstepd.scope/job_9/step_0/user/task_0", "kubernetes", slurm("9")),
        ("/slurm/uid_0/job_1/step_0/slurm/uid_0/job_2/step_0", "slurm", slurm("1")),
        ("/docker/ID", "docker", None),
    ] {
        let found = of(&path(short));
        assert_eq!((found.name.map(|name| name.kind).as_deref(), found.job), (Some(kind), job), "{short}");
    }
}

#[test]
fn hostile_names_are_harmless() {
    let long = format!("/system.slice/{}.service", "a".repeat(4_000));
    assert_eq!(of(&long), Attributed::default(), "no cgroup has a name like that");
    let deep = "/x.service".repeat(400);
    assert_eq!(name(&deep), Some(("systemd".to_owned(), "x.service".to_owned())));
    let hostile = of("/lxc/\u{1b}[2J\r\n\u{9b}\u{7f}\u{fffd}").name.map(|name| name.id);
    assert_eq!(hostile.as_deref(), Some("\\u{1b}[2J\\r\\n\\u{9b}\\u{7f}\u{fffd}"));
    let turned = of("/lxc/gpj.\u{202e}exe").name.map(|name| name.id);
    assert_eq!(turned.as_deref(), Some("gpj.\\u{202e}exe"));
    let escapes = of(&format!("/lxc/{}", "\u{1}".repeat(255))).name.map_or(0, |name| name.id.len());
    assert!((250..=MAX_ID_BYTES).contains(&escapes), "{escapes}");
}

proptest! {
    #[test]
    fn any_path_gives_a_bounded_printable_name(path in prop_oneof![
        "(/(docker|kubepods|pod|slurm|uid_1|job_1|[a-f0-9]{12}|\\PC{0,4}|.{0,4}|x\\.service)){0,12}", ".{0,4000}",
    ]) {
        let found = of(&path);
        for name in found.name.iter().chain(&found.job) {
            prop_assert!(name.id.len() <= MAX_ID_BYTES && !name.id.contains(char::is_control));
        }
        prop_assert!(found.job.is_none() || found.name.is_some());
    }
}
