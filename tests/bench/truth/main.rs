//! How often are we wrong, and how often are others? `make bench-truth`.
//!
//! Each scenario is a machine of which it is known what it does (`tests/lab/labelled`). It runs under the real agent, a real sweeper judges it, and the
//! rules that people use today judge the same measurements, laid out over six weeks. What comes of it is written to a page and a picture.

#![expect(clippy::print_stderr, reason = "a bench tells how far it is")]

mod page;
mod rules;
mod timetable;

use clap::Parser;
use lab::labelled::{self, Kept, Machine, Measured, Scenario, Site, measure};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

#[derive(Debug, Parser)]
#[command(
    name = "bench-truth",
    about = "How often we are wrong about machines of which it is known what they do, and how often the rules that people use today are",
    after_help = "Examples:\n  make bench-truth\n  make bench-truth ARGS=\"--only terminal --at-once 2\"\n\n\
        What is measured is kept in --raw at once. With --only, these scenarios take the place of what was kept of them; the page is written once all are there."
)]
struct Arguments {
    /// Only scenarios whose names contain this; what was kept of the others stays.
    #[arg(long)]
    only: Option<String>,
    /// Plays nothing, and writes the page of what was kept.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// So many machines at once.
    #[arg(long, default_value_t = 3)]
    at_once: usize,
    /// How many times slower an emulated CPU is than a real one; it is measured if left out.
    #[arg(long)]
    slower: Option<f64>,
    /// What was measured, scenario by scenario, as JSON.
    #[arg(long, default_value = "target/bench-truth.json")]
    raw: PathBuf,
    /// The page that is written.
    #[arg(long, default_value = "docs/truth.md")]
    page: PathBuf,
    /// The picture that is written.
    #[arg(long, default_value = "docs/images/truth.svg")]
    picture: PathBuf,
}

/// What was measured so far, by scenario.
#[derive(Debug, Serialize, Deserialize)]
struct Raw {
    /// How many times slower an emulated CPU was.
    slower: f64,
    scenarios: Vec<Kept>,
}

impl Raw {
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn write(&self, path: &Path) {
        let text = serde_json::to_string(self).expect("JSON");
        // Whole or not at all: a bench of an hour may be interrupted at any time.
        let part = path.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn put(&mut self, one: &Measured) {
        let kept = one.kept();
        self.scenarios.retain(|other| other.name() != kept.name());
        self.scenarios.push(kept);
    }

    /// In the order of all scenarios, and how many of them lack.
    fn measured(&self) -> (Vec<Measured>, usize) {
        let all = labelled::all();
        let kept =
            |scenario: &Scenario| self.scenarios.iter().find(|kept| kept.name() == scenario.name).cloned()?.measured();
        let measured: Vec<_> = all.iter().filter_map(kept).collect();
        let lacking = all.len() - measured.len();
        (measured, lacking)
    }
}

/// How many times slower an emulated CPU is than this host's: busybox adds up the same numbers on both.
async fn measured_slowness() -> f64 {
    use lab::{
        binaries,
        microvm::{Guest, MicroVm},
    };
    let folder = tempfile::tempdir().expect("a folder");
    let sum = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let began = std::time::Instant::now();
    let done =
        std::process::Command::new(binaries::system("busybox")).args(["sh", "-c", sum]).status().expect("busybox");
    let here = began.elapsed();
    assert!(done.success(), "{done}");
    let script = format!("began=$(cut -d' ' -f1 /proc/uptime)\n{sum}\nsay took $began $(cut -d' ' -f1 /proc/uptime)");
    let mut guest = MicroVm::boot(folder.path(), &Guest::running(&script));
    let said = guest.said("took", Duration::from_secs(300)).await;
    let times: Vec<f64> = said.split_whitespace().skip(1).map(|time| time.parse().expect("a time")).collect();
    (times[1] - times[0]) / here.as_secs_f64()
}

/// Plays scenarios and tells of each that was played to its end. How many were not, and how many decisions replayed alike from both databases.
async fn play(scenarios: Vec<Scenario>, at_once: usize, mut tell: impl FnMut(&Measured)) -> (usize, usize) {
    // Workers of AWS Batch have sweepers of their own, which ask a cloud each time: nobody else shall share a CPU with these.
    let (workers, others): (Vec<_>, Vec<_>) = scenarios.into_iter().partition(|scenario| scenario.batch.is_some());
    let (mut failed, mut replayed) = (0, 0);
    for (are_workers, scenarios) in [(false, others), (true, workers)] {
        if scenarios.is_empty() {
            continue;
        }
        let (some, alike) = play_at(scenarios, are_workers, at_once, &mut tell).await;
        failed += some;
        replayed += alike;
    }
    (failed, replayed)
}

async fn play_at(
    scenarios: Vec<Scenario>,
    are_workers: bool,
    at_once: usize,
    tell: &mut impl FnMut(&Measured),
) -> (usize, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let sites = [false, true].map(|is_debian| {
        let folder = folder.path().join(if is_debian { "debian" } else { "micro" });
        async move { Site::start(&folder, is_debian, are_workers).await }
    });
    let [micro, debian] = sites;
    let sites = [Arc::new(micro.await), Arc::new(debian.await)];
    let (places, began, count) = (Arc::new(Semaphore::new(at_once)), Instant::now(), scenarios.len());
    let mut running = JoinSet::new();
    for (number, scenario) in scenarios.into_iter().enumerate() {
        let (places, site) =
            (Arc::clone(&places), Arc::clone(&sites[usize::from(scenario.machine == Machine::Debian)]));
        let folder = folder.path().join(number.to_string());
        running.spawn(async move {
            let _place = places.acquire_owned().await.expect("nobody closes it");
            fs::create_dir(&folder).expect("a folder");
            measure(&scenario, &site, &folder).await
        });
    }
    let mut measured = 0;
    while let Some(done) = running.join_next().await {
        let one = match done {
            Ok(done) => done,
            Err(error) => {
                eprintln!("{:>5} s: NOT MEASURED: {error}", began.elapsed().as_secs());
                continue;
            }
        };
        measured += 1;
        eprintln!("{:>5} s, {measured} of {count}: {}", began.elapsed().as_secs(), one.line());
        tell(&one);
    }
    let mut replayed = 0;
    for site in sites {
        replayed += site.replays().await;
    }
    (count - measured, replayed)
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let is_wanted = |scenario: &Scenario| {
        !arguments.write && arguments.only.as_ref().is_none_or(|only| scenario.name.contains(only.as_str()))
    };
    let scenarios: Vec<Scenario> = labelled::all().into_iter().filter(is_wanted).collect();
    assert!(arguments.write || !scenarios.is_empty(), "no scenario is called so");
    let keeps = arguments.write || arguments.only.is_some();
    let before = if keeps { Raw::read(&arguments.raw) } else { None };
    let slower = match arguments.slower.or(before.as_ref().map(|raw| raw.slower)) {
        Some(slower) => slower,
        None => measured_slowness().await,
    };
    eprintln!("{} scenarios, an emulated CPU is {slower:.0} times slower", scenarios.len());
    let mut raw = Raw { slower, scenarios: before.map_or_else(Vec::new, |raw| raw.scenarios) };
    let (failed, replayed) = play(scenarios, arguments.at_once.max(1), |one| {
        raw.put(one);
        raw.write(&arguments.raw);
    })
    .await;
    eprintln!("{replayed} decisions replayed alike from SQLite and from PostgreSQL");
    assert_eq!(failed, 0, "so many scenarios were not measured");
    let (measured, lacking) = raw.measured();
    let results = page::Results::of(&measured, slower);
    let text = results.page();
    if lacking > 0 {
        eprintln!("{text}\n{lacking} scenarios are not measured yet: no page is written");
        return;
    }
    fs::write(&arguments.page, text).expect("the page can be written");
    fs::write(&arguments.picture, results.picture()).expect("the picture can be written");
    eprintln!("wrote {} and {}", arguments.page.display(), arguments.picture.display());
    assert!(results.is_good(), "it is wrong somewhere: see the page");
}
