//! A machine that works on weekdays is told once with the hours in which it does not, and with their part of its price.

use heartbeat::wire;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use lab::{rollups, sample, sweeper::Sweeper};
use sweeper::store::{Store, TokenHash};

lab::on_both_databases! {
    hours_in_which_a_machine_rests_each_week_are_told_with_what_they_cost,
}

/// Half an hour: a heartbeat of a month is no better than one of a minute for what is asked here.
const INTERVAL: SignedDuration = SignedDuration::from_mins(30);
const INTERVAL_NS: u64 = 1_800_000_000_000;
/// Four weeks.
const BEATS: u64 = 4 * 7 * 48;

/// From Monday to Friday, from 6 to 18 o'clock UTC.
fn works(end: Timestamp) -> bool {
    let begin = (end - INTERVAL).to_zoned(TimeZone::UTC);
    begin.weekday().to_monday_zero_offset() < 5 && (6..18).contains(&begin.hour())
}

fn beat(sequence: u64, end: Timestamp, cpu_busy_ns: u64) -> wire::Heartbeat {
    let mut beat = sample::used(sequence, end, cpu_busy_ns);
    let begin = end - INTERVAL;
    beat.interval = Some(wire::Interval {
        start_unix_ms: begin.as_millisecond(),
        end_unix_ms: end.as_millisecond(),
        start_boottime_ns: sequence * INTERVAL_NS,
        end_boottime_ns: (sequence + 1) * INTERVAL_NS,
        observed_since_unix_ms: begin.as_millisecond(),
        counters_since_boottime_ns: 0,
    });
    beat.host.as_mut().unwrap().interval_ms = 1_800_000;
    beat
}

async fn hours_in_which_a_machine_rests_each_week_are_told_with_what_they_cost(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "[store]\nurl = \"{url}\"\nheartbeat_retention = \"40d\"\n[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n\
         [onprem.hourly_usd]\ndefault = \"1.68\"\n"
    );
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &[]);
    assert_eq!(sweeper.sweep().await.0, 0, "it makes the tables");
    let store = Store::connect(&url).await.unwrap();
    let (node, boot) = (sample::node(7), sample::boot(1));
    let hour = Timestamp::now().as_second() / 3_600 * 3_600;
    let last = Timestamp::from_second(hour).unwrap();
    let end = |sequence: u64| last - INTERVAL * i32::try_from(BEATS - sequence).unwrap();
    store.join_node(&sample::join(&node, boot), &TokenHash::of("token"), end(0)).await.unwrap();
    let (mut cpu_busy_ns, mut beats) = (0, Vec::new());
    for sequence in 1..=BEATS {
        // Half a core, or a thousandth of one, which is no work.
        cpu_busy_ns += if works(end(sequence)) { INTERVAL_NS / 2 } else { INTERVAL_NS / 1_000 };
        beats.push(beat(sequence, end(sequence), cpu_busy_ns));
    }
    sample::store_all(&store, &node, boot, &beats).await;
    rollups::make_all(&store).await;

    let (_, told) = sweeper.sweep().await;
    let findings = told["findings"].as_array().unwrap();
    let found: Vec<_> = findings.iter().filter(|finding| finding["class"] == "quiet_hours").collect();
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"].as_str().unwrap(), node.to_string());
    // 168 hours without five times twelve, at a cent each on average over the week.
    assert_eq!(finding["cost_micro_usd_per_hour"], 1_080_000, "{finding:#}");
    let why = finding["why"].as_str().unwrap();
    for part in ["from Monday 18:00 to Tuesday 06:00", "and 1 more stretch (UTC): 108 of 168 hours"] {
        assert!(why.contains(part), "`{part}` is not in: {why}");
    }
    let kept = store.weeks(None).await.unwrap();
    assert_eq!(kept.len(), 1, "it is added up once a day");
    let id = finding["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "has been quiet in the same hours of each week for 28 d",
        "$1.08/h on demand",
        "in its last weeks it worked from Monday to Friday from 06:00 to 18:00 (UTC)",
        "stop it in these hours",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let (_, again) = sweeper.sweep().await;
    assert_eq!(again["opened"].as_array().unwrap().len(), 0, "{again:#}");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 1 && plans == 0, "{decisions}");
}
