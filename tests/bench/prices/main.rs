//! How much memory and time it takes to read an offer file of all of AWS's regions: `make bench-prices`.
//!
//! A file in the form of AWS's own, with on-demand and reserved terms ([`offer`]), and then what production calls for `pricing.source = "file"`: the prices of some machines and of a volume type, and a whole list
//! with all types of a region. Each price is compared with the one that was written, and the process must never have had more than `--most-mb` resident.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints")]

mod offer;

use clap::Parser;
use lab::process::memory_bytes;
use model::{Provider, UnitPrice};
use offer::{Made, TYPES};
use std::{collections::BTreeSet, process::ExitCode, time::Instant};
use sweeper::pricing::{Options, Source, UnitKey, Usage, load, load_lists};

#[derive(Debug, Parser)]
#[command(
    name = "bench-prices",
    about = "How much memory and time it takes to read an offer file of all of AWS's regions",
    after_help = "Examples:\n  make bench-prices\n  make bench-prices ARGS=\"--megabytes 200\""
)]
struct Arguments {
    /// So large is the file, at least; it lies in TMPDIR, and goes with the bench.
    #[arg(long, default_value_t = 4_000)]
    megabytes: u64,
    /// So many reserved terms each product has: for one or three years, standard or convertible, paid in three ways.
    #[arg(long, default_value_t = 12)]
    reserved: u32,
    /// More than so many megabytes resident are a failure.
    #[arg(long, default_value_t = 200)]
    most_mb: u64,
}

/// A file that was written less than two seconds ago is read again; a small one may be so twice.
const READ_AGAIN: usize = 5;

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { megabytes, reserved, most_mb } = Arguments::parse();
    let file = tempfile::NamedTempFile::new().expect("a file");
    let disk = rustix::fs::statvfs(file.path()).expect("the disk can be asked");
    let free = disk.f_bavail * disk.f_frsize / 1_000_000;
    assert!(free > megabytes * 11 / 10, "{megabytes} MB are needed, and {} has {free}", file.path().display());
    let began = Instant::now();
    let Made { products, bytes } = offer::write(file.as_file(), megabytes * 1_000_000, reserved);
    println!("{products} products, {} MB, written within {:.0} s", bytes / 1_000_000, began.elapsed().as_secs_f64());
    let own = peak_mb();
    let options = Options { source: Source::file(file.path()) };

    // The first and the last one of the file, and some between.
    let wanted: BTreeSet<u64> = [0, products / 3, products / 2, products - 1].into();
    let keys = wanted.iter().map(|number| offer::key(*number)).collect();
    let volume = UnitKey { provider: Provider::Aws, region: offer::REGIONS[0].to_owned(), usage: Usage::Gp3 };
    let units = BTreeSet::from([volume.clone()]);
    let began = Instant::now();
    let (machines, units_known) = load(&options, &keys, &units).await;
    let took = began.elapsed();
    tell("some machines and a volume type", began);
    for number in wanted {
        let key = offer::key(number);
        assert_eq!(machines.on_demand(&key), Ok(offer::price(number)), "{key}");
    }
    assert_eq!(units_known.on_demand(&volume), Ok(offer::GP3.parse::<UnitPrice>().expect("a price")));

    let list = offer::key(0).list();
    let began = Instant::now();
    let lists = load_lists(&options, &BTreeSet::from([list.clone()])).await;
    tell("all types of a region", began);
    let all = lists.get(&list).expect("an answer").as_ref().expect("a list");
    assert_eq!(all.len() as u64, TYPES.min(products), "each type has a price");
    for (key, read) in all {
        assert_eq!(read.per_hour, offer::price(offer::number(key)), "{key}");
    }
    // What was written just now is read again, and held from then on.
    let held = async {
        for _ in 0..READ_AGAIN {
            let began = Instant::now();
            let (machines, _) = load(&options, &keys, &units).await;
            assert_eq!(machines.on_demand(&offer::key(0)), Ok(offer::price(0)));
            if began.elapsed() < took / 10 {
                return Some(began);
            }
        }
        None
    };
    tell(
        "the same asked again, of the same file",
        held.await.expect("a file that stays as it is is not read each time"),
    );
    let peak = peak_mb();
    println!("at most {peak} MB were resident, {own} MB of them before anything was read");
    if peak > most_mb {
        eprintln!("that is more than {most_mb} MB");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn tell(what: &str, since: Instant) {
    println!("{what}: {:.2} s", since.elapsed().as_secs_f64());
}

fn peak_mb() -> u64 {
    memory_bytes(rustix::process::getpid(), "VmHWM").expect("this process has memory") / 1_000_000
}
