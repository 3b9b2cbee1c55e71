//! How long costs and recommendations take over a fleet's rollups, on one core: `make bench-costs`.
//!
//! A fleet on paper ([`fleet`]) with hourly rollups that the sweeper's own code made of heartbeats ([`hours`]), written by the store where production writes
//! them; machines beyond the first ones have copies of theirs. Then the release build answers, held to one core: `sweeper costs` for pairs of dimensions over
//! all whole days, and `sweeper recommendations`. A server of PostgreSQL has the other cores. Figures are medians of the rounds; what was answered is compared
//! with what was put in, so that nothing is fast by leaving something out: each pair comes to the same bill, to the micro-dollar, and each machine has an answer.
//!
//! With `--kept` all days are added up first, as a sweeper that serves does in the background but without its pauses, and each pair that can be asked is asked then.

#![expect(clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss, reason = "a bench prints")]

mod fleet;
mod hours;

use clap::{Parser, ValueEnum};
use costs::{By, Dimension};
use fleet::Fleet;
use jiff::{SignedDuration, Timestamp};
use lab::{
    binaries,
    postgres::Postgres,
    timed::{self, Run, median},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use sweeper::{
    attribution::{self, kept::add_up_days},
    config::Config,
    store::Store,
};

/// What is asked where nothing else is.
const PAIRS: &str = "team,day;pipeline,tool;user,region;run,task;workload,day;instance,tool";
/// All that can be asked.
const ALL: &str = "all";
/// A day of a machine takes so many bytes, as the sweeper writes it for this fleet, and as much again for a while in the database's log.
const DAY_BYTES: u64 = 35_000;

#[derive(Debug, Parser)]
#[command(
    name = "bench-costs",
    about = "How long costs and recommendations take over a fleet's rollups, on one core",
    after_help = "Disk: a day of a machine takes some 35 kB of rollups, and the database's log up to as much again while they are written: 500 machines and 30 days need 1 GB, 10,000 \
                  machines and 90 days 32 GB, up to twice that with the log. The bench does not begin where the disk has less. A database of SQLite lies in --folder, one of PostgreSQL in TMPDIR.\n\n\
                  A question reads the rollups of 500,000 machine hours at most: beyond that (20,000 days of machines), ask with --kept.\n\n\
                  Examples:\n  make bench-costs\n  make bench-costs ARGS=\"--database postgresql --machines 2000 --days 10\"\n  make bench-costs ARGS=\"--pairs 'team,day;run,tool' --rounds 5\"\n  \
                  make bench-costs ARGS=\"--kept --machines 10000 --days 90 --rounds 1 --folder /large\""
)]
struct Arguments {
    /// Over which database.
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Database,
    /// So many machines, each with an agent.
    #[arg(long, default_value_t = 500)]
    machines: usize,
    /// So many whole days of rollups before today. A day of a machine takes some 35 kB.
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// Add all days up first, and measure that as well.
    #[arg(long)]
    kept: bool,
    /// Pairs of dimensions, with semicolons between, or `all`, which is usual with --kept.
    #[arg(long)]
    pairs: Option<String>,
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Another sweeper than the release build.
    #[arg(long)]
    program: Option<PathBuf>,
    /// In which folder the database lies meanwhile; it goes with the bench.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Where every single figure goes, as JSON.
    #[arg(long, default_value = "target/bench-costs.json")]
    raw: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgresql,
}

/// What is measured with.
struct Site {
    folder: tempfile::TempDir,
    url: String,
    store: Store,
    program: PathBuf,
    postgres: Option<Postgres>,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let site = Site::new(&arguments).await;
    site.has_room(&arguments);
    // The last whole day ends with yesterday.
    let today = Timestamp::from_second(Timestamp::now().as_second() / 86_400 * 86_400).expect("a day");
    let from = today - SignedDuration::from_hours(24 * i64::from(arguments.days));
    let fleet = Fleet::new(arguments.machines, from, today);
    let began = Instant::now();
    fleet.register(&site.store).await;
    eprintln!("{} machines are known after {:.0} s", arguments.machines, began.elapsed().as_secs_f64());
    let (rows, bytes) = fleet.fill(&site.store).await;
    println!(
        "{} machines, {} days: {rows} rollups of {:.0} bytes each with their summaries, put in within {:.0} s",
        arguments.machines,
        arguments.days,
        bytes as f64 / rows as f64,
        began.elapsed().as_secs_f64()
    );
    let mut all = serde_json::Map::new();
    if arguments.kept {
        all.insert("days".to_owned(), added_up(&site.store, &arguments).await);
    }
    println!("\n{:<24} {:>10} {:>10} {:>10} {:>10}", "", "median s", "CPU s", "peak MB", "lines");
    let mut bill = None;
    for pair in pairs(&arguments) {
        let asked =
            ["costs", "--by", &pair, "--from", &from.to_string(), "--to", &today.to_string()].map(str::to_owned);
        let (runs, answer) = site.tried(&asked, arguments.rounds);
        // Its error is told above: more lines than anybody reads.
        let Some(answer) = answer else {
            tell(&format!("costs by {pair}"), &runs, "refused");
            all.insert(pair, json!({ "runs": runs, "refused": true }));
            continue;
        };
        let lines = checked(&answer, &fleet);
        assert_eq!(bill.get_or_insert_with(|| answer["bill_micro_usd"].clone()), &answer["bill_micro_usd"], "{pair}");
        tell(&format!("costs by {pair}"), &runs, &lines.to_string());
        all.insert(pair, json!({ "runs": runs, "lines": lines }));
    }
    let (runs, answer) = site.asked(&["recommendations".to_owned()], arguments.rounds);
    let count = |of: &str| answer[of].as_array().map_or(0, Vec::len);
    let (recommended, refused) = (count("recommendations"), count("not_recommended"));
    assert!(recommended + refused >= arguments.machines, "{recommended} and {refused} are told");
    tell("recommendations", &runs, &recommended.to_string());
    let reasons = reasons(&answer);
    reasons.iter().for_each(|(why, machines)| println!("  nothing for {machines} machines: {why}"));
    let told = json!({ "runs": runs, "recommended": recommended, "refused": refused, "reasons": reasons });
    all.insert("recommendations".to_owned(), told);
    let figures = json!({
        "database": format!("{:?}", arguments.database), "machines": arguments.machines, "days": arguments.days,
        "rollups": rows, "bill_micro_usd": bill, "figures": all,
    });
    std::fs::write(&arguments.raw, format!("{figures:#}\n")).expect("the figures can be written");
    println!("\nevery single figure: {}", arguments.raw.display());
}

impl Site {
    async fn new(arguments: &Arguments) -> Self {
        let folder = match &arguments.folder {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        let (postgres, url) = match arguments.database {
            Database::Postgresql => {
                let postgres = Postgres::start_with(&["shared_buffers=512MB", "max_wal_size=4GB"]).await;
                let url = postgres.database().await;
                (Some(postgres), url)
            }
            Database::Sqlite => (None, format!("sqlite://{}?mode=rwc", folder.path().join("costs.db").display())),
        };
        let store = Store::connect(&url).await.expect("the database opens");
        store.migrate().await.expect("a schema");
        let program = arguments.program.clone().unwrap_or_else(binaries::release_sweeper);
        Self { folder, url, store, program, postgres }
    }

    /// Refuses to begin where the rollups do not fit.
    fn has_room(&self, arguments: &Arguments) {
        let temporary = std::env::temp_dir();
        let folder: &Path = if self.postgres.is_some() { &temporary } else { self.folder.path() };
        let disk = rustix::fs::statvfs(folder).expect("the disk can be asked");
        let free = disk.f_bavail * disk.f_frsize;
        let needed = arguments.machines as u64 * u64::from(arguments.days) * DAY_BYTES * 2;
        let gb = |bytes: u64| bytes as f64 / 1e9;
        assert!(free > needed, "{:.1} GB may be needed, and {} has {:.1}", gb(needed), folder.display(), gb(free));
    }

    /// What the program answers to this, and how long it took each time, held to the last core.
    fn asked(&self, asked: &[String], rounds: usize) -> (Vec<Run>, Value) {
        let (runs, answer) = self.tried(asked, rounds);
        (runs, answer.unwrap_or_else(|| panic!("{asked:?} has no answer")))
    }

    /// The same of what may be refused.
    fn tried(&self, asked: &[String], rounds: usize) -> (Vec<Run>, Option<Value>) {
        let run = || {
            let core = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
            let mut command = Command::new(binaries::system("taskset"));
            command.args(["--cpu-list", &core.to_string()]).arg(&self.program).args(asked).args(["--output", "json"]);
            command.env("SWEEPER_DATA_DIR", self.folder.path()).env("SWEEPER_STORE__URL", &self.url);
            timed::tried(&mut command, self.folder.path())
        };
        let (runs, mut printed): (Vec<Run>, Vec<Result<String, String>>) = (0..rounds.max(1)).map(|_| run()).unzip();
        let answer = printed.pop().and_then(Result::ok);
        let answer = answer.map(|answer| serde_json::from_str(&answer));
        (runs, answer.transpose().unwrap_or_else(|error| panic!("{asked:?}: {error}")))
    }
}

/// Adds all days up, and says how long that took and what it comes to.
async fn added_up(store: &Store, arguments: &Arguments) -> Value {
    // The machines were there a day before the first one.
    let retention = Duration::from_secs(86_400 * (u64::from(arguments.days) + 1) - 1);
    let began = Instant::now();
    let days = add_up_days(store, &attribution::Settings::of(&Config::default()), retention).await.expect("days");
    let took = began.elapsed();
    let all = arguments.machines as u64 * u64::from(arguments.days);
    // In the first two hours of a day the one before is not over for long enough.
    assert!(days == all || days == all - arguments.machines as u64, "{days} of {all} days of machines");
    let (rows, bytes) = fleet::kept(store).await;
    println!(
        "{days} days of machines are added up within {:.1} s: {rows} rows, {:.0} bytes a day of a machine",
        took.as_secs_f64(),
        bytes as f64 / days as f64
    );
    json!({ "days_of_machines": days, "wall_s": took.as_secs_f64(), "rows": rows, "bytes": bytes })
}

/// Which pairs are asked.
fn pairs(arguments: &Arguments) -> Vec<String> {
    let usual = if arguments.kept { ALL } else { PAIRS };
    let asked = arguments.pairs.as_deref().unwrap_or(usual);
    if asked != ALL {
        return asked.split(';').map(str::to_owned).collect();
    }
    let all = Dimension::ALL.map(Dimension::as_str);
    let pairs =
        all.iter().enumerate().flat_map(|(at, one)| all[at + 1..].iter().map(move |other| format!("{one},{other}")));
    pairs.filter(|pair| pair.parse::<By>().is_ok()).collect()
}

/// Why nothing is recommended, and for how many machines: refusals that are quick would make all of it look quick.
fn reasons(answer: &Value) -> BTreeMap<&str, usize> {
    let refused = answer["not_recommended"].as_array().into_iter().flatten();
    let mut reasons = BTreeMap::new();
    for why in refused.filter_map(|one| one["reasons"][0].as_str()) {
        *reasons.entry(why).or_default() += 1;
    }
    reasons
}

/// Lines of an answer that has all of the fleet's time in it, and whose lines come to its bill.
fn checked(answer: &Value, fleet: &Fleet) -> usize {
    let lines = answer["lines"].as_array().expect("an answer has lines");
    let sum: u64 = lines.iter().filter_map(|line| line["micro_usd"].as_u64()).sum();
    assert_eq!(answer["bill_micro_usd"], json!(sum), "the lines come to the bill");
    assert_eq!(answer["billed_seconds"], json!(fleet.seconds()), "all machines ran all the time");
    let unattributed = lines.iter().filter(|line| line["kind"] == "unattributed");
    assert_eq!(unattributed.count(), 0, "agents saw all of it: {:#}", answer["reasons"]);
    lines.len()
}

fn tell(name: &str, runs: &[Run], lines: &str) {
    let of = |figure: &dyn Fn(&Run) -> f64| median(runs.iter().map(figure).collect());
    println!("{name:<24} {:>10.2} {:>10.2} {:>10.0} {lines:>10}", of(&Run::wall_s), of(&Run::cpu_s), of(&Run::peak_mb));
}
