//! Kubelet's `GET /pods`: every pod of this node, with what owns it. ◇ but for the request itself.
//!
//! Kubelet answers with its own list of pods, static ones included, and with the ids of their containers as the runtime gave them:
//! <https://github.com/kubernetes/kubernetes/blob/v1.30.0/pkg/kubelet/kubelet_pods.go> (`GetPods`). `ownerReferences` come from the API server, where only who may make pods
//! in that namespace can write them. `kubernetes.io/config.source` is written by kubelet itself, over whatever stood there:
//! <https://github.com/kubernetes/kubernetes/blob/v1.30.0/pkg/kubelet/config/config.go>. Whether a pod is told from a file rests on it.

use super::report::Container;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What kubelet sets itself, and what it says of a file on the node.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
const FILE: &str = "file";

#[derive(Deserialize)]
struct PodList {
    kind: String,
    /// `null` where there is none.
    items: Option<Vec<Pod>>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    #[serde(default)]
    controller: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    containers: Vec<Named>,
    #[serde(default)]
    init_containers: Vec<Named>,
    #[serde(default)]
    ephemeral_containers: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    image: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default)]
    container_statuses: Vec<Status>,
    #[serde(default)]
    init_container_statuses: Vec<Status>,
    #[serde(default)]
    ephemeral_container_statuses: Vec<Status>,
}

#[derive(Deserialize)]
struct Status {
    name: String,
    /// `RUNTIME://ID`; empty until the container was made.
    #[serde(default, rename = "containerID")]
    container_id: String,
}

/// The containers of all pods.
///
/// # Errors
/// If it is not what kubelet answers.
pub(super) fn containers(body: &[u8]) -> Result<Vec<Container>, String> {
    let list: PodList =
        serde_json::from_slice(body).map_err(|error| format!("its list of pods cannot be read: {error}"))?;
    if list.kind != "PodList" {
        return Err("what it answered is no list of pods".to_owned());
    }
    Ok(list.items.unwrap_or_default().iter().flat_map(of_pod).collect())
}

fn of_pod(pod: &Pod) -> Vec<Container> {
    let Pod { metadata, spec, status } = pod;
    let owner = owner(metadata, spec);
    let kinds = [
        (&spec.containers, &status.container_statuses, false),
        (&spec.init_containers, &status.init_container_statuses, false),
        (&spec.ephemeral_containers, &status.ephemeral_container_statuses, true),
    ];
    let made = kinds.into_iter().flat_map(|(asked, made, is_ephemeral)| {
        made.iter().map(move |one| (asked.iter().find(|asked| asked.name == one.name), one, is_ephemeral))
    });
    made.filter_map(|(asked, made, is_ephemeral)| {
        Some(Container {
            id: made.container_id.split_once("://")?.1.to_owned(),
            name: made.name.clone(),
            pod: metadata.name.clone(),
            pod_uid: metadata.uid.clone(),
            namespace: metadata.namespace.clone(),
            owner: owner.clone(),
            image: asked.map(|asked| asked.image.clone()).unwrap_or_default(),
            is_ephemeral,
        })
    })
    .collect()
}

/// What controls the pod. Only Kubernetes' own DaemonSet is called one: anybody may define a kind of that name in another group.
fn owner(metadata: &Metadata, spec: &Spec) -> String {
    if metadata.annotations.get(CONFIG_SOURCE).is_some_and(|source| source == FILE) {
        // https://github.com/kubernetes/kubernetes/blob/v1.30.0/pkg/kubelet/config/common.go (`generatePodName`)
        let node = format!("-{}", spec.node_name.to_lowercase());
        let name = metadata.name.strip_suffix(&node).filter(|name| !name.is_empty() && node.len() > 1);
        return name.map(|name| format!("StaticPod/{name}")).unwrap_or_default();
    }
    let Some(owner) = metadata.owner_references.iter().find(|owner| owner.controller) else { return String::new() };
    let is_own = owner.kind != "DaemonSet" || owner.api_version == "apps/v1";
    if is_own {
        format!("{}/{}", owner.kind, owner.name)
    } else {
        format!("{}.{}/{}", owner.kind, owner.api_version, owner.name)
    }
}

#[cfg(test)]
#[path = "kubelet_tests.rs"]
mod tests;
