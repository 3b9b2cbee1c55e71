//! What a sweep of a large estate costs, measured beside the time that the provider itself takes to answer: `make bench-sweep`.
//!
//! The provider is moto, a third party's server of AWS's APIs, with an estate of this bench's making. In each round, in an order that
//! rotates: a *bare reader* sends the very requests of a sweep again and reads the answers without parsing them, one chain of
//! pages beside the other; `sweeper sweep` over a new database; the same sweep once more, when nothing is new; and Cloud Custodian
//! lists the same machines. The figure is the median of the ratios to the bare reader within the rounds: all of them wait for
//! the same server on the same busy machine.

#![expect(clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss, reason = "a bench prints")]

mod bare;
mod custodian;

use bare::Request;
use clap::Parser;
use lab::{
    aws::Moto,
    binaries,
    timed::{self, Run, median},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the estate lies.
const REGION: &str = "us-east-1";

#[derive(Debug, Parser)]
#[command(
    name = "bench-sweep",
    about = "What a sweep of a large estate costs beside the time that the provider takes to answer",
    after_help = "Examples:\n  make bench-sweep\n  make bench-sweep ARGS=\"--instances 5000 --rounds 5\""
)]
struct Arguments {
    /// So many machines.
    #[arg(long, default_value_t = 50_000)]
    instances: usize,
    /// On so many of them runs a job of AWS Batch.
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// How far back CloudWatch is asked about all machines, once, in hours (24 or more); 0 leaves it out.
    #[arg(long, default_value_t = 24)]
    cloudwatch_hours: u32,
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where every single figure goes, as JSON.
    #[arg(long, default_value = "target/bench-sweep.json")]
    raw: PathBuf,
}

/// What is measured, besides the bare reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Bare,
    /// A sweep over a new database, and one more.
    Sweeps,
    Custodian,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir().expect("a folder for logs");
    let moto = Moto::start(folder.path()).await;
    eprintln!("making {} machines and {} jobs", arguments.instances, arguments.jobs);
    moto.estate(REGION, arguments.instances, arguments.jobs, arguments.cloudwatch_hours).await;

    eprintln!("a first sweep, which also tells what the bare reader is to ask");
    moto.record(true).await;
    let (_, report) = sweep(&moto, &folder.path().join("first"), 0);
    let requests: Vec<Request> = moto.requests().await;
    moto.record(false).await;
    let listed = check(&report, &arguments);
    println!("{} calls for {listed}", requests.len());

    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        let mut parts = [Part::Bare, Part::Sweeps, Part::Custodian];
        parts.rotate_left(round % 3);
        let mut measured = BTreeMap::new();
        for part in parts {
            match part {
                Part::Bare => {
                    let (run, bytes) = bare::read(moto.url(), &requests).await;
                    measured.insert("bare reader", run);
                    println!("round {}: bare reader: {run}, {:.0} MB", round + 1, bytes as f64 / 1e6);
                }
                Part::Sweeps => {
                    let data = folder.path().join(format!("round-{round}"));
                    for name in ["first sweep", "sweep again"] {
                        let (run, report) = sweep(&moto, &data, 0);
                        check(&report, &arguments);
                        println!("round {}: {name}: {run}", round + 1);
                        measured.insert(name, run);
                    }
                    let database = std::fs::metadata(data.join("sweeper.db")).map_or(0, |file| file.len());
                    println!("round {}: the database holds {:.0} MB", round + 1, database as f64 / 1e6);
                }
                Part::Custodian => {
                    let run =
                        custodian::list(&moto, &folder.path().join(format!("custodian-{round}")), arguments.instances);
                    println!("round {}: Cloud Custodian: {run}", round + 1);
                    measured.insert("Cloud Custodian", run);
                }
            }
        }
        rounds.push(measured);
    }
    tell(&rounds);
    let cloudwatch = (arguments.cloudwatch_hours > 0).then(|| cloudwatch(&moto, &arguments, folder.path()));
    write(&arguments, &rounds, cloudwatch);
}

/// The last sweep's question about every machine, which no other sweep of that day repeats: once, since the sweeper keeps far below the
/// rate at which AWS answers.
fn cloudwatch(moto: &Moto, arguments: &Arguments, folder: &Path) -> Run {
    let (run, report) = sweep(moto, &folder.join("round-0"), arguments.cloudwatch_hours);
    let seen = report["blind_spots"].as_array().into_iter().flatten().filter(|line| line["usage"].is_object()).count();
    println!("\nwith CloudWatch, {} h of each machine: {run}; it tells of {seen} machines", arguments.cloudwatch_hours);
    assert_eq!(seen, arguments.instances, "CloudWatch has measured all of them");
    run
}

/// One sweep by the release build, and what it reported.
fn sweep(moto: &Moto, data: &Path, cloudwatch_hours: u32) -> (Run, Value) {
    let program = binaries::release_sweeper();
    let mut command = Command::new(program);
    command
        .args(["sweep", "--output", "json"])
        .envs(moto.environment())
        .env("SWEEPER_DATA_DIR", data)
        .env("SWEEPER_AWS__ENABLED", "yes")
        .env("SWEEPER_AWS__REGIONS", REGION)
        .env("SWEEPER_AWS__LISTING_TIMEOUT", "1h")
        .env("SWEEPER_PRICING__SOURCE", "none");
    if cloudwatch_hours > 0 {
        command.env("SWEEPER_AWS__CLOUDWATCH", "true");
        command.env("SWEEPER_AWS__CLOUDWATCH_LOOKBACK", format!("{cloudwatch_hours}h"));
        command.env("SWEEPER_VERDICT__QUIET_AFTER", format!("{cloudwatch_hours}h"));
    }
    let (run, output) = timed::run(&mut command, data);
    let report = serde_json::from_str(&output).unwrap_or_else(|error| panic!("the sweep's report: {error}: {output}"));
    (run, report)
}

/// A sweep that did not see everything is not measured.
fn check(report: &Value, arguments: &Arguments) -> String {
    let Arguments { instances, jobs, .. } = *arguments;
    assert_eq!(report["complete"], true, "{:#}", report["scopes"]);
    let lines = report["scopes"].as_array().expect("a report has scopes");
    let listed =
        |kind: &str| lines.iter().find(|line| line["kind"] == kind).map_or(&Value::Null, |line| &line["listed"]);
    assert_eq!((listed("instance"), listed("batch_job")), (&json!(instances), &json!(jobs)), "{lines:#?}");
    assert_eq!(report["blind_spots"].as_array().map(Vec::len), Some(instances));
    let told = lines.iter().filter(|line| line["listed"] != 0);
    told.map(|line| format!("{} × {}", line["listed"], line["kind"].as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(", ")
}

fn tell(rounds: &[BTreeMap<&str, Run>]) {
    let names = ["bare reader", "first sweep", "sweep again", "Cloud Custodian"];
    println!("\n{:<16} {:>10} {:>14} {:>10} {:>10}", "", "median s", "× bare reader", "CPU s", "peak MB");
    for name in names {
        let of = |figure: &dyn Fn(&Run) -> f64| median(rounds.iter().map(|round| figure(&round[name])).collect());
        let ratio = median(rounds.iter().map(|round| round[name].wall_s() / round["bare reader"].wall_s()).collect());
        println!(
            "{name:<16} {:>10.2} {ratio:>14.3} {:>10.2} {:>10.0}",
            of(&Run::wall_s),
            of(&Run::cpu_s),
            of(&Run::peak_mb)
        );
    }
}

fn write(arguments: &Arguments, rounds: &[BTreeMap<&str, Run>], cloudwatch: Option<Run>) {
    let Arguments { instances, jobs, .. } = arguments;
    let figures = json!({ "instances": instances, "jobs": jobs, "rounds": rounds, "cloudwatch": cloudwatch });
    std::fs::write(&arguments.raw, format!("{figures:#}\n")).expect("the figures can be written");
    println!("\nevery single figure: {}", arguments.raw.display());
}
