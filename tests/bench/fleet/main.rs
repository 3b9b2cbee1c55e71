//! What a fleet with agents costs the sweeper: `make bench-fleet`.
//!
//! Server, database and clients share this machine. In turn:
//!
//! 1. *a sweep without agents*: of the machines that moto, a third party's server of AWS's APIs, lists;
//! 2. *ingest*: nodes with twenty workloads each send as fast as they are answered, and a bare driver commits rows of the same size one by one, in rounds,
//!    so that both meet the same machine; the figure is the median of the ratios within the rounds;
//! 3. the window is filled through the store, in groups as ingest commits them;
//! 4. *the fleet's own pace*: each node sends every 30 s; how long an answer takes, and how many statements the database runs for one;
//! 5. *sweeps with agents*, one in ten of the machines idle;
//! 6. *verdicts*, on one core.

#![expect(clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss, reason = "a bench prints")]

mod bare;
mod load;
mod made_up;
mod verdicts;

use clap::{Parser, ValueEnum};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Moto},
    binaries,
    postgres::Postgres,
    sample,
    sweeper::Sweeper,
    timed::{self, Run, median},
};
use made_up::{Node, Timeline};
use sea_orm::{ConnectionTrait as _, Statement};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};
use sweeper::{
    store::{Delivery, Store, TokenHash},
    verdict::{Policy, StatePolicy},
};

const REGION: &str = "us-east-1";
/// Connections of the clients in all.
const CONNECTIONS: usize = 1_024;
/// Windows are filled up to a moment that lies ahead by what this takes, so that the fleet goes on from there without a gap.
const FILLED_PER_S: u64 = 8_000;
/// Nobody sends while sweeps are measured, and no sweep may take that for silence.
const NEVER_SILENT: u32 = 1_000;
/// Rollups that are due for longer are a backlog: the sweeper looks each ten seconds.
const LATE: SignedDuration = SignedDuration::from_secs(30);
/// Nodes of one group while the window is filled.
const FILLED_AT_ONCE: usize = 16;

#[derive(Debug, Parser)]
#[command(
    name = "bench-fleet",
    about = "What a fleet with agents costs the sweeper",
    after_help = "Examples:\n  make bench-fleet\n  make bench-fleet ARGS=\"--database sqlite --nodes 10000\"\n  make bench-fleet ARGS=\"--nodes 2000 --paced-minutes 1\""
)]
struct Arguments {
    /// Over which database.
    #[arg(long, value_enum, default_value = "postgresql")]
    database: Database,
    /// So many machines with agents.
    #[arg(long, default_value_t = 50_000)]
    nodes: usize,
    /// So many heartbeats of each are there before the sweep: 60 are half an hour.
    #[arg(long, default_value_t = 60)]
    window: u64,
    /// How often ingest, bare driver and sweeps are measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long the nodes send at their own pace.
    #[arg(long, default_value_t = 10)]
    paced_minutes: u64,
    /// Where every single figure goes, as JSON.
    #[arg(long, default_value = "target/bench-fleet.json")]
    raw: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Database {
    Postgresql,
    Sqlite,
}

/// What is measured with.
struct Site {
    folder: tempfile::TempDir,
    url: String,
    moto: Moto,
    sweeper: Sweeper,
    store: Store,
    postgres: Option<Postgres>,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let site = Site::new(&arguments).await;
    let mut figures = serde_json::Map::new();
    let mut note = |name: &str, value: Value| {
        println!("{name}: {value}");
        figures.insert(name.to_owned(), value);
    };
    eprintln!("sweeping {} machines without agents", arguments.nodes);
    site.sweep();
    let bare: Vec<Run> = (0..arguments.rounds).map(|_| site.sweep().0).collect();
    note("sweep_without_agents_s", json!(median(bare.iter().map(Run::wall_s).collect())));

    let senders = nodes((0..10_000).map(sample::node), 1_000_000);
    site.join(&senders).await;
    let bytes = heartbeat::pack_one(&senders[1].heartbeat(1, 1)).expect("zstd has memory").len();
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        let ingest = site.ingest(&senders, round).await;
        let driver = bare::commits_per_s(&site.url, bytes, Duration::from_secs(5), round).await;
        eprintln!("round {}: {ingest:.0} heartbeats a second; a bare driver commits {driver:.0} rows", round + 1);
        rounds.push((ingest, driver));
    }
    note("heartbeats_per_s", json!(median(rounds.iter().map(|round| round.0).collect())));
    note("bare_single_row_commits_per_s", json!(median(rounds.iter().map(|round| round.1).collect())));
    note("ingest_over_bare", json!(median(rounds.iter().map(|(ingest, bare)| ingest / bare).collect())));

    site.forget_senders().await;
    let fleet = site.fleet(arguments.nodes);
    site.join(&fleet).await;
    let ahead_s = fleet.len() as u64 * arguments.window / FILLED_PER_S + 5;
    let full_at = Timestamp::now() + SignedDuration::from_secs(ahead_s.cast_signed());
    let timeline = Timeline::through(arguments.window, full_at.as_millisecond(), fleet.len());
    note("filled_per_s", json!(site.fill(&fleet, timeline, arguments.window).await));
    assert!(
        Timestamp::now() <= full_at + SignedDuration::from_secs(30),
        "windows are filled at fewer than {FILLED_PER_S} heartbeats a second"
    );
    note("heartbeat_packed_bytes", json!(bytes));
    for (name, value) in site.paced(&fleet, timeline, &arguments).await {
        note(name, value);
    }
    for (name, value) in site.bytes().await {
        note(name, value);
    }
    let (mut runs, mut counts) = (Vec::new(), Value::Null);
    for round in 0..=arguments.rounds {
        let (run, report) = site.sweep();
        eprintln!("a sweep with agents: {run}; {}", report["counts"]);
        counts = report["counts"].clone();
        // The first one opens the findings, with their evidence.
        if round > 0 {
            runs.push(run);
        } else {
            note("first_sweep_with_agents_s", json!(run.wall_s()));
        }
    }
    let idle = arguments.nodes.div_ceil(10);
    let all_told = arguments.window < 60 || counts["idle"] == idle && counts["active"] == arguments.nodes - idle;
    assert!(all_told, "{counts}: one in ten is idle, the others work");
    note("verdict_counts", counts);
    note("sweep_with_agents_s", json!(median(runs.iter().map(Run::wall_s).collect())));
    note("sweep_with_agents_peak_mb", json!(median(runs.iter().map(Run::peak_mb).collect())));
    let ratios = runs.iter().zip(&bare).map(|(with, without)| with.wall_s() / without.wall_s());
    note("sweep_with_over_without", json!(median(ratios.collect())));
    note("verdicts_per_s_on_one_core", json!(verdicts::per_s()));
    let all = json!({ "nodes": arguments.nodes, "window": arguments.window, "figures": figures });
    std::fs::write(&arguments.raw, format!("{all:#}\n")).expect("the figures can be written");
    println!("every figure: {}", arguments.raw.display());
}

fn nodes(ids: impl Iterator<Item = NodeId>, first: u64) -> Arc<Vec<Node>> {
    Arc::new(ids.zip(first..).map(|(id, number)| Node { id, number }).collect())
}

impl Site {
    async fn new(arguments: &Arguments) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let moto = Moto::start(folder.path()).await;
        eprintln!("making {} machines", arguments.nodes);
        moto.estate(REGION, arguments.nodes, 0, 0).await;
        let (postgres, url) = match arguments.database {
            Database::Postgresql => {
                let settings =
                    ["shared_preload_libraries=pg_stat_statements", "shared_buffers=512MB", "max_wal_size=4GB"];
                let postgres = Postgres::start_with(&settings).await;
                let url = postgres.database().await;
                (Some(postgres), url)
            }
            Database::Sqlite => (None, format!("sqlite://{}?mode=rwc", folder.path().join("fleet.db").display())),
        };
        let config = format!(
            "[store]\nurl = \"{url}\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[aws]\nenabled = \"no\"\n[verdict]\nmissed_heartbeats = {NEVER_SILENT}\n"
        );
        let program = binaries::release_sweeper();
        let sweeper = Sweeper::start_build(program, &folder.path().join("sweeper"), &config, &[]).await;
        let store = Store::connect(&url).await.expect("the database opens");
        if postgres.is_some() {
            store
                .connection()
                .execute_unprepared("CREATE EXTENSION pg_stat_statements")
                .await
                .expect("postgresql-contrib");
        }
        Self { folder, url, moto, sweeper, store, postgres }
    }

    /// One sweep of the account, by the release build, and its report.
    fn sweep(&self) -> (Run, Value) {
        let mut command = Command::new(binaries::release_sweeper());
        command
            .args(["sweep", "--output", "json"])
            .envs(self.moto.environment())
            .env("SWEEPER_DATA_DIR", self.folder.path().join("sweep"))
            .env("SWEEPER_STORE__URL", &self.url)
            .env("SWEEPER_AWS__ENABLED", "yes")
            .env("SWEEPER_AWS__REGIONS", REGION)
            .env("SWEEPER_AWS__LISTING_TIMEOUT", "1h")
            .env("SWEEPER_PRICING__SOURCE", "none")
            .env("SWEEPER_VERDICT__MISSED_HEARTBEATS", NEVER_SILENT.to_string());
        let (run, output) = timed::run(&mut command, &self.folder.path().join("sweep"));
        let report: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
        assert_eq!(report["complete"], true, "{:#}", report["scopes"]);
        (run, report)
    }

    /// The machines that moto lists, as nodes.
    fn fleet(&self, count: usize) -> Arc<Vec<Node>> {
        let (_, report) = self.sweep();
        let blind = report["blind_spots"].as_array().expect("blind spots").iter();
        let prefix = format!("aws:{ACCOUNT}:");
        let ids = blind.filter_map(|line| line["resource"].as_str()).filter(|id| id.starts_with(&prefix));
        let fleet = nodes(ids.map(|id| id.parse().expect("a node id")), 0);
        assert_eq!(fleet.len(), count);
        fleet
    }

    /// Writes the nodes as if they had joined: that is not measured here.
    async fn join(&self, nodes: &[Node]) {
        for nodes in nodes.chunks(500) {
            let values = nodes.iter().map(|node| {
                let token = TokenHash::of(&node.token());
                format!("('{}', 'worker-{}', '0.1.0', '{}', 1, 'fleet_token')", node.id, node.number, token.as_str())
            });
            let values = values.collect::<Vec<_>>().join(", ");
            let insert = format!(
                "INSERT INTO nodes (node_id, hostname, agent_version, token_sha256, joined_at_unix_ms, attestation) VALUES {values}"
            );
            self.store.connection().execute_unprepared(&insert).await.expect("nodes");
        }
    }

    /// Removes the nodes that ingest was measured with: they would be swept as well.
    async fn forget_senders(&self) {
        for table in ["heartbeats", "boots", "node_state", "nodes"] {
            // PostgreSQL deletes no heartbeats by name of the whole, and there are no others yet.
            let is_whole = table == "heartbeats" && self.postgres.is_some();
            let delete = if is_whole {
                "TRUNCATE heartbeats".to_owned()
            } else {
                format!("DELETE FROM {table} WHERE node_id LIKE 'host:%'")
            };
            self.store.connection().execute_unprepared(&delete).await.expect("they go");
        }
    }

    /// Heartbeats a second that are answered when each node sends one as soon as a connection is free.
    async fn ingest(&self, senders: &Arc<Vec<Node>>, round: usize) -> f64 {
        let address = self.address();
        let first = round as u64 * 4 + 1;
        let (mut stored, mut wall_s) = (0, 0.0);
        for sequence in first..first + 4 {
            let answers = load::send(&address, senders, sequence, CONNECTIONS, None).await;
            assert_eq!(answers.statuses.keys().collect::<Vec<_>>(), [&200], "{:?}", answers.statuses);
            // The very first one looks every token up.
            if sequence > 1 {
                (stored, wall_s) = (stored + answers.ms.len(), wall_s + answers.wall_s);
            }
        }
        stored as f64 / wall_s
    }

    fn address(&self) -> String {
        self.sweeper.url().trim_start_matches("http://").to_owned()
    }

    /// Fills the window of each node, and says how many heartbeats a second that were.
    async fn fill(&self, fleet: &[Node], timeline: Timeline, window: u64) -> f64 {
        let policy = Policy { missed_heartbeats: NEVER_SILENT, ..Policy::default() };
        let (state_policy, now) = (StatePolicy::new(policy), Timestamp::now());
        let began = Instant::now();
        for (done, nodes) in fleet.chunks(FILLED_AT_ONCE).enumerate() {
            let delivery = |(at, node): (usize, &Node)| {
                let at = done * FILLED_AT_ONCE + at;
                let beats = (1..=window).map(|sequence| node.heartbeat(sequence, timeline.ended(sequence, at)));
                let envelope = node.envelope(beats.collect(), now.as_millisecond());
                Delivery::new(&sample::checked(&envelope), None).expect("zstd has memory")
            };
            let group: Vec<_> = nodes.iter().enumerate().map(delivery).collect();
            self.store.commit(&group, &state_policy, now).await.expect("the database takes them");
            if done % 200 == 0 {
                eprintln!("filled {} of {} windows", done * FILLED_AT_ONCE, fleet.len());
            }
        }
        fleet.len() as f64 * window as f64 / began.elapsed().as_secs_f64()
    }

    /// Each node sends every 30 s, for so many minutes.
    async fn paced(
        &self,
        fleet: &Arc<Vec<Node>>,
        timeline: Timeline,
        arguments: &Arguments,
    ) -> Vec<(&'static str, Value)> {
        // Tokens are looked up once in half an hour, which is no part of a steady state.
        let mut sequence = arguments.window + 1;
        // Connections that wait for longer than an agent's would are cut off.
        let ahead = timeline.ended(sequence, 0) - Timestamp::now().as_millisecond();
        tokio::time::sleep(Duration::from_millis(ahead.try_into().unwrap_or(0))).await;
        load::send(&self.address(), fleet, sequence, CONNECTIONS, Some(timeline)).await;
        // Nor are the rollups of the window, which the fleet did not send at this pace.
        while self.store.rollups_due_since().await.expect("an answer").is_some_and(|late| late > LATE) {
            sequence += 1;
            load::send(&self.address(), fleet, sequence, CONNECTIONS, Some(timeline)).await;
        }
        let before = self.statements().await;
        let mut all = load::Answers::default();
        for _ in 0..arguments.paced_minutes * 2 {
            sequence += 1;
            let answers = load::send(&self.address(), fleet, sequence, CONNECTIONS, Some(timeline)).await;
            all.ms.extend(answers.ms);
            all.wall_s += answers.wall_s;
            answers.statuses.into_iter().for_each(|(status, count)| *all.statuses.entry(status).or_default() += count);
        }
        let statements = self.statements().await.zip(before).map(|(after, before)| after - before);
        let count = all.ms.len() as f64;
        vec![
            ("paced_heartbeats_per_s", json!(all.per_s())),
            ("paced_statuses", json!(all.statuses)),
            ("paced_answer_median_ms", json!(all.percentile(500))),
            ("paced_answer_p99_ms", json!(all.percentile(990))),
            ("statements_per_heartbeat", json!(statements.map(|statements| statements as f64 / count))),
        ]
    }

    /// How many statements PostgreSQL has run, begins and commits included.
    async fn statements(&self) -> Option<i64> {
        self.postgres.as_ref()?;
        let connection = self.store.connection();
        let sql = "SELECT sum(calls)::bigint AS calls FROM pg_stat_statements";
        let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await;
        Some(row.expect("pg_stat_statements").expect("a row").try_get("", "calls").expect("a number"))
    }

    /// What a heartbeat takes on the disk, and a node's state.
    async fn bytes(&self) -> Vec<(&'static str, Value)> {
        let connection = self.store.connection();
        let one = async |sql: &str| -> f64 {
            let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await;
            let number: i64 = row.expect("an answer").expect("a row").try_get("", "n").expect("a number");
            number as f64
        };
        let (heartbeats, states) =
            (one("SELECT count(*) AS n FROM heartbeats").await, one("SELECT count(*) AS n FROM node_state").await);
        let length = one("SELECT CAST(avg(length(state)) AS bigint) AS n FROM node_state").await;
        if self.postgres.is_none() {
            let file = std::fs::metadata(self.folder.path().join("fleet.db")).expect("the database");
            return vec![
                ("heartbeats_stored", json!(heartbeats)),
                ("node_state_text_bytes", json!(length)),
                ("database_bytes_per_heartbeat", json!(file.len() as f64 / heartbeats)),
            ];
        }
        let of_days = "SELECT sum(pg_total_relation_size(relid))::bigint AS n FROM pg_partition_tree('heartbeats')";
        let of = async |table: &str| one(&format!("SELECT pg_total_relation_size('{table}') AS n")).await;
        vec![
            ("heartbeats_stored", json!(heartbeats)),
            ("node_state_text_bytes", json!(length)),
            ("disk_bytes_per_heartbeat", json!(one(of_days).await / heartbeats)),
            ("disk_bytes_per_node_state", json!(of("node_state").await / states)),
        ]
    }
}
