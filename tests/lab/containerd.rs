//! containerd with its CRI, and pods made by it as kubelet makes them: no network of their own, in kubelet's cgroups.
//!
//! It has a folder, a socket and a state of its own beside any other containerd of this host. Images hold busybox alone and are imported, since nothing
//! can be pulled here. Whoever has the socket may tell CRI any names: so may a test.

use crate::{binaries, image, process::Running, wait};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::net::UnixStream;

/// What sandboxes run; any image will do.
const PAUSE: &str = "lab.invalid/pause:1";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A pod of one container, as CRI is told of it.
#[derive(Clone, Debug)]
pub struct Pod<'a> {
    /// Its uid, which also names its cgroup.
    pub uid: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The container's name.
    pub container: &'a str,
    /// The container's image; it must have been imported.
    pub image: &'a str,
    /// What the container runs.
    pub command: &'a [&'a str],
}

/// A containerd that runs; pods and daemon end with it.
#[derive(Debug)]
pub struct Containerd {
    folder: PathBuf,
    containers: Vec<String>,
    process: Running,
}

impl Containerd {
    /// Starts it with its files in `folder`, whose path must be short (the socket's is at most 107 bytes).
    ///
    /// # Panics
    ///
    /// When it is not installed, this user may not run it (it needs root), or it is not up in time.
    pub async fn start(folder: &Path) -> Self {
        let containerd = Self::with(folder, "").await;
        containerd.import(PAUSE);
        containerd
    }

    /// The same without its CRI, as Docker's own packages configure it.
    ///
    /// # Panics
    ///
    /// As [`Self::start`].
    pub async fn start_without_cri(folder: &Path) -> Self {
        Self::with(folder, "disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n").await
    }

    async fn with(folder: &Path, more: &str) -> Self {
        let own = folder.display();
        let config = format!(
            "version = 2\n{more}root = \"{own}/root\"\nstate = \"{own}/state\"\n[grpc]\naddress = \"{own}/sock\"\n\
             [plugins.\"io.containerd.internal.v1.opt\"]\npath = \"{own}/opt\"\n\
             [plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"{PAUSE}\"\ndisable_apparmor = true\nrestrict_oom_score_adj = true\n\
             [plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"{own}/cni\"\nconf_dir = \"{own}/cni\"\n\
             [plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"native\"\n"
        );
        fs::write(folder.join("config.toml"), config).expect("the configuration can be written");
        let mut command = Command::new(binaries::system("containerd"));
        command.arg("--config").arg(folder.join("config.toml"));
        let process = Running::start("containerd", &mut command, folder);
        let mut containerd = Self { folder: folder.to_owned(), containers: Vec::new(), process };
        wait::until("containerd", TIMEOUT, || {
            assert!(containerd.process.ended().is_none(), "containerd ended: {}", containerd.process.output());
            let answers = containerd.ctr(&["version"]).output().is_ok_and(|done| done.status.success());
            async move { answers.then_some(()) }
        })
        .await;
        containerd
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binaries::system("ctr"));
        command.arg("--address").arg(self.socket()).args(["--namespace", "k8s.io"]).args(arguments);
        command
    }

    /// Makes an image of this name, with busybox in it.
    ///
    /// # Panics
    ///
    /// When it cannot be made or imported.
    pub fn import(&self, name: &str) {
        let archive = image::archive(&self.folder, &binaries::system("busybox"), &["sleep", "3600"], name);
        let mut import = self.ctr(&["images", "import", "--snapshotter", "native"]);
        let done = import.arg(archive).output().expect("ctr starts");
        assert!(done.status.success(), "{import:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Runs a pod and returns the id of its container.
    ///
    /// # Panics
    ///
    /// When containerd refuses.
    pub async fn run(&mut self, pod: &Pod<'_>) -> String {
        let text = str::to_owned;
        let sandbox = SandboxConfig {
            metadata: Some(SandboxMetadata {
                name: text(pod.name),
                uid: text(pod.uid),
                namespace: text(pod.namespace),
                attempt: 0,
            }),
            linux: Some(LinuxSandbox {
                cgroup_parent: format!("/kubepods/burstable/pod{}", pod.uid),
                security: Some(SandboxSecurity { namespaces: Some(Namespaces { network: 2, pid: 1, ipc: 0 }) }),
            }),
        };
        let request = RunSandbox { config: Some(sandbox.clone()) };
        let sandbox_id = self.call::<Id>("RunPodSandbox", &request).await.id;
        self.containers.push(sandbox_id.clone());
        let config = ContainerConfig {
            metadata: Some(ContainerMetadata { name: text(pod.container), attempt: 0 }),
            image: Some(Image { image: text(pod.image) }),
            command: vec!["/bin/busybox".to_owned()],
            args: pod.command.iter().map(|word| text(word)).collect(),
        };
        let request = CreateContainer { pod_sandbox_id: sandbox_id, config: Some(config), sandbox: Some(sandbox) };
        let id = self.call::<Id>("CreateContainer", &request).await.id;
        self.containers.push(id.clone());
        self.call::<Nothing>("StartContainer", &Id { id: id.clone() }).await;
        id
    }

    async fn call<M: Message + Default>(&self, name: &str, request: &impl Message) -> M {
        let stream = UnixStream::connect(self.socket()).await.expect("containerd listens");
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("containerd speaks HTTP/2");
        let connection = tokio::spawn(connection);
        let message = request.encode_to_vec();
        let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
        let body = [&[0][..], &length, &message].concat();
        let request = Request::post(format!("http://lab/runtime.v1.RuntimeService/{name}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let response = sender.send_request(request).await.expect("containerd answers");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a whole answer");
        let trailers = body.trailers().cloned().unwrap_or_default();
        let status = trailers.get("grpc-status").or_else(|| head.headers.get("grpc-status"));
        let why = trailers.get("grpc-message").or_else(|| head.headers.get("grpc-message"));
        assert!(status.is_some_and(|status| status == "0"), "{name}: {why:?}");
        connection.abort();
        M::decode(&body.to_bytes()[5..]).expect("an answer of CRI")
    }

    /// Takes the socket away, or puts it back: nobody can connect any more, as if the daemon had ended.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn hide_socket(&self, is_hidden: bool) {
        let away = self.folder.join("away");
        let (from, to) = if is_hidden { (self.socket(), away) } else { (away, self.socket()) };
        fs::rename(from, to).expect("the socket can be moved");
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = fs::rename(self.folder.join("away"), self.socket());
        for id in self.containers.iter().rev() {
            let _ = self.ctr(&["tasks", "rm", "--force", id]).output();
        }
        // What CRI mounts for a sandbox (its shm) goes only with the sandbox, and its folder could not be removed. Last mounted first.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(Path::new);
        for point in points.filter(|point| point.starts_with(&self.folder)).collect::<Vec<_>>().into_iter().rev() {
            let _ = Command::new("umount").arg("--lazy").arg(point).output();
        }
    }
}

// Of Kubernetes' CRI (Apache-2.0), the fields that are used:
// https://github.com/kubernetes/kubernetes/blob/v1.30.0/staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto

#[derive(Clone, PartialEq, Message)]
struct RunSandbox {
    #[prost(message, optional, tag = "1")]
    config: Option<SandboxConfig>,
}

#[derive(Clone, PartialEq, Message)]
struct SandboxConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<SandboxMetadata>,
    #[prost(message, optional, tag = "8")]
    linux: Option<LinuxSandbox>,
}

#[derive(Clone, PartialEq, Message)]
struct SandboxMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(uint32, tag = "4")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
struct LinuxSandbox {
    #[prost(string, tag = "1")]
    cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    security: Option<SandboxSecurity>,
}

#[derive(Clone, PartialEq, Message)]
struct SandboxSecurity {
    #[prost(message, optional, tag = "1")]
    namespaces: Option<Namespaces>,
}

/// 0 is the pod's, 1 the container's own, 2 the node's.
#[derive(Clone, PartialEq, Message)]
struct Namespaces {
    #[prost(int32, tag = "1")]
    network: i32,
    #[prost(int32, tag = "2")]
    pid: i32,
    #[prost(int32, tag = "3")]
    ipc: i32,
}

#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    pod_sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    sandbox: Option<SandboxConfig>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    image: Option<Image>,
    #[prost(string, repeated, tag = "3")]
    command: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    args: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(string, tag = "1")]
    image: String,
}

/// Most messages that name one thing.
#[derive(Clone, PartialEq, Message)]
struct Id {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}
