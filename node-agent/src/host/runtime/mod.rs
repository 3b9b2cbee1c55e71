//! Who containers are: names, namespaces, owners and images of pods and tasks, as kubelet, the container runtime, ECS's agent and Docker tell them.
//!
//! Off unless it is switched on (`containers = true`). A process of its own asks ([`serve`]), with a list of calls that only read; what it answers is
//! kept by container id and never waited for: a container that is not known yet is asked for, and is somebody's work until the answer is there.
//!
//! Two kinds of answers must not be mixed up. Names are shown, whoever told them. *Housekeeping* is a container only by kubelet's own word, joined by the
//! container's id **and** its pod's uid with the place where the kernel sees the process, below the kubelet's own cgroup; labels, and what the runtime was told, prove nothing.
//! Where the runtime is asked as well and knows the container otherwise, it is work. And ECS's own agent is, which Docker runs from an image that root keeps
//! (`docker`).

mod archive;
mod cri;
mod docker;
mod ecs;
mod helper;
mod known;
mod kubelet;
pub mod report;
pub mod serve;
mod socket;

use crate::{
    coverage::{Capabilities, Status},
    privileges,
};
use helper::Shared;
use known::Known;
use report::Container;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use workload_rules::Housekeeping;

/// Where runtimes listen unless they are told otherwise: containerd, CRI-O.
const SOCKETS: [&str; 2] = ["/run/containerd/containerd.sock", "/run/crio/crio.sock"];
/// Where Docker listens.
const DOCKER_SOCKET: &str = "/run/docker.sock";
/// Time that the first answer has.
const FIRST_WORD: Duration = Duration::from_secs(6);

/// Who is asked. On the command line they are the helper's.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Options {
    /// Whether anybody is.
    #[arg(skip)]
    pub enabled: bool,
    /// The container runtime's socket.
    #[arg(long)]
    pub cri_socket: Option<PathBuf>,
    /// Where kubelet answers, without a trailing slash.
    #[arg(long)]
    pub kubelet_url: Option<String>,
    /// The token that is shown to kubelet, over https alone.
    #[arg(long)]
    pub kubelet_token_file: Option<PathBuf>,
    /// Certificates by which kubelet is known.
    #[arg(long)]
    pub kubelet_ca_file: Option<PathBuf>,
    /// Where ECS's agent answers, without a trailing slash.
    #[arg(long)]
    pub ecs_url: Option<String>,
    /// Docker's socket.
    #[arg(long)]
    pub docker_socket: Option<PathBuf>,
    /// Where the host's files lie, for the archives of images; `/` unless it is set.
    #[arg(long)]
    pub host_root: Option<PathBuf>,
}

impl Options {
    /// Where nobody is named: the runtimes whose sockets are found.
    fn or_what_is_found(mut self, found: impl Fn(&Path) -> bool) -> Self {
        if self.sources().next().is_none() {
            self.cri_socket = SOCKETS.into_iter().map(PathBuf::from).find(|socket| found(socket));
            self.docker_socket = Some(PathBuf::from(DOCKER_SOCKET)).filter(|socket| found(socket));
        }
        self
    }

    fn to_arguments(&self) -> Vec<std::ffi::OsString> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.clone().into_os_string());
        let text = |text: &Option<String>| text.as_ref().map(Into::into);
        let all = [
            ("--cri-socket", path(&self.cri_socket)),
            ("--kubelet-url", text(&self.kubelet_url)),
            ("--kubelet-token-file", path(&self.kubelet_token_file)),
            ("--kubelet-ca-file", path(&self.kubelet_ca_file)),
            ("--ecs-url", text(&self.ecs_url)),
            ("--docker-socket", path(&self.docker_socket)),
            ("--host-root", path(&self.host_root)),
        ];
        all.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).flatten().collect()
    }
}

/// What is known of this machine's containers.
#[derive(Debug)]
pub struct Containers {
    known: Known,
    shared: Option<Arc<Shared>>,
    /// Why nobody is asked.
    refusal: Option<(Status, String)>,
}

impl Containers {
    /// Starts the helper where it is switched on, and waits for its first answer, 6 s at most. Call it while the agent holds the rights that the
    /// helper needs to open the sockets: later ones have none.
    #[must_use]
    pub fn start(options: &Options) -> Self {
        let options = options.clone().or_what_is_found(Path::exists);
        let refused =
            |status, why: &str| Self { known: Known::default(), shared: None, refusal: Some((status, why.to_owned())) };
        if !options.enabled {
            return refused(Status::NotApplicable, "switched off: `containers = true` asks for names and owners");
        }
        if options.sources().next().is_none() {
            return refused(
                Status::NotApplicable,
                "no container runtime's socket is here, and no kubelet_url or ecs_url is set",
            );
        }
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        // In this thread, which still has the rights.
        let child = helper::start(&options);
        let begin = move || {
            privileges::drop_in_this_thread();
            helper::keep_running(&options, child, &theirs);
        };
        match thread::Builder::new().name("runtime".to_owned()).stack_size(256 * 1024).spawn(begin) {
            Ok(_) => {
                shared.wait_for_news(FIRST_WORD);
                Self { known: Known::default(), shared: Some(shared), refusal: None }
            }
            Err(error) => refused(Status::Broken, &format!("no thread for the helper: {error}")),
        }
    }

    /// Begins a sample: takes what was answered since the last one.
    pub fn begin(&mut self) {
        if let Some(answers) = self.shared.as_ref().and_then(|shared| shared.take()) {
            self.known.take(answers, Instant::now());
        }
    }

    /// Ends a sample: asks again if it met a container that nobody knew, for the next one.
    pub fn end(&mut self) {
        if let Some(shared) = self.shared.as_ref().filter(|_| self.known.has_unknown()) {
            shared.ask();
        }
    }

    /// Whether the container at this cgroup path is housekeeping by these rules, as kubelet says, or the system's own, as Docker does.
    pub fn is_upkeep(&mut self, rules: &Housekeeping, path: &str) -> bool {
        self.shared.is_some() && self.known.is_upkeep(rules, path, Instant::now())
    }

    /// What is told of the container of this id.
    pub fn describe(&mut self, id: &str) -> Option<&Container> {
        self.shared.as_ref()?;
        self.known.describe(id, Instant::now())
    }

    /// States the capability `containers`.
    pub fn state(&self, capabilities: &mut Capabilities) {
        let (status, reason) = self.refusal.clone().unwrap_or_else(|| self.known.status());
        capabilities.set("containers", status, reason);
    }
}

impl Drop for Containers {
    /// The helper's thread ends within half a second, and the helper with it.
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.end();
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
