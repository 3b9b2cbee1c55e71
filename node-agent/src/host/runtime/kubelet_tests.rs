//! Kubelet's answer as Kubernetes publishes it: <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/>.

use super::*;

/// A DaemonSet's pod with an init container, a debugger in it, and a static one.
const PODS: &str = include_str!("testdata/pods.json");

fn named<'a>(found: &'a [Container], name: &str) -> &'a Container {
    found.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn pods_are_read_with_their_owners() {
    let found = containers(PODS.as_bytes()).unwrap_or_default();
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["aws-node", "aws-eks-nodeagent", "aws-vpc-cni-init", "debugger-x", "kube-proxy", "align"],
        "what was not made yet has no id"
    );
    let node = named(&found, "aws-node");
    assert_eq!((node.namespace.as_str(), node.owner.as_str()), ("kube-system", "DaemonSet/aws-node"));
    assert_eq!(node.id, "95170dda2fbbcc71f895af766e9c6a3b09ad7db0ef30be211ee4881afbc2c0f0");
    assert_eq!(
        node.image, "602401143452.dkr.ecr.eu-central-1.amazonaws.com/amazon-k8s-cni:v1.18.3-eksbuild.1",
        "what the pod asked for, not what the runtime calls it"
    );
    assert_eq!(named(&found, "kube-proxy").owner, "StaticPod/kube-proxy");
    assert_eq!(named(&found, "align").owner, "Job/align");
    assert!(named(&found, "debugger-x").is_ephemeral && !node.is_ephemeral);
}

#[test]
fn nobody_makes_a_daemonset_or_a_static_pod_of_his_own() {
    let owner_of = |change: &dyn Fn(String) -> String, name: &str| {
        let found = containers(change(PODS.to_owned()).as_bytes()).unwrap_or_default();
        named(&found, name).owner.clone()
    };
    let group =
        |text: String| text.replacen("\"apiVersion\": \"apps/v1\"", "\"apiVersion\": \"evil.example.com/v1\"", 1);
    assert_eq!(owner_of(&group, "aws-node"), "DaemonSet.evil.example.com/v1/aws-node");
    let no_controller = |text: String| text.replacen("\"controller\": true", "\"controller\": false", 1);
    assert_eq!(owner_of(&no_controller, "aws-node"), "");
    // Kubelet writes `api` there for whatever comes from the API server.
    let from_api = |text: String| {
        text.replace("\"kubernetes.io/config.source\": \"file\"", "\"kubernetes.io/config.source\": \"api\"")
    };
    assert_eq!(owner_of(&from_api, "kube-proxy"), "");
    let elsewhere = |text: String| text.replace("\"nodeName\": \"GKE-apps-pool-1-a\"", "\"nodeName\": \"other\"");
    assert_eq!(owner_of(&elsewhere, "kube-proxy"), "");
}

#[test]
fn what_is_no_list_of_pods_is_no_answer() {
    assert_eq!(
        containers(br#"{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null}"#),
        Ok(Vec::new())
    );
    for wrong in
        ["", "Unauthorized", "{}", "[]", r#"{"kind": "Status", "items": []}"#, r#"{"kind": "PodList", "items": [{}]}"#]
    {
        assert!(containers(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
