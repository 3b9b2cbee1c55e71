use super::*;
use crate::{Hour, Measure, Seen, Subject, Used, Weights};

/// An hour in which two tools and housekeeping ran, and a minute of it whose price nobody knows.
fn hour(start_s: i64) -> (Hour, Seen, Vec<Subject>) {
    let hour = Hour {
        start_s,
        micros: 96_000,
        billed_s: 3_540,
        not_known: vec![("no price was read".into(), 60)],
        version: 0,
    };
    let used = |cpu_ns| Used { cpu_ns: Some(cpu_ns), ..Used::default() };
    let seen = Seen::Measured {
        seconds: 1_800,
        cpu: Measure { capacity: 1_000, in_use: 900, ms: 1_800_000 },
        memory: None,
        gpu: Measure { ms: 1_800_000, ..Measure::default() },
        used: vec![used(400), used(300), used(100)],
    };
    let text = |text: &str| Some(text.into());
    let tool = |tool: &str| Subject { tool: text(tool), run: text("r on i-1"), ..Subject::default() };
    let cron = Subject { is_system: true, workload: text("cron"), ..Subject::default() };
    (hour, seen, vec![tool("bwa"), Subject { workload: text("db"), ..tool("sämtools") }, cron])
}

/// A day of two hours of different versions.
fn sum(view: View) -> DaySum {
    let mut sum = DaySum::new(view);
    for (at, version) in [(0, 1_795_000_000_000), (3_600, -7)] {
        let (hour, seen, subjects) = hour(at);
        sum.add(version, &hour, (&seen, &subjects), &Weights::default());
    }
    sum
}

fn row(view: View) -> Row {
    let keys = ["aws:1:r:i-1", "aws:1:r:i-12", "aws:1:ü", "aws:1:ý", "b"];
    let days = keys.iter().zip(0_u8..).map(|(key, number)| {
        let sum = (number != 2).then(|| if number == 3 { DaySum::new(view) } else { sum(view) });
        ((*key).into(), KeptDay::new([number; 16], sum))
    });
    days.collect()
}

#[test]
fn what_was_packed_comes_back() {
    for view in View::ALL {
        let row = row(view);
        let packed = pack(view, &row).expect("packed");
        let told = fingerprints(&packed.machines).expect("machines");
        assert_eq!(
            told.iter().map(|(key, _)| &**key).collect::<Vec<_>>(),
            row.keys().map(|key| &**key).collect::<Vec<_>>()
        );
        assert_eq!(told[4].1, [4; 16]);
        assert_eq!(Days::row(view, &packed), Ok(row));
        // A question reads the texts of its own dimensions alone.
        let alone = Packed { texts: BTreeMap::new(), ..packed };
        Days::unpack(&alone, &[]).expect("unpacked");
        assert!(Days::row(view, &alone).is_err());
        let nothing = pack(view, &Row::new()).expect("packed");
        assert_eq!(Days::row(view, &nothing), Ok(Row::new()));
    }
}

#[test]
fn what_is_damaged_is_not_taken_up() {
    let packed = pack(View::Runs, &row(View::Runs)).expect("packed");
    // Cut, with something behind it, of a later version, and not packed at all.
    let other = pack(View::Runs, &Row::new()).expect("packed");
    type Change = fn(&[u8]) -> Vec<u8>;
    let changes: [Change; 4] = [
        |bytes| zstd::bulk::compress(&bytes[..bytes.len() - 1], 1).expect("packed"),
        |bytes| zstd::bulk::compress(&[bytes, &[0]].concat(), 1).expect("packed"),
        |bytes| zstd::bulk::compress(&[&[9], &bytes[1..]].concat(), 1).expect("packed"),
        <[u8]>::to_vec,
    ];
    let unpacked = |bytes: &[u8]| zstd::bulk::decompress(bytes, 1 << 20).expect("bytes");
    for change in changes {
        let machines = Packed { machines: change(&unpacked(&packed.machines)), ..packed.clone() };
        let amounts = Packed { amounts: change(&unpacked(&packed.amounts)), ..packed.clone() };
        let mut texts = packed.clone();
        for column in texts.texts.values_mut() {
            *column = change(&unpacked(column));
        }
        for damaged in [machines, amounts, texts] {
            assert!(Days::row(View::Runs, &damaged).is_err());
        }
    }
    assert!(Days::unpack(&Packed { amounts: other.amounts, ..packed.clone() }, &[]).is_err());
    assert!(Days::unpack(&Packed { machines: other.machines, ..packed }, &[]).is_err());
}

#[test]
fn a_day_of_too_many_names_is_not_kept() {
    let mut sum = DaySum::new(View::Workloads);
    let (hour, _, _) = hour(0);
    let names = 0..40_000_u32;
    let subject = |number: u32| Subject { workload: Some(format!("session {number}").into()), ..Subject::default() };
    let subjects: Vec<Subject> = names.map(subject).collect();
    let used = vec![Used { cpu_ns: Some(1_000), ..Used::default() }; subjects.len()];
    let cpu = Measure { capacity: 40_000_000, in_use: 0, ms: 3_600_000 };
    let gpu = Measure { ms: 3_600_000, ..Measure::default() };
    let seen = Seen::Measured { seconds: 3_600, cpu, memory: None, gpu, used };
    sum.add(0, &hour, (&seen, &subjects), &Weights::default());
    assert_eq!(KeptDay::new([0; 16], Some(sum)).sum, None);
}
