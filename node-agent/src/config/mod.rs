//! What the agent was told: defaults, then one TOML file, then `NODE_AGENT_…` variables; the later wins.
//!
//! It refuses to guess: an unknown key, a value of the wrong kind or a number out of bounds is a one-line error that names
//! its origin, the key, and the nearest valid key. It reads each source once, at start.

mod load;
mod value;

pub use value::parse_duration;

use crate::{
    budget::Limits,
    host::{gpu, runtime},
    rules::RulesStore,
};
pub use load::{DEFAULT_FILE, Surroundings, load};
use secrecy::SecretString;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

/// Every key, in the order of the example file.
pub const KEYS: [&str; 27] = [
    "sweeper_url",
    "join_token",
    "join_token_file",
    "state_dir",
    "interval",
    "spool_max_bytes",
    "spool_max_age",
    "source",
    "syscall_classes",
    "keep_ptrace",
    "host_root",
    "stop_file",
    "max_cpu_percent_of_host",
    "max_memory_bytes",
    "identity",
    "gpu_helper",
    "pci_devices",
    "containers",
    "cri_socket",
    "docker_socket",
    "kubelet_url",
    "kubelet_token_file",
    "kubelet_ca_file",
    "ecs_url",
    "rules_file",
    "metrics_listen",
    "log",
];

/// The settings of one agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the sweeper is, without a trailing slash. Needed to `run`.
    pub sweeper_url: Option<String>,
    /// How the agent proves, once, that it may join.
    pub join_token: Option<JoinToken>,
    /// Where the node token and the spool are kept.
    pub state_dir: PathBuf,
    /// Time between two heartbeats.
    pub interval: Duration,
    /// Most bytes that the spool may take on disk.
    pub spool_max_bytes: u64,
    /// Age at which an unsent heartbeat is dropped.
    pub spool_max_age: Duration,
    /// Which source of workload counters to use.
    pub source: SourceChoice,
    /// Whether system calls are counted by class.
    pub syscall_classes: bool,
    /// Whether `CAP_SYS_PTRACE` is kept, where the agent has it.
    pub keep_ptrace: bool,
    /// Where the host's files are: what the distribution shipped is looked up there.
    pub host_root: PathBuf,
    /// While this file exists, nothing is measured and nothing sent.
    pub stop_file: PathBuf,
    /// What the agent may cost before it does less.
    pub budget: Limits,
    /// Where the node's identity comes from.
    pub identity: IdentityChoice,
    /// Where GPUs are looked for, and by what they are read.
    pub gpu: gpu::Options,
    /// Who is asked for names and owners of containers.
    pub runtime: runtime::Options,
    /// Rules of this host alone, in the place of the sweeper's and the built-in ones.
    pub rules_file: Option<PathBuf>,
    /// Where the last heartbeat is shown as OpenMetrics; `None` is nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Filter of log lines, as `tracing_subscriber::EnvFilter` reads it; `None` is `info` for `run` and `warn` for the others.
    pub log: Option<String>,
}

/// Where the join token is.
#[derive(Clone, Debug)]
pub enum JoinToken {
    /// Given in the configuration itself.
    Text(SecretString),
    /// In a file, read again before each attempt to join, so that it may be replaced while the agent runs.
    File(PathBuf),
}

/// Which source of workload counters to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChoice {
    /// eBPF where the kernel and the agent's rights allow it, else `/proc` with whatever of the two below works; the
    /// choice is named in coverage.
    Auto,
    /// eBPF or an error.
    Ebpf,
    /// `/proc`, and forks by tracepoints that need no type information, or an error.
    Tracepoints,
    /// `/proc`, and the kernel's records of exited tasks, or an error.
    Taskstats,
    /// `/proc` alone.
    Proc,
}

/// Where the node's identity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityChoice {
    /// The cloud that the firmware names, else the machine id.
    Auto,
    /// EC2's metadata service or an error.
    Aws,
    /// Compute Engine's metadata service or an error.
    Gcp,
    /// The machine id; no metadata service is asked.
    Host,
}

impl Config {
    /// Keeps the rules that this configuration and the state directory say.
    #[must_use]
    pub fn rules(&self) -> Arc<RulesStore> {
        Arc::new(RulesStore::start(self.rules_file.as_deref(), &self.state_dir))
    }

    /// What holds when nothing is said.
    #[must_use]
    pub fn default_in(surroundings: &Surroundings) -> Self {
        Self {
            sweeper_url: None,
            join_token: None,
            state_dir: surroundings.default_state_dir(),
            interval: Duration::from_secs(30),
            spool_max_bytes: 64 * 1024 * 1024,
            spool_max_age: Duration::from_secs(7 * 24 * 3600),
            source: SourceChoice::Auto,
            syscall_classes: false,
            keep_ptrace: false,
            host_root: PathBuf::from("/"),
            stop_file: PathBuf::from("/run/node-agent/stop"),
            budget: Limits { cpu_ppm_of_host: 5_000, memory_bytes: 64 * 1024 * 1024 },
            identity: IdentityChoice::Auto,
            gpu: gpu::Options::default(),
            runtime: runtime::Options::default(),
            rules_file: None,
            metrics_listen: None,
            log: None,
        }
    }
}

/// Why a configuration cannot be used. Each is one line.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was asked for cannot be read.
    #[error("{file}: cannot read the configuration file: {source}")]
    Unreadable {
        /// As the user wrote it.
        file: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// Not TOML.
    #[error("{file}, line {line}: {message}")]
    Syntax {
        /// As the user wrote it.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The parser's word.
        message: String,
    },
    /// No such key.
    #[error("{origin}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// A file or the environment.
        origin: String,
        /// As the user wrote it.
        key: String,
        /// The nearest valid key, or all of them.
        hint: String,
    },
    /// A key without which this command cannot work.
    #[error("key `{key}` is not set; set it in the configuration file or as {variable}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The variable of the same meaning.
        variable: &'static str,
    },
    /// A value that the key cannot hold.
    #[error("{origin}: key `{key}`: {reason}")]
    Value {
        /// A file or the environment.
        origin: String,
        /// The key at fault.
        key: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}
