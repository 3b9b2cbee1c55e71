//! Where machines report to: a real sweeper that sweeps over and over.

use super::{IDLE_AFTER, INTERACTIVE_AFTER, INTERVAL, SCALE, SPINNING_AFTER, replays};
use crate::{
    aws::{Moto, estate::REGION},
    binaries,
    microvm::HOST,
    partners::{pace, send},
    postgres::Postgres,
    sweeper::Sweeper,
};
use heartbeat::{BootId, NodeId, wire};
use jiff::Timestamp;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use sweeper::store::Store;
use tokio::{
    net::TcpListener,
    sync::{Mutex, watch},
    task::AbortHandle,
    time::timeout,
};

/// Longest that a machine may take to send what is waited for, its start included, on a host whose CPUs are busy with others.
const HEARTBEATS_TIMEOUT: Duration = Duration::from_secs(300);
/// From one sweep to the next, if it takes no longer.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// Where machines report to, and what it says of them.
#[derive(Debug)]
pub struct Site {
    sweeper: Arc<Sweeper>,
    /// Where its machines are instances, if they are.
    cloud: Option<Moto>,
    store: Store,
    _server: Option<Arc<Postgres>>,
    /// The laboratory's programs, `work` and `states`.
    programs: [PathBuf; 2],
    reports: watch::Receiver<Arc<Value>>,
    /// Held while it sweeps.
    sweeping: Arc<Mutex<()>>,
    sender: u16,
    trickle: u16,
    tasks: Vec<AbortHandle>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn config(url: &str, is_debian: bool, is_cloud: bool) -> String {
    let seconds = |default: u64| default / u64::from(SCALE);
    let emulated = if is_debian {
        // As in the scenario `real_machine`: what a distribution does on an emulated CPU costs tens of times what it does on a real one.
        "workload_cpu_threshold_ns_per_s = 20_000_000\nhousekeeping_cpu_budget_ns_per_s = 500_000_000\n"
    } else {
        ""
    };
    let cloud = if is_cloud {
        format!("[aws]\nregions = [\"{REGION}\"]\n[batch]\nend_within = \"{}s\"\n", seconds(900))
    } else {
        "[aws]\nenabled = \"no\"\n".to_owned()
    };
    format!(
        "{cloud}[store]\nurl = \"{url}\"\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[verdict]\nboot_grace = \"{}s\"\nidle_after = \"{}s\"\n\
         interactive_after = \"{}s\"\nstuck_after = \"{}s\"\nspinning_after = \"{}s\"\nlookback = \"{}s\"\n# An emulated machine may lose some seconds when this host is busy.\n\
         missed_heartbeats = 10\n{emulated}",
        seconds(600),
        IDLE_AFTER.as_secs(),
        INTERACTIVE_AFTER.as_secs(),
        IDLE_AFTER.as_secs(),
        SPINNING_AFTER.as_secs(),
        seconds(4 * 3_600),
    )
}

impl Site {
    /// Starts a sweeper in `folder` that sweeps over and over, for machines of one kind: whole ones, over PostgreSQL, or not, over SQLite; workers of AWS Batch or not.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(folder: &Path, is_debian: bool, are_workers: bool) -> Self {
        let cloud = if are_workers { Some(Moto::start(&folder.join("aws")).await) } else { None };
        let environment = cloud.as_ref().map(Moto::environment).unwrap_or_default();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let server = if is_debian { Some(Postgres::shared().await) } else { None };
        let url = match &server {
            Some(server) => server.database().await,
            None => format!("sqlite://{}?mode=rwc", folder.join("sweeper.db").display()),
        };
        let config = config(&url, is_debian, are_workers);
        let sweeper = Arc::new(Sweeper::start(&folder.join("sweeper"), &config, &environment).await);
        let programs = ["work.c", "states.c"].map(|source| binaries::compiled(source, folder));
        let store = Store::connect(&url).await.expect("the sweeper's database");
        let (told, reports) = watch::channel(Arc::new(Value::Null));
        let (sweeps, sweeping) = (Arc::clone(&sweeper), Arc::new(Mutex::new(())));
        let held = Arc::clone(&sweeping);
        let mut tasks = vec![
            tokio::spawn(async move {
                let mut ticks = pace(SWEEP_EVERY);
                loop {
                    ticks.tick().await;
                    let _held = held.lock().await;
                    let report = sweeps.json(&["sweep"]).await;
                    if told.send(Arc::new(report)).is_err() {
                        return;
                    }
                }
            })
            .abort_handle(),
        ];
        let mut ports = Vec::new();
        for (bytes, period) in [(2_048, Duration::from_millis(333)), (40, Duration::from_secs(1))] {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
            ports.push(listener.local_addr().expect("a port").port());
            tasks.push(tokio::spawn(send(listener, bytes, period)).abort_handle());
        }
        Self {
            sweeper,
            cloud,
            store,
            _server: server,
            programs,
            reports,
            sweeping,
            sender: ports[0],
            trickle: ports[1],
            tasks,
        }
    }

    /// Has every decision about its machines made again, from its own database and from the other kind of database, with the same result. How many
    /// there were.
    ///
    /// # Panics
    ///
    /// When one is made otherwise.
    pub async fn replays(&self) -> usize {
        let _no_sweep_meanwhile = self.sweeping.lock().await;
        replays::from_both(&self.sweeper, &self.store).await
    }

    /// The cloud whose instances its machines are.
    pub(super) fn cloud(&self) -> &Moto {
        self.cloud.as_ref().expect("a site of workers")
    }

    /// What each sweep says, the latest one first.
    pub(super) fn reports(&self) -> watch::Receiver<Arc<Value>> {
        self.reports.clone()
    }

    pub(super) fn programs(&self) -> &[PathBuf; 2] {
        &self.programs
    }

    pub(super) fn join_token(&self) -> String {
        self.sweeper.join_token()
    }

    /// Commands with this host's address and ports in them.
    pub(super) fn filled(&self, commands: &str) -> String {
        commands
            .replace("SENDER", &self.sender.to_string())
            .replace("TRICKLE", &self.trickle.to_string())
            .replace("HOST", HOST)
    }

    pub(super) fn agent_config(&self, more: &str) -> String {
        let identity = if self.cloud.is_some() { "aws" } else { "host" };
        // An emulated CPU is tens of times slower than a real one: kept to its budget, the agent would sample half as often.
        format!(
            "sweeper_url = \"http://{HOST}:{}\"\nidentity = \"{identity}\"\ninterval = \"{}s\"\nmax_cpu_percent_of_host = 100\n{more}",
            self.sweeper.port(),
            INTERVAL.as_secs()
        )
    }

    /// The heartbeats of a node, oldest first.
    pub(super) async fn heartbeats(&self, node: &NodeId) -> Vec<(BootId, wire::Heartbeat)> {
        let rows = self.store.heartbeats(node, Timestamp::MIN, Timestamp::MAX).await.expect("heartbeats");
        rows.into_iter().map(|row| (row.boot_id, row.heartbeat)).collect()
    }

    /// The verdict on a node now, and why.
    pub(super) async fn said_of(&self, node: &NodeId) -> String {
        let told = self.sweeper.json(&["nodes", &node.to_string()]).await;
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("verdict"), text("why"))
    }

    /// The node of that name, once it has three heartbeats; none if that takes too long.
    pub(super) async fn joined(&self, hostname: &str) -> Option<NodeId> {
        self.after_a_sweep(|| async {
            let nodes = self.store.nodes().await.expect("nodes");
            let node = nodes.into_iter().find(|node| node.hostname == hostname)?.node_id;
            (self.heartbeats(&node).await.len() >= 3).then_some(node)
        })
        .await
    }

    /// Waits until a node has sent so many heartbeats more.
    pub(super) async fn more_heartbeats(&self, node: &NodeId, count: usize) {
        let wanted = self.heartbeats(node).await.len() + count;
        let more = || async { (self.heartbeats(node).await.len() >= wanted).then_some(()) };
        let came = self.after_a_sweep(more).await;
        came.unwrap_or_else(|| panic!("waited {HEARTBEATS_TIMEOUT:?} in vain for {count} heartbeats more of {node}"));
    }

    /// Asks after each sweep, until there is an answer; none if that takes too long.
    async fn after_a_sweep<T, F: Future<Output = Option<T>>>(&self, mut ask: impl FnMut() -> F) -> Option<T> {
        let mut reports = self.reports();
        let answer = timeout(HEARTBEATS_TIMEOUT, async {
            loop {
                if let Some(answer) = ask().await {
                    return answer;
                }
                reports.changed().await.expect("the sweeper goes on");
            }
        });
        answer.await.ok()
    }
}
