//! Settings of what the sweeper looks at and how it judges: providers, prices, verdicts, the schedule.

use super::duration;
use crate::inventory::{
    RetryPolicy,
    aws::{Options, Role, RoleArn},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Whether a provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enabled {
    /// If the standard credentials of this environment resolve.
    Auto,
    /// Always; missing credentials are an error.
    Yes,
    /// Never.
    No,
}

/// `[aws]`: the EC2 inventory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AwsConfig {
    /// Whether AWS is asked at all.
    pub enabled: Enabled,
    /// Regions to ask; none named means every region that the account has enabled.
    pub regions: Vec<String>,
    /// Whether the account of the credentials themselves is read.
    pub own_account: bool,
    /// Other accounts, each read through a role in it.
    pub accounts: Vec<AwsAccount>,
    /// So many regions are read side by side, over all accounts.
    pub scopes_at_once: usize,
    /// One kind of resource in one region is given up after so long.
    #[serde(with = "duration")]
    pub listing_timeout: Duration,
    /// Whether CloudTrail is asked who started machines and submitted jobs.
    pub cloudtrail: bool,
    /// Whether CloudWatch is asked about running instances that no agent reports from. AWS bills it.
    pub cloudwatch: bool,
    /// How far back it is asked.
    #[serde(with = "duration")]
    pub cloudwatch_lookback: Duration,
    /// It is asked about one instance once in this time.
    #[serde(with = "duration")]
    pub cloudwatch_every: Duration,
}

impl Default for AwsConfig {
    fn default() -> Self {
        let options = Options::default();
        Self {
            enabled: Enabled::Auto,
            regions: options.regions,
            own_account: options.own_account,
            accounts: Vec::new(),
            scopes_at_once: options.scopes_at_once,
            listing_timeout: options.retry.listing_timeout,
            cloudtrail: false,
            cloudwatch: false,
            cloudwatch_lookback: Duration::from_secs(14 * 86_400),
            cloudwatch_every: Duration::from_secs(86_400),
        }
    }
}

/// `[[aws.accounts]]`: one other account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsAccount {
    /// The role to assume in it.
    pub role_arn: RoleArn,
    /// What the role's trust policy asks for as `sts:ExternalId`.
    #[serde(default)]
    pub external_id: Option<String>,
    /// Regions to ask; none named means those of `aws.regions`.
    #[serde(default)]
    pub regions: Vec<String>,
    /// What that account's CloudTrail shows as the session's name.
    #[serde(default = "default_session_name")]
    pub session_name: String,
}

fn default_session_name() -> String {
    Role::SESSION_NAME.to_owned()
}

impl AwsConfig {
    /// The same in the words of the inventory.
    #[must_use]
    pub fn options(&self) -> Options {
        let role = |account: &AwsAccount| Role {
            arn: account.role_arn.clone(),
            external_id: account.external_id.clone(),
            regions: account.regions.clone(),
            session_name: account.session_name.clone(),
        };
        let defaults = Options::default();
        Options {
            own_account: self.own_account,
            roles: self.accounts.iter().map(role).collect(),
            regions: self.regions.clone(),
            scopes_at_once: self.scopes_at_once,
            retry: RetryPolicy { listing_timeout: self.listing_timeout, ..defaults.retry },
            ..defaults
        }
    }
}

/// Where prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PricingSource {
    /// The AWS Price List API.
    Api,
    /// A file in the AWS price list format.
    File,
    /// Nowhere: every price is unknown.
    None,
}

impl PricingSource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::File => "file",
            Self::None => "none",
        }
    }
}

/// `[pricing]`: on-demand prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PricingConfig {
    /// Where prices come from.
    pub source: PricingSource,
    /// The price list, if `source` is `file`.
    pub file: Option<PathBuf>,
    /// Region whose Price List API endpoint is asked; it answers for all regions.
    pub api_region: String,
}

impl Default for PricingConfig {
    fn default() -> Self {
        Self { source: PricingSource::Api, file: None, api_region: "us-east-1".to_owned() }
    }
}

/// `[verdict]`: when a machine counts as idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerdictConfig {
    /// So many missed heartbeats make a node `unknown`.
    pub missed_heartbeats: u32,
    /// No verdict this soon after boot.
    #[serde(with = "duration")]
    pub boot_grace: Duration,
    /// So long without work makes a node `idle`.
    #[serde(with = "duration")]
    pub idle_after: Duration,
    /// The same for a node whose GPUs are read.
    #[serde(with = "duration")]
    pub gpu_idle_after: Duration,
    /// The GPUs of a node that works or waits are unused when none of them worked for so long; longer than `lookback` is never.
    #[serde(with = "duration")]
    pub gpu_unused_after: Duration,
    /// A session with a terminal waits so long after its last input, and a port of somebody's after it was called; their node is not idle.
    #[serde(with = "duration")]
    pub interactive_after: Duration,
    /// Whether a node with a timer or a crontab that its distribution does not ship waits, or with a process that has slept by a timer for half of
    /// `idle_after`, and is not idle. `false` where each machine gets some that may be missed.
    pub schedules_wait: bool,
    /// A job, or a task of a run, no process of which has run for so long is stuck.
    #[serde(with = "duration")]
    pub stuck_after: Duration,
    /// A job, or a task of a run, that has used CPU time and done nothing else for so long is suspicious; longer than `lookback` is never.
    #[serde(with = "duration")]
    pub spinning_after: Duration,
    /// A machine that waits, and no full hour of which was busier than the next two settings for so long, is barely used.
    #[serde(with = "duration")]
    pub barely_used_after: Duration,
    /// CPU time of the whole machine, in nanoseconds a second on average over an hour.
    pub barely_used_cpu_threshold_ns_per_s: u64,
    /// Storage traffic, and network traffic, in bytes a second on average over an hour.
    pub barely_used_traffic_threshold_bytes_per_s: u64,
    /// A machine that works, and of which in so many hours of the week no hour of its last four weeks was busier than these two settings, has quiet hours. More than
    /// 168 is never.
    pub quiet_hours_of_week: u32,
    /// How far back heartbeats are read.
    #[serde(with = "duration")]
    pub lookback: Duration,
    /// Workload CPU time below this, in nanoseconds a second, is no work.
    pub workload_cpu_threshold_ns_per_s: u64,
    /// Disk traffic below this, in bytes a second, is no work.
    pub disk_threshold_bytes_per_s: u64,
    /// Network traffic below this, in bytes a second, is no work.
    pub network_threshold_bytes_per_s: u64,
    /// Work of the GPUs below this, in nanoseconds a second over all of them, is no work.
    pub gpu_busy_threshold_ns_per_s: u64,
    /// More process starts a second than this that no workload accounts for are work.
    pub unattributed_starts_per_s: f64,
    /// CPU time of the host that nobody accounts for, above this, in nanoseconds a second, makes a node `unknown`.
    pub unattributed_cpu_threshold_ns_per_s: u64,
    /// Likewise CPU time of kernel threads.
    pub kernel_cpu_threshold_ns_per_s: u64,
    /// Likewise disk traffic that nobody accounts for, in bytes a second.
    pub unattributed_disk_threshold_bytes_per_s: u64,
    /// Likewise CPU time of housekeeping, averaged over `idle_after`, in nanoseconds a second.
    pub housekeeping_cpu_budget_ns_per_s: u64,
    /// A host of which nothing was heard for so long, and which no inventory covers, is gone, and its findings end.
    #[serde(with = "duration")]
    pub gone_after: Duration,
    /// An instance without an agent is `quiet` only if its provider measured it over so long a look-back.
    #[serde(with = "duration")]
    pub quiet_after: Duration,
    /// No hour of it had more CPU than this, in millionths of what the machine has.
    pub quiet_cpu_threshold_millionths: u32,
    /// Nor more network traffic, in bytes a second.
    pub quiet_network_threshold_bytes_per_s: u64,
    /// The agent of a machine that runs is a finding when nothing has been heard of it for so long.
    #[serde(with = "duration")]
    pub silent_after: Duration,
    /// A volume or an address that has been tied to nothing for so long is left over.
    #[serde(with = "duration")]
    pub leftover_after: Duration,
    /// A snapshot whose volume and images are gone is left over once it is so old.
    #[serde(with = "duration")]
    pub snapshot_after: Duration,
    /// An instance that has been stopped for so long is left over: what it keeps is billed.
    #[serde(with = "duration")]
    pub stopped_after: Duration,
}

impl Default for VerdictConfig {
    fn default() -> Self {
        Self {
            missed_heartbeats: 3,
            boot_grace: Duration::from_secs(600),
            idle_after: Duration::from_secs(1_800),
            gpu_idle_after: Duration::from_secs(900),
            gpu_unused_after: Duration::from_secs(3_600),
            interactive_after: Duration::from_secs(7_200),
            schedules_wait: true,
            stuck_after: Duration::from_secs(1_800),
            spinning_after: Duration::from_secs(7_200),
            barely_used_after: Duration::from_secs(86_400),
            barely_used_cpu_threshold_ns_per_s: 100_000_000,
            barely_used_traffic_threshold_bytes_per_s: 64 << 10,
            quiet_hours_of_week: 48,
            lookback: Duration::from_secs(4 * 3_600),
            workload_cpu_threshold_ns_per_s: 2_000_000,
            disk_threshold_bytes_per_s: 4_096,
            network_threshold_bytes_per_s: 4_096,
            gpu_busy_threshold_ns_per_s: 1_000_000,
            unattributed_starts_per_s: 1.0,
            unattributed_cpu_threshold_ns_per_s: 200_000_000,
            kernel_cpu_threshold_ns_per_s: 200_000_000,
            unattributed_disk_threshold_bytes_per_s: 10 << 20,
            housekeeping_cpu_budget_ns_per_s: 50_000_000,
            gone_after: Duration::from_secs(7 * 86_400),
            quiet_after: Duration::from_secs(7 * 86_400),
            quiet_cpu_threshold_millionths: 20_000,
            quiet_network_threshold_bytes_per_s: 5_000,
            silent_after: Duration::from_secs(3_600),
            leftover_after: Duration::from_secs(3_600),
            snapshot_after: Duration::from_secs(30 * 86_400),
            stopped_after: Duration::from_secs(7 * 86_400),
        }
    }
}

/// `[sweep]`: when to look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SweepConfig {
    /// Cron expression with a field for seconds.
    pub schedule: String,
    /// IANA name of the time zone that the schedule is written in.
    pub timezone: String,
    /// Schedules of their own for some scopes; each follows the first that names it.
    pub schedules: Vec<ScopeSchedule>,
    /// A scheduled sweep that is late by so much is caught up with, and the schedule is set up anew.
    #[serde(with = "duration")]
    pub watchdog: Duration,
    /// Another replica takes over a scope whose sweeper has not been heard of for so long.
    #[serde(with = "duration")]
    pub lease: Duration,
    /// A plan follows after so many sweeps in a row with the same finding.
    pub plan_after_sweeps: u32,
}

impl Default for SweepConfig {
    fn default() -> Self {
        Self {
            schedule: "0 */10 * * * *".to_owned(),
            timezone: "UTC".to_owned(),
            schedules: Vec::new(),
            watchdog: Duration::from_secs(60),
            lease: Duration::from_secs(120),
            plan_after_sweeps: 2,
        }
    }
}

/// `[[sweep.schedules]]`: when some scopes are swept. They are named by the words of `sweeper scopes`; what is not named may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeSchedule {
    /// For example `aws`; `none` for the nodes that no scope covers.
    pub provider: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Cron expression with a field for seconds.
    pub schedule: String,
    /// IANA name of its time zone; that of `sweep.timezone` if none is named.
    pub timezone: Option<String>,
}

impl ScopeSchedule {
    /// Whether it is the schedule of a scope of these words.
    #[must_use]
    pub fn covers(&self, provider: &str, account: &str, region: &str) -> bool {
        let is = |named: &Option<String>, word: &str| named.as_ref().is_none_or(|named| named == word);
        is(&self.provider, provider) && is(&self.account, account) && is(&self.region, region)
    }

    /// Whether it names anything.
    #[must_use]
    pub fn names_a_scope(&self) -> bool {
        self.provider.is_some() || self.account.is_some() || self.region.is_some()
    }
}

/// `[onprem]`: machines that no provider bills for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OnpremConfig {
    /// What an hour of a node costs, in US dollars as text (`"0.25"`), by node id or `default`. A node that is not named has an unknown price.
    pub hourly_usd: BTreeMap<String, String>,
}
