//! CRI: the two calls that list pods' sandboxes and containers, over the runtime's socket.
//!
//! A runtime's socket is root: whoever may speak to it can start anything. So the calls that this program knows are listed in [`Call`], each reads
//! alone, and no other can be made. Messages are Kubernetes' own, cut down to the fields that are read (Apache-2.0):
//! <https://github.com/kubernetes/kubernetes/blob/v1.30.0/staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto>. Names and labels in them are what whoever
//! started a container told the runtime; they name it and prove nothing. containerd speaks this version since 1.6, CRI-O since 1.23.
//!
//! gRPC is five bytes in front of a message, and a status behind it: <https://github.com/grpc/grpc/blob/v1.64.0/doc/PROTOCOL-HTTP2.md>.

use super::{
    report::{Container, Failure},
    socket::connect,
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::{collections::HashMap, path::Path};

/// Most bytes of one answer.
const MAX_ANSWER_BYTES: usize = 8 << 20;
/// In front of a message: whether it is compressed, and its length.
const FRAME_BYTES: usize = 5;
/// The status of a service that a server does not have: Docker's own packages switch off containerd's CRI.
/// <https://github.com/grpc/grpc/blob/v1.64.0/doc/statuscodes.md>
const UNIMPLEMENTED: &str = "12";

/// Every call that this program can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    ListContainers,
    ListPodSandbox,
}

impl Call {
    const fn path(self) -> &'static str {
        match self {
            Self::ListContainers => "http://runtime/runtime.v1.RuntimeService/ListContainers",
            Self::ListPodSandbox => "http://runtime/runtime.v1.RuntimeService/ListPodSandbox",
        }
    }

    /// A request with its frame: of containers those that run, of sandboxes all that are ready.
    const fn request(self) -> &'static [u8] {
        match self {
            // filter (1) { state (2) { state (1) = CONTAINER_RUNNING } }
            Self::ListContainers => &[0, 0, 0, 0, 6, 0x0a, 4, 0x12, 2, 0x08, 1],
            // filter (1) { state (2) { state (1) = SANDBOX_READY, which is 0 and so left out } }
            Self::ListPodSandbox => &[0, 0, 0, 0, 4, 0x0a, 2, 0x12, 0],
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<CriContainer>,
}

#[derive(Clone, PartialEq, Message)]
struct CriContainer {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ImageSpec {
    /// What the runtime resolved it to, an id with most.
    #[prost(string, tag = "1")]
    image: String,
    /// What was asked for; from Kubernetes 1.28 on.
    #[prost(string, tag = "18")]
    user_specified_image: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, Message)]
struct PodSandbox {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    metadata: Option<PodSandboxMetadata>,
}

#[derive(Clone, PartialEq, Message)]
struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

/// Every container that runs, and the sandbox of every pod, whose name is `pause` here.
///
/// # Errors
/// If there is no runtime, it may not be asked, or it does not answer as it should.
pub(super) async fn containers(socket: &Path) -> Result<Vec<Container>, Failure> {
    let stream = connect(socket).await?;
    let broken = |error: hyper::Error| Failure::Broken(format!("{}: {}", socket.display(), crate::http::chain(&error)));
    let (mut sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with `sender`.
    let connection = tokio::spawn(connection);
    let answers = async {
        let sandboxes: ListPodSandboxResponse = call(&mut sender, Call::ListPodSandbox).await?;
        let containers: ListContainersResponse = call(&mut sender, Call::ListContainers).await?;
        Ok(join(sandboxes, containers))
    };
    let joined = answers.await.map_err(|failure: Failure| failure.map(|why| format!("{}: {why}", socket.display())));
    connection.abort();
    joined
}

fn join(sandboxes: ListPodSandboxResponse, containers: ListContainersResponse) -> Vec<Container> {
    let of_sandbox = |sandbox: PodSandbox| {
        let metadata = sandbox.metadata.unwrap_or_default();
        let pod = Container {
            id: sandbox.id.clone(),
            name: "pause".to_owned(),
            pod: metadata.name,
            pod_uid: metadata.uid,
            namespace: metadata.namespace,
            ..Container::default()
        };
        (sandbox.id, pod)
    };
    let pods: HashMap<String, Container> = sandboxes.items.into_iter().map(of_sandbox).collect();
    let of_container = |one: CriContainer| {
        let pod = pods.get(&one.pod_sandbox_id).cloned().unwrap_or_default();
        let image = one.image.unwrap_or_default();
        let asked = Some(image.user_specified_image).filter(|asked| !asked.is_empty());
        Container {
            id: one.id,
            name: one.metadata.unwrap_or_default().name,
            image: asked.unwrap_or(image.image),
            ..pod
        }
    };
    let mut all: Vec<Container> = containers.containers.into_iter().map(of_container).collect();
    all.extend(pods.into_values());
    all
}

async fn call<M: Message + Default>(sender: &mut SendRequest<Full<Bytes>>, call: Call) -> Result<M, Failure> {
    let broken = Failure::Broken;
    let request = Request::post(call.path())
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(call.request())))
        .map_err(|error| broken(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| broken(crate::http::chain(&error)))?;
    if response.status() != hyper::StatusCode::OK {
        return Err(broken(format!("{call:?} was answered by status {}", response.status())));
    }
    let (head, body) = response.into_parts();
    let (message, trailers) = read(body).await.map_err(broken)?;
    // An answer without a message has its status in front.
    let status = |name: &str| trailers.get(name).or_else(|| head.headers.get(name))?.to_str().ok();
    match status("grpc-status") {
        Some("0") => {}
        Some(UNIMPLEMENTED) => return Err(Failure::Absent("it does not serve CRI".to_owned())),
        Some(code) => {
            let why = status("grpc-message").unwrap_or_default();
            return Err(broken(format!("{call:?} was refused ({code}): {why}")));
        }
        None => return Err(broken(format!("{call:?} was answered without a status"))),
    }
    let length = message.get(1..FRAME_BYTES).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let rest = message.get(FRAME_BYTES..).unwrap_or_default();
    if message.first() != Some(&0) || length.and_then(|length| usize::try_from(length).ok()) != Some(rest.len()) {
        return Err(broken(format!("{call:?} was answered by something that is no message")));
    }
    M::decode(rest).map_err(|error| broken(format!("the answer to {call:?} cannot be read: {error}")))
}

async fn read(body: Incoming) -> Result<(Bytes, hyper::HeaderMap), String> {
    let whole = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(|error| crate::http::chain(&*error))?;
    let trailers = whole.trailers().cloned().unwrap_or_default();
    Ok((whole.to_bytes(), trailers))
}
