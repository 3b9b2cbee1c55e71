//! How often are we wrong, and how often are others? `make bench-truth`.
//!
//! Each scenario is a machine of which it is known what it does (`tests/lab/labelled`). It runs under the real agent, a real sweeper judges it, and the
//! rules that people use today judge the same measurements, laid out over six weeks. What comes of it is written to a page and a picture.

#![expect(clippy::print_stderr, reason = "a bench tells how far it is")]

mod page;
mod rules;
mod timetable;

use clap::Parser;
use lab::labelled::{self, Machine, Measured, Scenario, Site, measure};
use std::{fs, path::PathBuf, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

#[derive(Debug, Parser)]
#[command(
    name = "bench-truth",
    about,
    after_help = "Examples:\n  make bench-truth\n  make bench-truth ARGS=\"--only terminal --at-once 2\""
)]
struct Arguments {
    /// Only scenarios whose names contain this; nothing is written then.
    #[arg(long)]
    only: Option<String>,
    /// So many machines at once.
    #[arg(long, default_value_t = 3)]
    at_once: usize,
    /// How many times slower an emulated CPU is than a real one; it is measured if left out.
    #[arg(long)]
    slower: Option<f64>,
    /// The page that is written.
    #[arg(long, default_value = "docs/truth.md")]
    page: PathBuf,
    /// The picture that is written.
    #[arg(long, default_value = "docs/images/truth.svg")]
    picture: PathBuf,
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

/// Plays all scenarios. What came of each that was played to its end, how many were not, and how many decisions replayed alike at each sweeper.
async fn all(scenarios: Vec<Scenario>, at_once: usize) -> (Vec<Measured>, usize, [usize; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let sites = [false, true].map(|is_debian| {
        let folder = folder.path().join(if is_debian { "debian" } else { "micro" });
        async move { Site::start(&folder, is_debian).await }
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
            (number, measure(&scenario, &site, &folder).await)
        });
    }
    let mut measured = Vec::new();
    while let Some(done) = running.join_next().await {
        let (number, one) = match done {
            Ok(done) => done,
            Err(error) => {
                eprintln!("{:>5} s: NOT MEASURED: {error}", began.elapsed().as_secs());
                continue;
            }
        };
        eprintln!("{:>5} s, {} of {count}: {}", began.elapsed().as_secs(), measured.len() + 1, one.line());
        measured.push((number, one));
    }
    measured.sort_by_key(|(number, _)| *number);
    let mut replayed = [0; 2];
    for (site, replayed) in sites.iter().zip(&mut replayed) {
        *replayed = site.sweeper().replays().await.0;
    }
    let lacking = count - measured.len();
    (measured.into_iter().map(|(_, one)| one).collect(), lacking, replayed)
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let is_wanted =
        |scenario: &Scenario| arguments.only.as_ref().is_none_or(|only| scenario.name.contains(only.as_str()));
    let scenarios: Vec<Scenario> = labelled::all().into_iter().filter(is_wanted).collect();
    assert!(!scenarios.is_empty(), "no scenario is called so");
    let slower = match arguments.slower {
        Some(slower) => slower,
        None => measured_slowness().await,
    };
    eprintln!("{} scenarios, an emulated CPU is {slower:.0} times slower", scenarios.len());
    let (measured, lacking, replayed) = all(scenarios, arguments.at_once.max(1)).await;
    eprintln!("{} and {} decisions replayed alike", replayed[0], replayed[1]);
    assert_eq!(lacking, 0, "so many scenarios were not measured: no page is written of the others");
    let results = page::Results::of(&measured, slower);
    let text = results.page();
    if arguments.only.is_some() {
        eprintln!("{text}");
        return;
    }
    fs::write(&arguments.page, text).expect("the page can be written");
    fs::write(&arguments.picture, results.picture()).expect("the picture can be written");
    eprintln!("wrote {} and {}", arguments.page.display(), arguments.picture.display());
    assert!(results.is_good(), "it is wrong somewhere: see the page");
}
