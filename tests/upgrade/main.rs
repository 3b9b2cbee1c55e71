//! A rolling upgrade from a version before, and back, under load and with real programs: `make upgrade-test`.
//!
//! `upgrade-test OLD`: a folder with the version before (`sweeper`, `node-agent`); the version after is what this checkout has built. Two old sweepers over one PostgreSQL serve 60 nodes that send as fast as
//! they are answered, and an old agent on this host; they are replaced by new ones, one after the other, the agent last; and then all the way back. What was acknowledged must be there, once, whoever
//! stored it, with states and rollups that are made of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "what is done is read while it goes on: it takes minutes")]

use jiff::Timestamp;
use lab::{agent::Agent, binaries, fleet::Fleet, postgres::Postgres, sweeper::Sweeper, wait};
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use sweeper::store::Store;

/// Envelopes that are acknowledged between two steps.
const BETWEEN: usize = 300;
const TIMEOUT: Duration = Duration::from_secs(60);

fn step(what: &str) {
    eprintln!("{} {what}", Timestamp::now().strftime("%T"));
}

fn version(program: &Path) -> String {
    let said = Command::new(program).arg("--version").output().unwrap();
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

/// Sweeps every ten seconds, so that old and new ones sweep while the others serve.
fn config(url: &str) -> String {
    format!("[store]\nurl = \"{url}\"\n[sweep]\nschedule = \"*/10 * * * * *\"\n[aws]\nenabled = \"no\"\n")
}

struct Upgrade {
    sweepers: [Sweeper; 2],
    fleet: Fleet,
    agent: Agent,
    store: Store,
}

impl Upgrade {
    /// Replaces each of the sweepers by this program while the other one serves.
    async fn replace_sweepers(&mut self, program: &Path) {
        for number in 0..self.sweepers.len() {
            let swept = self.sweeps().await;
            let sweeper = &mut self.sweepers[number];
            sweeper.stop().await;
            sweeper.use_build(program);
            sweeper.start_again().await;
            step(&format!("sweeper {} is {}", number + 1, version(program)));
            self.fleet.until_stored(BETWEEN).await;
            wait::until("another sweep", TIMEOUT, || async { (self.sweeps().await > swept).then_some(()) }).await;
        }
    }

    async fn replace_agent(&mut self, program: &Path) {
        let before = self.agent_heartbeats().await;
        self.agent.stop().await;
        self.agent.use_build(program);
        self.agent.start_again();
        wait::until("the agent's next heartbeats", TIMEOUT, || async {
            (self.agent_heartbeats().await > before + 1).then_some(())
        })
        .await;
        step(&format!("the agent is {}, and is heard", version(program)));
    }

    async fn sweeps(&self) -> usize {
        let sweeps = self.store.last_sweeps(10_000).await.unwrap();
        sweeps.iter().filter(|sweep| sweep.complete).count()
    }

    /// How many heartbeats there are of the one node that is a real one.
    async fn agent_heartbeats(&self) -> usize {
        let mut heartbeats = 0;
        for node in self.real_nodes().await {
            let all = self.store.heartbeats(&node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
            heartbeats += all.len();
        }
        heartbeats
    }

    async fn real_nodes(&self) -> Vec<heartbeat::NodeId> {
        let nodes = self.store.node_states(None).await.unwrap().into_keys();
        nodes.filter(|node| !(0..lab::fleet::NODES).any(|number| *node == lab::sample::node(number))).collect()
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [old] = arguments.as_slice() else { panic!("usage: upgrade-test OLD") };
    let old = old.canonicalize().expect("the folder with the version before");
    let (old_sweeper, old_agent) = (old.join("sweeper"), old.join("node-agent"));
    let (new_sweeper, new_agent) = (binaries::sweeper(), binaries::node_agent());

    let folder = tempfile::tempdir().unwrap();
    let postgres = Postgres::shared().await;
    let url = postgres.database().await;
    let start =
        async |name| Sweeper::start_build(old_sweeper.clone(), &folder.path().join(name), &config(&url), &[]).await;
    let sweepers = [start("first").await, start("second").await];
    step(&format!("two sweepers are {}", version(&old_sweeper)));
    let fleet = Fleet::start(&[&sweepers[0], &sweepers[1]]).await;
    // By its own port: an agent that is told of one sweeper keeps its heartbeats while that one is replaced.
    let token = folder.path().join("join-token");
    std::fs::write(&token, sweepers[0].join_token()).unwrap();
    let environment = [
        ("NODE_AGENT_SWEEPER_URL", sweepers[0].url()),
        ("NODE_AGENT_JOIN_TOKEN_FILE", token.display().to_string()),
        ("NODE_AGENT_INTERVAL", "2s".to_owned()),
    ];
    let environment: Vec<(&str, &str)> = environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut agent = Agent::prepare(&folder.path().join("agent"), "", &environment);
    agent.use_build(&old_agent);
    agent.start_again();
    let store = Store::connect(&url).await.unwrap();
    let mut upgrade = Upgrade { sweepers, fleet, agent, store };
    wait::until("the agent's first heartbeats", TIMEOUT, || async {
        (upgrade.agent_heartbeats().await > 1).then_some(())
    })
    .await;
    upgrade.fleet.until_stored(BETWEEN).await;
    step(&format!("the agent is {}, and is heard; {} nodes send", version(&old_agent), lab::fleet::NODES));

    upgrade.replace_sweepers(&new_sweeper).await;
    upgrade.replace_agent(&new_agent).await;
    step(&format!("the schema: {:?}", upgrade.store.schema().await.unwrap()));
    upgrade.replace_sweepers(&old_sweeper).await;
    upgrade.replace_agent(&old_agent).await;

    let real = upgrade.real_nodes().await;
    assert_eq!(real.len(), 1, "the agent was the same node all along: {real:?}");
    let all = upgrade.store.heartbeats(&real[0], Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
    let sequences: Vec<u64> = all.iter().map(|stored| stored.heartbeat.sequence).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "each of the agent's once, without a gap");
    let failed = upgrade.store.last_sweeps(10_000).await.unwrap();
    let (failed, all) = (failed.iter().filter(|sweep| !sweep.complete).count(), failed.len());
    let met = upgrade.fleet.check(&upgrade.store).await;
    step(&format!(
        "nothing is lost and nothing doubled: {} envelopes of {} nodes acknowledged, {} refused for a while, {} broken off; {} heartbeats of the agent; {failed} of {all} sweeps not complete",
        met.stored(),
        lab::fleet::NODES,
        met.unavailable(),
        met.broken_off(),
        sequences.len(),
    ));
}
