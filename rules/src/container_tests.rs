//! Both sides of namespace, DaemonSet and image, and what a file may not say of them.

use super::*;
use crate::{built_in, parse};

const CNI: &str = "602401143452.dkr.ecr.eu-central-1.amazonaws.com/amazon-k8s-cni:v1.18.3-eksbuild.1";
const PROXY: &str = "europe-west4-artifactregistry.gcr.io/gke-release/gke-release/kube-proxy-amd64:v1.35.5-gke.1057002";

fn set(name: &str) -> Owner {
    Owner::DaemonSet(name.to_owned())
}

#[test]
fn the_daemonsets_of_every_eks_and_gke_node_are_housekeeping() {
    let rules = &built_in().housekeeping;
    for (namespace, owner, image) in [
        ("kube-system", set("aws-node"), CNI),
        ("kube-system", set("aws-node"), "961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn/amazon-k8s-cni:v1"),
        (
            "kube-system",
            set("aws-node"),
            "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon/aws-network-policy-agent:v1.2.2@sha256:00",
        ),
        ("kube-system", set("kube-proxy"), "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com/eks/kube-proxy:v1.34.5"),
        ("amazon-cloudwatch", set("fluent-bit"), "public.ecr.aws/aws-observability/aws-for-fluent-bit:2.32.0.20240304"),
        ("kube-system", set("pdcsi-node"), "gke.gcr.io/csi-node-driver-registrar:v2.8.0-gke.4@sha256:715a"),
        ("kube-system", set("netd"), "us-central1-artifactregistry.gcr.io/gke-release/gke-release/netd:v0.10.12-gke.8"),
        ("kube-system", Owner::StaticPod("kube-proxy".to_owned()), PROXY),
    ] {
        assert!(rules.is_upkeep_container(namespace, &owner, image), "{namespace} {owner:?} {image}");
    }
}

#[test]
fn a_container_that_lacks_one_of_the_three_is_work() {
    let rules = &built_in().housekeeping;
    for (namespace, owner, image) in [
        ("default", set("aws-node"), CNI),
        ("kube-system ", set("aws-node"), CNI),
        ("kube-system", set("aws-node-2"), CNI),
        ("kube-system", Owner::StaticPod("aws-node".to_owned()), CNI),
        ("kube-system", set("kube-proxy"), PROXY),
        ("kube-system", set("kube-proxy"), CNI),
        ("kube-system", set("aws-node"), "docker.io/library/python:3.12"),
        ("kube-system", set("aws-node"), "amazon-k8s-cni:v1.18.3"),
        ("kube-system", set("aws-node"), "evil.example.com/amazon-k8s-cni:v1"),
        // somebody's own registry, and texts that only look like EKS's
        ("kube-system", set("aws-node"), "111122223333.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1"),
        ("kube-system", set("aws-node"), "602401143452.dkr.ecr.us-west-2.amazonaws.com.evil.com/amazon-k8s-cni:v1"),
        ("kube-system", set("aws-node"), "602401143452.dkr.ecr.us.evil.com/x.amazonaws.com/amazon-k8s-cni:v1"),
        ("kube-system", set("aws-node"), "602401143452.dkr.ecr.evil.com:1.amazonaws.com/amazon-k8s-cni:v1"),
        ("kube-system", set("aws-node"), "602401143452.dkr.ecr.us-west-2.amazonaws.com/x/amazon-k8s-cni:v1"),
        ("kube-system", set("netd"), "gke.gcr.io.evil.com/netd:v1"),
        ("kube-system", set("netd"), "evil.com/x-artifactregistry.gcr.io/gke-release/gke-release/netd:v1"),
        ("kube-system", set("netd"), "us-central1-artifactregistry.gcr.io/mine/gke-release/gke-release/netd:v1"),
        ("kube-system", set("aws-node"), ""),
    ] {
        assert!(!rules.is_upkeep_container(namespace, &owner, image), "{namespace} {owner:?} {image}");
    }
}

#[test]
fn a_reference_is_cut_to_its_repository() {
    for (reference, expected) in [
        ("busybox", "docker.io/library/busybox"),
        ("busybox:1.36", "docker.io/library/busybox"),
        ("amazon/amazon-ecs-agent:latest", "docker.io/amazon/amazon-ecs-agent"),
        ("quay.io/acme/monitor@sha256:00", "quay.io/acme/monitor"),
        ("quay.io/acme/monitor:v1@sha256:00", "quay.io/acme/monitor"),
        ("localhost:5000/monitor", "localhost:5000/monitor"),
        ("localhost:5000/monitor:v1", "localhost:5000/monitor"),
        ("", "docker.io/library/"),
    ] {
        assert_eq!(repository(reference), expected, "{reference}");
    }
}

fn entry(lines: &str) -> String {
    format!("version = \"1\"\n[[container]]\n{lines}\n")
}

fn refusal(lines: &str) -> String {
    match parse(entry(lines).as_bytes()) {
        Ok(_) => panic!("accepted: {lines}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_entry_that_lacks_one_of_the_three_is_refused() {
    const ALL: &str = "a container is housekeeping by namespace, DaemonSet and image together";
    for lines in [
        "daemonset = \"d\"\nimages = [\"quay.io/a/b\"]",
        "namespace = \"n\"\nimages = [\"quay.io/a/b\"]",
        "namespace = \"n\"\ndaemonset = \"d\"",
        "namespace = \"n\"\ndaemonset = \"d\"\nimages = []",
    ] {
        assert!(refusal(lines).ends_with(ALL), "{}", refusal(lines));
    }
}

#[test]
fn wildcards_peoples_namespaces_and_images_that_run_anything_are_refused() {
    let with = |namespace: &str, set: &str, image: &str| {
        refusal(&format!("namespace = \"{namespace}\"\ndaemonset = \"{set}\"\nimages = [\"{image}\"]"))
    };
    assert!(with("default", "d", "quay.io/a/b").contains("people run their own work"));
    assert!(with("kube-*", "d", "quay.io/a/b").contains("no name of Kubernetes"));
    assert!(with("n", "*", "quay.io/a/b").contains("no name of Kubernetes"));
    for image in [
        "quay.io/a/*",
        "a/b",
        "b",
        "quay.io/a/b:v1",
        "quay.io/a/b@sha256:0",
        "{eks}/*",
        "{aks}/b",
        "{eks}/b:v1",
        "quay.io//b",
    ] {
        assert!(with("n", "d", image).contains("no repository of images"), "{image}: {}", with("n", "d", image));
    }
    for image in ["docker.io/library/busybox", "docker.io/library/python", "quay.io/a/snakemake"] {
        assert!(with("n", "d", image).contains("runs what others wrote"), "{image}");
    }
    let both = "namespace = \"n\"\ndaemonset = \"d\"\nstatic_pod = \"p\"\nimages = [\"quay.io/a/b\"]";
    assert!(refusal(both).contains("keep one of the two"));
    let runtime = |line: &str| parse(format!("version = \"1\"\n[housekeeping]\n{line}\n").as_bytes()).is_err();
    assert!(runtime("runtime_units = [\"nightly.service\"]") && runtime("runtime_programs = [\"docker-proxy\"]"));
}

#[test]
fn a_files_own_containers_add_to_the_built_in_ones_if_it_says_so() -> Result<(), RulesError> {
    let own = "[[container]]\nnamespace = \"monitoring\"\ndaemonset = \"node-exporter\"\nimages = [\"quay.io/prometheus/node-exporter\"]\n";
    let alone = parse(format!("version = \"1\"\n{own}").as_bytes())?.housekeeping;
    let added = parse(format!("version = \"1\"\nbase = \"built-in\"\n{own}").as_bytes())?.housekeeping;
    assert_eq!((alone.containers.len(), added.containers.len()), (1, built_in().housekeeping.containers.len() + 1));
    for rules in [alone, added] {
        assert!(rules.is_upkeep_container(
            "monitoring",
            &set("node-exporter"),
            "quay.io/prometheus/node-exporter:v1.8.2"
        ));
    }
    Ok(())
}

#[test]
fn runtimes_units_are_known_in_any_slice_of_the_systems_own() {
    let rules = &built_in().housekeeping;
    for (path, expected) in [
        ("/system.slice/containerd.service", true),
        ("/runtime.slice/kubelet.service", true),
        ("/containerd.service", true),
        ("/system.slice/docker.service/docker/buildkit", false),
        ("/system.slice/nightly.service", false),
        ("/user.slice/user-1000.slice/docker.service", false),
        ("/kubepods.slice/containerd.service", false),
        ("/x/containerd.service", false),
        ("/", false),
        ("", false),
    ] {
        assert_eq!(rules.is_runtime_unit(path), expected, "{path}");
    }
}
