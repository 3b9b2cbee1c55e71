//! Containers have the names of their pods, and only namespace, DaemonSet and image together, by kubelet's own word, make one housekeeping. The
//! runtime is a real containerd; kubelet is a stand-in that answers as Kubernetes publishes it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::{Router, extract::State, http::Uri};
use lab::{
    agent::Agent,
    containerd::{Containerd, Pod},
    process::Running,
    wait,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

const CNI: &str = "602401143452.dkr.ecr.eu-central-1.amazonaws.com/amazon-k8s-cni:v1.18.3-eksbuild.1";
const OTHER: &str = "lab.invalid/miner:1";
const TIMEOUT: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_secs(8);
/// The question after that comes 14 s after the first one. A question without cause comes every minute.
const KNOWN_WITHIN: Duration = Duration::from_secs(15);

/// What kubelet is made to say, and what it was asked.
#[derive(Default)]
struct Kubelet {
    pods: Mutex<Vec<Value>>,
    asked: Mutex<Vec<String>>,
}

impl Kubelet {
    /// Listens on loopback, and returns its address.
    async fn start(self: &Arc<Self>) -> String {
        let answer = async |State(kubelet): State<Arc<Self>>, uri: Uri| {
            kubelet.asked.lock().unwrap().push(uri.to_string());
            let items = kubelet.pods.lock().unwrap().clone();
            json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}).to_string()
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(self));
        tokio::spawn(async { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    /// Says that it runs this pod, of that DaemonSet.
    fn runs(&self, pod: &Pod<'_>, daemonset: &str, id: &str) {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemonset, "uid": "1", "controller": true});
        self.pods.lock().unwrap().push(json!({
            "metadata": {
                "name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "ownerReferences": [owner],
                "annotations": {"kubernetes.io/config.source": "api"}
            },
            "spec": {"nodeName": "node", "containers": [{"name": pod.container, "image": pod.image}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": pod.container, "containerID": format!("containerd://{id}")}]}
        }));
    }
}

const POD: Pod<'_> = Pod {
    uid: "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11",
    name: "aws-node-x7q2w",
    namespace: "kube-system",
    container: "aws-node",
    image: CNI,
    command: &["sleep", "3600"],
};

/// Settings of an agent that asks both.
fn settings(containerd: &Containerd, kubelet: &str, enabled: bool) -> String {
    format!(
        "identity = \"host\"\nlog = \"info\"\ncontainers = {enabled}\ncri_socket = \"{}\"\nkubelet_url = \"{kubelet}\"\n",
        containerd.socket().display()
    )
}

/// One heartbeat of an agent with these settings.
fn once(folder: &Path, settings: &str) -> Value {
    let done = Agent::prepare(folder, settings, &[]).command().args(["once", "--interval", "500ms"]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_str(&text).unwrap()
}

/// The row of a container.
fn row<'a>(heartbeat: &'a Value, id: &str) -> &'a Value {
    let rows = heartbeat["workloads"].as_array().unwrap();
    let found: Vec<&Value> = rows.iter().filter(|row| row["key"].as_str().unwrap().contains(id)).collect();
    let [row] = found[..] else { panic!("{id}: {found:#?}") };
    row
}

fn class<'a>(heartbeat: &'a Value, id: &str) -> &'a str {
    row(heartbeat, id)["class"].as_str().unwrap()
}

/// Status and reason of the capability.
fn capability(heartbeat: &Value) -> (String, String) {
    let capabilities = heartbeat["coverage"]["capabilities"].as_array().unwrap();
    let found = capabilities.iter().find(|capability| capability["name"] == "containers").unwrap();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_namespace_daemonset_and_image_by_kubelets_word_make_a_container_housekeeping() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut containerd = Containerd::start(folder.path()).await;
    containerd.import(CNI);
    containerd.import(OTHER);
    let kubelet = Arc::new(Kubelet::default());
    let address = kubelet.start().await;

    let genuine = containerd.run(&POD).await;
    kubelet.runs(&POD, "aws-node", &genuine);
    // The runtime was told the same names, and kubelet knows nothing of it.
    let spoofed = Pod { uid: "00000000-0000-4000-8000-000000000001", name: "aws-node-aaaaa", ..POD };
    let spoofed_id = containerd.run(&spoofed).await;
    let in_default =
        Pod { uid: "00000000-0000-4000-8000-000000000002", name: "aws-node-bbbbb", namespace: "default", ..POD };
    let in_default_id = containerd.run(&in_default).await;
    kubelet.runs(&in_default, "aws-node", &in_default_id);
    let other = Pod { uid: "00000000-0000-4000-8000-000000000003", name: "aws-node-ccccc", image: OTHER, ..POD };
    let other_id = containerd.run(&other).await;
    kubelet.runs(&other, "aws-node", &other_id);
    // Kubelet's word for one pod, and the kernel sees the container in another one's cgroup.
    let moved = Pod { uid: "00000000-0000-4000-8000-000000000004", name: "aws-node-ddddd", ..POD };
    let moved_id = containerd.run(&moved).await;
    kubelet.runs(&Pod { uid: POD.uid, ..moved.clone() }, "aws-node", &moved_id);

    let heartbeat = once(&folder.path().join("agent"), &settings(&containerd, &address, true));
    assert_eq!(capability(&heartbeat), ("CAPABILITY_STATUS_OK".to_owned(), String::new()));
    assert_eq!(class(&heartbeat, &genuine), "CLASS_HOUSEKEEPING");
    for id in [&spoofed_id, &in_default_id, &other_id, &moved_id] {
        assert_eq!(class(&heartbeat, id), "CLASS_WORKLOAD", "{:#}", row(&heartbeat, id));
    }
    assert_eq!(
        row(&heartbeat, &genuine)["name"]["container"],
        json!({
            "name": "aws-node", "pod": "aws-node-x7q2w", "namespace": "kube-system", "owner": "DaemonSet/aws-node", "image": CNI
        })
    );
    let told = &row(&heartbeat, &spoofed_id)["name"]["container"];
    assert_eq!(
        [&told["pod"], &told["owner"]],
        ["aws-node-aaaaa", ""],
        "the runtime's names are shown, and it knows no owner"
    );
    assert!(kubelet.asked.lock().unwrap().iter().all(|uri| uri == "/pods"));

    let without = once(&folder.path().join("agent"), &settings(&containerd, &address, false));
    assert_eq!(capability(&without).0, "CAPABILITY_STATUS_NOT_APPLICABLE");
    assert_eq!(class(&without, &genuine), "CLASS_WORKLOAD", "nobody was asked");
    assert_eq!(row(&without, &genuine)["name"]["container"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_without_cri_is_no_source_and_nothing_is_broken() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let containerd = Containerd::start_without_cri(folder.path()).await;
    let settings =
        format!("identity = \"host\"\ncontainers = true\ncri_socket = \"{}\"\n", containerd.socket().display());
    let (status, reason) = capability(&once(&folder.path().join("agent"), &settings));
    assert_eq!(status, "CAPABILITY_STATUS_NOT_APPLICABLE", "{reason}");
    assert!(reason.contains("it does not serve CRI"), "{reason}");
}

/// The last whole heartbeat of an agent that writes one a line.
fn last(agent: &Running) -> Option<Value> {
    agent.output().lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

async fn until(agent: &Running, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    wait::until(what, TIMEOUT, || {
        let found = last(agent).filter(&fits);
        async { found }
    })
    .await
}

/// The process that asks, a child of one of the agent's threads: a second one is not the first thread's.
fn helper(agent: Pid) -> Option<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", agent.as_raw_nonzero())).unwrap();
    let children: Vec<String> =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok()).collect();
    children.iter().flat_map(|children| children.split_whitespace()).find_map(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        line.contains("runtime-helper").then(|| Pid::from_raw(pid.parse().ok()?)).flatten()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_comes_is_known_by_the_next_sample_and_a_source_that_goes_is_named() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut containerd = Containerd::start(folder.path()).await;
    containerd.import(CNI);
    let kubelet = Arc::new(Kubelet::default());
    let address = kubelet.start().await;
    let agent = Agent::prepare(&folder.path().join("agent"), &settings(&containerd, &address, true), &[]);
    let mut command = agent.command();
    command.args(["watch", "--json", "--interval", "500ms"]);
    let agent = Running::start("watch", &mut command, folder.path());
    until(&agent, "a first heartbeat", |heartbeat| capability(heartbeat).0 == "CAPABILITY_STATUS_OK").await;

    let id = containerd.run(&POD).await;
    until(&agent, "the new container", |heartbeat| heartbeat["workloads"].to_string().contains(&id)).await;
    // Kubelet may name a container long after its first process ran.
    tokio::time::sleep(LATE).await;
    kubelet.runs(&POD, "aws-node", &id);
    let is_upkeep = |heartbeat: &Value| {
        let rows = heartbeat["workloads"].as_array().unwrap();
        let mut living =
            rows.iter().filter(|row| row["key"].as_str().unwrap().contains(&id) && row["live_processes"] != 0);
        living.next().is_some_and(|row| row["class"] == "CLASS_HOUSEKEEPING")
    };
    let told = Instant::now();
    until(&agent, "the new container among housekeeping", is_upkeep).await;
    assert!(told.elapsed() < KNOWN_WITHIN, "{:?}", told.elapsed());

    containerd.hide_socket(true);
    let first = helper(agent.pid()).expect("a helper");
    kill_process(first, Signal::KILL).unwrap();
    let gone =
        until(&agent, "the missing socket in coverage", |heartbeat| capability(heartbeat).1.contains("sock")).await;
    assert_eq!(capability(&gone).0, "CAPABILITY_STATUS_BROKEN");
    containerd.hide_socket(false);
    let second = wait::until("another helper", TIMEOUT, || {
        let found = helper(agent.pid()).filter(|pid| *pid != first);
        async move { found }
    })
    .await;
    kill_process(second, Signal::KILL).unwrap();
    until(&agent, "everything known again", |heartbeat| {
        capability(heartbeat).0 == "CAPABILITY_STATUS_OK" && is_upkeep(heartbeat)
    })
    .await;
    let privileges = last(&agent).unwrap()["coverage"]["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .find(|capability| capability["name"] == "privileges")
        .cloned();
    assert_eq!(privileges.unwrap()["status"], "CAPABILITY_STATUS_OK", "the helper's thread holds no right either");
}
