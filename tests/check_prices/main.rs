//! Holds what the product says that machines cost to an independent catalogue: `make check-prices CATALOGUE=DIR`. No part of the tests.
//!
//! The folder has `aws.csv` and `gcp.csv` (type, region, price on demand; `od_source` says where a price is from: what was imputed or corrected is
//! left out), and price lists as the providers give them, anywhere below it: products and offer files of AWS (`getproducts*.json`,
//! `offers*.json`), pages of Google's catalogue (`gcp-skus*.json`). What these lists cover is compared; the rest is counted and told. A
//! price is the same if it is, rounded to as many decimals as the independent catalogue states.
//!
//! It ends with 1 if any price differs, if two lists say different things of one, or if fewer were compared than make a check: 400 of AWS, 100 of Google.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that tells")]

mod google;

use clap::Parser;
use model::{Provider, Usd};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
};
use sweeper::pricing::{self, PriceKey, Unpriced};

#[derive(Debug, Parser)]
#[command(name = "check-prices", about = "Holds prices to an independent catalogue")]
struct Arguments {
    /// The folder of the catalogue, with price lists below it.
    catalogue: PathBuf,
}

/// A line of the independent catalogue.
#[derive(Clone, Debug, serde::Deserialize)]
struct Line {
    region: String,
    #[serde(alias = "instance_type")]
    machine_type: String,
    vcpu: u32,
    mem_gib: String,
    #[serde(default)]
    shared_core: Option<u8>,
    ondemand_usd_h: String,
    od_source: String,
}

/// What came of one provider's lines.
#[derive(Debug, Default)]
struct Compared {
    same: usize,
    differ: Vec<String>,
    /// Counted by reason.
    not: BTreeMap<String, usize>,
}

impl Compared {
    fn not(&mut self, why: &str) {
        *self.not.entry(why.to_owned()).or_default() += 1;
    }

    /// One line, and what the product says of it.
    fn take(&mut self, line: &Line, ours: Result<Usd, Unpriced>) {
        let ours = match ours {
            Ok(ours) => ours,
            Err(Unpriced::NoRow(_)) => return self.not("the price lists have no row for it"),
            Err(why @ (Unpriced::Row { .. } | Unpriced::Ambiguous { .. })) => {
                let why = why.to_string();
                let why = why.split(": ").last().unwrap_or_default().to_owned();
                return self.not(&format!("the price lists' row is no price: {why}"));
            }
            Err(Unpriced::NotKnown { what, .. }) => return self.not(&format!("the product does not know its {what}")),
            Err(why) => return self.not(&why.to_string()),
        };
        if is_the_same(ours, &line.ondemand_usd_h) {
            self.same += 1;
        } else {
            let Line { region, machine_type, ondemand_usd_h, od_source, .. } = line;
            self.differ.push(format!("{machine_type} in {region}: {ours}, and ${ondemand_usd_h} by {od_source}"));
        }
    }

    /// Says it; whether that many were compared, and none differs.
    fn tell(&self, provider: &str, wanted: usize) -> bool {
        let compared = self.same + self.differ.len();
        println!("{provider}: {compared} compared, {} the same, {} differ", self.same, self.differ.len());
        self.differ.iter().for_each(|line| println!("  differs: {line}"));
        self.not.iter().for_each(|(why, count)| println!("  {count} not compared: {why}"));
        if compared < wanted {
            println!("  fewer than {wanted}: the price lists in the folder cover no more, and that is no check");
        }
        compared >= wanted && self.differ.is_empty()
    }
}

/// Half of the last decimal that is stated, at most.
fn is_the_same(ours: Usd, theirs: &str) -> bool {
    let Ok(stated) = theirs.parse::<Usd>() else { return false };
    let decimals = theirs.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = 10_u64.pow(6_u32.saturating_sub(u32::try_from(decimals).unwrap_or(6))) / 2;
    ours.micros().abs_diff(stated.micros()) <= half
}

/// Whether a price was found somewhere, and not made of others.
fn is_first_hand(line: &Line) -> bool {
    !line.od_source.contains("imputed") && !line.od_source.contains("corrected")
}

fn lines(path: &Path) -> Result<Vec<Line>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| format!("{}: {error}", path.display()))?;
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", path.display()))
}

/// The files below a folder whose names begin so.
fn files(folder: &Path, begin: &str, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, begin, found)?;
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

async fn amazon(folder: &Path) -> Result<Compared, String> {
    let mut compared = Compared::default();
    let (first_hand, others): (Vec<Line>, _) = lines(&folder.join("aws.csv"))?.into_iter().partition(is_first_hand);
    others.iter().for_each(|_: &Line| compared.not("its price is imputed or corrected"));
    let keys: BTreeMap<(String, String), PriceKey> = first_hand.iter().map(|line| (name(line), linux(line))).collect();
    let wanted: BTreeSet<PriceKey> = keys.values().cloned().collect();
    let mut lists = Vec::new();
    for begin in ["getproducts", "offers"] {
        files(folder, begin, &mut lists).map_err(|error| error.to_string())?;
    }
    let mut prices = Vec::new();
    for list in lists {
        let options = pricing::Options { source: pricing::Source::file(&list) };
        let (table, _) = pricing::load(&options, &wanted, &BTreeSet::new()).await;
        if let Some(Err(Unpriced::Source(why))) = wanted.first().map(|key| table.on_demand(key)) {
            return Err(format!("{}: {why}", list.display()));
        }
        println!("aws: {} has prices of {} of the wanted keys", list.display(), table.len());
        prices.push(table);
    }
    for line in &first_hand {
        let key = linux(line);
        let told =
            prices.iter().map(|table| table.on_demand(&key)).filter(|ours| !matches!(ours, Err(Unpriced::NoRow(_))));
        let mut told: Vec<_> = told.collect();
        told.dedup();
        let ours = match told.len() {
            0 => Err(Unpriced::NoRow(key.to_string())),
            1 => told.remove(0).map(|rate| rate.per_hour()),
            rows => {
                compared.differ.push(format!("{key}: {rows} lists of the folder say different things of it"));
                continue;
            }
        };
        compared.take(line, ours);
    }
    Ok(compared)
}

fn name(line: &Line) -> (String, String) {
    (line.region.clone(), line.machine_type.clone())
}

/// The independent catalogue is of Linux on hardware that is shared.
fn linux(line: &Line) -> PriceKey {
    let text = str::to_owned;
    PriceKey {
        provider: Provider::Aws,
        region: line.region.clone(),
        instance_type: line.machine_type.clone(),
        operating_system: text("Linux"),
        tenancy: text("Shared"),
        license_model: text("No License required"),
        preinstalled_software: text("NA"),
        capacity_status: text("Used"),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { catalogue } = Arguments::parse();
    let both = async { Ok::<_, String>((amazon(&catalogue).await?, google::compare(&catalogue)?)) };
    let (amazon, google) = match both.await {
        Ok(both) => both,
        Err(why) => {
            eprintln!("check-prices: {why}");
            return ExitCode::FAILURE;
        }
    };
    let are_right = [amazon.tell("aws", 400), google.tell("gcp", 100)];
    if are_right == [true; 2] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
