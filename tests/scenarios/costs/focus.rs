//! `sweeper costs focus`: charges that come to the bill, and hold against the requirements that FOCUS publishes.

use crate::TEAM;
use lab::{binaries, sweeper::Sweeper};
use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output},
};

/// Each cell by its column.
type Row = BTreeMap<String, String>;

fn read(text: &str) -> Vec<Row> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect()
}

fn micros(usd: &str) -> u64 {
    let (whole, millionths) = usd.split_once('.').unwrap();
    assert_eq!(millionths.len(), 6, "{usd}");
    whole.parse::<u64>().unwrap() * 1_000_000 + millionths.parse::<u64>().unwrap()
}

/// What the requirements say of a dataset.
fn judged(folder: &Path, dataset: &str) -> Output {
    let path = folder.join("charges.csv");
    std::fs::write(&path, dataset).unwrap();
    let model = binaries::installed(&binaries::checkout().join(".setup/recorded/focus/model-1.2.0.1.json"));
    Command::new(binaries::python("python"))
        .arg(binaries::checkout().join("tests/lab/focus.py"))
        .args([&model, &path])
        .output()
        .unwrap()
}

/// All machines' charges, of which the bill and what is not known are told by hand.
pub(crate) async fn charges_come_to_the_bill(sweeper: &Sweeper, folder: &Path, (from, to): (&str, &str)) {
    let output = sweeper.run(&["costs", "focus", "--from", from, "--to", to]).await;
    let (text, notes) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{notes}");
    let rows = read(&text);
    let mut of_machines = BTreeMap::<&str, u64>::new();
    for row in &rows {
        *of_machines.entry(&row["ResourceName"]).or_default() += micros(&row["BilledCost"]);
        assert_eq!([&row["ListCost"], &row["EffectiveCost"], &row["ContractedCost"]], [&row["BilledCost"]; 3]);
        assert!(!row["SkuId"].is_empty() && row["ChargePeriodStart"].as_str() >= from, "{row:?}");
        assert!(row["ChargePeriodEnd"].as_str() <= to, "{row:?}");
    }
    let expected = BTreeMap::from([("align-1", 288_000), ("align-2", 288_000), ("align-3", 15_600)]);
    assert_eq!(of_machines, expected, "{text}");
    let of = |name: &str| rows.iter().find(|row| row["ResourceName"] == name).unwrap();
    assert_eq!((of("align-1")["x_Team"].as_str(), &*of("align-2")["x_Team"]), (&*format!("'{TEAM}"), "platform"));
    let tags: BTreeMap<String, String> = serde_json::from_str(&of("align-1")["Tags"]).unwrap();
    assert_eq!(tags["Team"], TEAM, "what is no cell of its own stays as it is");
    assert_eq!((of("align-3")["ListUnitPrice"].as_str(), &*of("align-3")["x_InstanceType"]), ("0.010400", "t3.micro"));
    assert!(notes.contains("3.000 machine hours have no row"), "{notes}");
    assert!(notes.contains("3.000 h: a Spot instance does not cost the on-demand price"), "{notes}");

    let held = judged(folder, &text);
    let said = |judged: &Output| String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(held.status.success() && said(&held).contains("all hold"), "{held:?}");
    for (wrong, by, what) in [
        ("Usage", "Rent", "ChargeCategory"),
        ("ListCost", "ListPrice", "ListCost"),
        (",USD,", ",dollars,", "BillingCurrency"),
        ("0.010400", "0.110400", "ListUnitPrice"),
    ] {
        let judged = judged(folder, &text.replace(wrong, by));
        assert!(judged.status.code() == Some(1) && said(&judged).contains(what), "{wrong} {by}: {judged:?}");
    }
}
