//! The helper process: `node-agent runtime-helper`. It alone speaks to kubelet, to container runtimes and to ECS's agent.
//!
//! Each line on its standard input is a question; the answer is one line of JSON ([`Answer`]s). It makes these calls and no others: kubelet's
//! `GET /pods`, CRI's `ListContainers` and `ListPodSandbox`, ECS's `GET /v1/tasks`, Docker's `GET /containers/json`. It ends with its standard input, so with the agent. Each source has
//! `TIMEOUT`, an answer has a longest length, and the process an upper bound of memory: a source that hangs, or never stops
//! talking, is named and costs no more than that.

use super::{
    Options, cri, docker, ecs, kubelet,
    report::{Answer, Container, Failure, Source},
};
use crate::{http, privileges};
use rustix::{
    process::{Resource, Rlimit, setrlimit},
    thread::CapabilitySet,
};
use std::{io::Write as _, path::Path, time::Duration};
use tokio::time::timeout;

/// The hidden command.
pub const COMMAND: &str = "runtime-helper";
/// Time that each source has for its whole answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer in JSON: 110 pods take 1 MB with all that Kubernetes says of them.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Most bytes of a token.
const MAX_TOKEN_BYTES: u64 = 16 << 10;
/// Most bytes of address space.
const MAX_MEMORY_BYTES: u64 = 512 << 20;

/// Answers until nobody asks any more.
///
/// # Errors
/// If the system refuses a pipe or a thread's basics.
pub fn serve(options: &Options) -> std::io::Result<()> {
    // A socket that root owns takes this right from anybody but root.
    let keep = if rustix::process::geteuid().is_root() { CapabilitySet::empty() } else { CapabilitySet::DAC_OVERRIDE };
    privileges::keep_in_this_thread(keep);
    // Where a service's filter of system calls refuses that, the service has a bound of its own.
    let _ = setrlimit(Resource::As, Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: Some(MAX_MEMORY_BYTES) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Nothing goes on between two questions.
    for question in std::io::stdin().lines() {
        question?;
        let mut line = serde_json::to_vec(&runtime.block_on(ask(options)))?;
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        out.write_all(&line)?;
        out.flush()?;
    }
    Ok(())
}

/// Asks every source that is switched on, all at once.
pub(super) async fn ask(options: &Options) -> Vec<Answer> {
    let kubelet = async {
        let url = options.kubelet_url.as_ref()?;
        Some(within(Source::Kubelet, ask_kubelet(url, options)).await)
    };
    let cri = async { Some(within(Source::Cri, cri::containers(options.cri_socket.as_ref()?)).await) };
    let ecs = async {
        let url = options.ecs_url.as_ref()?;
        Some(within(Source::Ecs, ask_ecs(url)).await)
    };
    let docker = async {
        let root = options.host_root.as_deref().unwrap_or(Path::new("/"));
        Some(within(Source::Docker, docker::containers(options.docker_socket.as_ref()?, root)).await)
    };
    let (kubelet, cri, ecs, docker) = futures::join!(kubelet, cri, ecs, docker);
    [kubelet, cri, ecs, docker].into_iter().flatten().collect()
}

async fn within(source: Source, answer: impl Future<Output = Result<Vec<Container>, Failure>>) -> Answer {
    let silence = || Err(Failure::Broken(format!("it has not answered within {} s", TIMEOUT.as_secs())));
    Answer::new(source, timeout(TIMEOUT, answer).await.unwrap_or_else(|_| silence()))
}

async fn ask_kubelet(url: &str, options: &Options) -> Result<Vec<Container>, Failure> {
    let broken = |why: String| Failure::Broken(why);
    let authority =
        options.kubelet_ca_file.as_deref().map(|file| read(file, MAX_BODY_BYTES as u64)).transpose().map_err(broken)?;
    let client = http::local_client(authority.as_deref()).map_err(|error| broken(http::chain(&error)))?;
    let mut request = client.get(format!("{url}/pods"));
    if let (Some(file), true) = (&options.kubelet_token_file, url.starts_with("https:")) {
        // It is changed every hour.
        let token = String::from_utf8(read(file, MAX_TOKEN_BYTES).map_err(broken)?);
        request =
            request.bearer_auth(token.map_err(|_| broken(format!("{}: this is no token", file.display())))?.trim());
    }
    kubelet::containers(&body(request).await?).map_err(broken)
}

async fn ask_ecs(url: &str) -> Result<Vec<Container>, Failure> {
    let client = http::local_client(None).map_err(|error| Failure::Broken(http::chain(&error)))?;
    ecs::containers(&body(client.get(format!("{url}/v1/tasks"))).await?).map_err(Failure::Broken)
}

async fn body(request: reqwest::RequestBuilder) -> Result<Vec<u8>, Failure> {
    let response = request.send().await.map_err(|error| {
        let why = http::chain(&error);
        if error.is_connect() && why.contains("refused") { Failure::Absent(why) } else { Failure::Broken(why) }
    })?;
    match response.status().as_u16() {
        200 => {}
        401 | 403 => return Err(Failure::Denied(format!("it answered by status {}", response.status()))),
        _ => return Err(Failure::Broken(format!("it answered by status {}", response.status()))),
    }
    let body =
        http::read_limited(response, MAX_BODY_BYTES).await.map_err(|error| Failure::Broken(http::chain(&error)))?;
    if body.len() == MAX_BODY_BYTES {
        return Err(Failure::Broken(format!("its answer has {MAX_BODY_BYTES} bytes and more")));
    }
    Ok(body)
}

fn read(file: &Path, most: u64) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let mut content = Vec::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut content));
    opened.map(|_| content).map_err(|error| format!("{}: {error}", file.display()))
}
