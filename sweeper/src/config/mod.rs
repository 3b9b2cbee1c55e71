//! The configuration: one TOML file, overridden by environment variables, checked as a whole before anything starts.
//!
//! An unknown key or a value of the wrong type is refused in one line that names file, key and remedy; nothing is guessed and nothing
//! ignored. Every key and its default stands in `sweeper.example.toml`, which a test compares with the types here.

mod act;
mod batch;
mod check;
mod costs;
mod digest;
pub mod duration;
mod error;
mod google;
mod identity;
mod judgement;
mod keys;
mod load;
mod policy;
mod recommendations;
mod rights;
mod secret;
mod service;
mod teams;
#[cfg(test)]
mod tests;

pub use act::{ActConfig, ActProject, ActRole};
pub use batch::BatchConfig;
pub use costs::CostsConfig;
pub use digest::{DigestConfig, DigestList, Weekday};
pub use error::{ConfigError, Origin};
pub use google::GcpConfig;
pub use identity::IdentityConfig;
pub use judgement::{
    AwsAccount, AwsConfig, Enabled, OnpremConfig, PricingConfig, PricingSource, ScopeSchedule, SweepConfig,
    VerdictConfig,
};
pub use load::PREFIX;
pub use policy::{PolicyError, read_policy};
pub use recommendations::RecommendationsConfig;
pub use service::{
    ApiConfig, ApprovalsConfig, EmailConfig, EmailTls, IngestConfig, OutboxConfig, SlackConfig, StoreConfig,
};
pub use teams::SlackTeam;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// All settings of a sweeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the sweeper keeps its own files.
    pub data_dir: PathBuf,
    /// The database.
    pub store: StoreConfig,
    /// The HTTP server.
    pub api: ApiConfig,
    /// What agents send.
    pub ingest: IngestConfig,
    /// How nodes prove who they are.
    pub identity: IdentityConfig,
    /// The EC2 inventory.
    pub aws: AwsConfig,
    /// The inventory of Google Cloud.
    pub gcp: GcpConfig,
    /// On-demand prices.
    pub pricing: PricingConfig,
    /// When a machine counts as idle.
    pub verdict: VerdictConfig,
    /// When jobs, queues and machines of AWS Batch count as waste.
    pub batch: BatchConfig,
    /// When to look.
    pub sweep: SweepConfig,
    /// Machines that no provider bills for.
    pub onprem: OnpremConfig,
    /// How costs are split and whose they are.
    pub costs: CostsConfig,
    /// What is recommended.
    pub recommendations: RecommendationsConfig,
    /// Messages to a Slack channel.
    pub slack: SlackConfig,
    /// Messages by mail.
    pub email: EmailConfig,
    /// Summaries by mail.
    pub digest: DigestConfig,
    /// How messages are retried.
    pub outbox: OutboxConfig,
    /// Who may approve plans.
    pub approvals: ApprovalsConfig,
    /// Where approved plans are carried out.
    pub act: ActConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: default_data_dir(),
            store: StoreConfig::default(),
            api: ApiConfig::default(),
            ingest: IngestConfig::default(),
            identity: IdentityConfig::default(),
            aws: AwsConfig::default(),
            gcp: GcpConfig::default(),
            pricing: PricingConfig::default(),
            verdict: VerdictConfig::default(),
            batch: BatchConfig::default(),
            sweep: SweepConfig::default(),
            onprem: OnpremConfig::default(),
            costs: CostsConfig::default(),
            recommendations: RecommendationsConfig::default(),
            slack: SlackConfig::default(),
            email: EmailConfig::default(),
            digest: DigestConfig::default(),
            outbox: OutboxConfig::default(),
            approvals: ApprovalsConfig::default(),
            act: ActConfig::default(),
        }
    }
}

impl Config {
    /// Reads `file` (if one is given) and lays `environment` over it; see [`environment`] for the real one.
    ///
    /// # Errors
    /// See [`ConfigError`]; each prints as one line.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        load::load(file, environment)
    }

    /// What is wrong with the rights of the files that this rests on, each in one line with the command that mends it; `file` is the one that it was
    /// read from.
    #[must_use]
    pub fn warnings(&self, file: Option<&Path>) -> Vec<String> {
        rights::warnings(self, file)
    }

    /// URL of the database: the one configured, else SQLite in the data directory.
    #[must_use]
    pub fn store_url(&self) -> SecretString {
        let default =
            || SecretString::from(format!("sqlite://{}?mode=rwc", self.data_dir.join("sweeper.db").display()));
        self.store.url.clone().unwrap_or_else(default)
    }

    /// Where the operator token lies.
    #[must_use]
    pub fn operator_token_file(&self) -> PathBuf {
        self.api.operator_token_file.clone().unwrap_or_else(|| self.data_dir.join("operator-token"))
    }

    /// Where the fleet token lies.
    #[must_use]
    pub fn join_token_file(&self) -> PathBuf {
        self.ingest.join_token_file.clone().unwrap_or_else(|| self.data_dir.join("join-token"))
    }
}

/// This process's environment variables that begin with [`PREFIX`] and are valid Unicode.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.into_string().ok()?))
    })
}

/// `/var/lib/cloud-sweeper` for root, `$XDG_STATE_HOME/cloud-sweeper` (usually `~/.local/state/cloud-sweeper`) for others.
fn default_data_dir() -> PathBuf {
    let system = || PathBuf::from("/var/lib");
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if rustix::process::geteuid().is_root() {
        system()
    } else {
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state"))).unwrap_or_else(system)
    };
    base.join("cloud-sweeper")
}
