//! What a reader of digests is sent: golden texts, hostile ones, and bounds that no digest passes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{
    digest::{Addressed, preview, render},
    service,
};
use crate::digest::{
    AuditHead, Class, Day, Digest, Ended, Every, Listed, Machines, Open, Period, Saved, Unseen, Waiting,
};
use jiff::{
    SignedDuration,
    civil::{Date, DateTime},
};
use model::{HourlyRate, Sum, Usd};
use proptest::prelude::*;
use std::time::{Duration, SystemTime};
use url::Url;

/// Gmail shows no more of a mail's HTML than this.
const GMAIL_CLIPS_AT: usize = 102_000;

fn sum(micros: i64, count: usize, unknown: usize) -> Sum {
    Sum { known: Usd::from_micros(micros), count, unknown }
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn at(text: &str) -> DateTime {
    text.parse().unwrap()
}

fn open(number: i64) -> Open {
    Open {
        finding_id: format!("f-{number:012x}"),
        name: format!("training-{number}"),
        kind: Some("EC2 instance, m5.2xlarge".into()),
        place: Some("AWS account 123456789012, eu-central-1".into()),
        owner: Some("ada".into()),
        lasts: SignedDuration::from_mins(60 * number + 20),
        rate: (number != 3).then(|| HourlyRate::from_micros(1_000_000 - number * 10_000)),
        spent: (number != 3).then(|| Usd::from_micros(number * 1_234_567)),
    }
}

/// A week of everyone's.
fn week() -> Digest {
    let class = |name: &str, micros, count, unknown| Class {
        name: name.to_owned(),
        count: count + unknown,
        per_hour: sum(micros, count, unknown),
    };
    let costs = [(0, 0, 0), (1_200_000, 2, 0), (24_000_000, 3, 1), (0, 0, 1), (51_000_000, 4, 0), (110_640_000, 11, 1)];
    let days = costs.into_iter().enumerate().map(|(number, (micros, count, unknown))| Day {
        date: day("2026-03-03").checked_add(jiff::Span::new().days(i64::try_from(number).unwrap())).unwrap(),
        cost: sum(micros, count, unknown),
    });
    Digest {
        list: "everyone".into(),
        owner: None,
        every: Every::Week,
        period: Period {
            from: at("2026-03-02T08:00:00"),
            until: at("2026-03-09T08:00:00"),
            as_of: at("2026-03-09T08:00:12"),
            zone: "Europe/Berlin".into(),
        },
        running: Some(Machines { count: 57, per_hour: sum(41_300_000, 55, 2) }),
        open: Listed { first: (1..=12).map(open).collect(), count: 12, sum: sum(4_610_000, 11, 1) },
        classes: vec![
            class("idle node", 4_110_000, 8, 0),
            class("unattached volume", 500_000, 3, 0),
            class("orphaned snapshot", 0, 0, 1),
        ],
        days: days.collect(),
        found: Machines { count: 3, per_hour: sum(1_200_000, 3, 0) },
        ended: Ended { count: 2, spent: sum(12_340_000, 1, 1) },
        saved: Saved {
            in_period: sum(3_200_000, 2, 0),
            so_far: sum(40_000_000, 2, 0),
            per_month: sum(120_000_000, 1, 0),
        },
        waiting: Listed {
            first: vec![Waiting {
                plan: "5d0f66e0a1b2".into(),
                finding_id: "f-000000000001".into(),
                title: "Stop the idle m5.2xlarge instance".into(),
                name: "training-1".into(),
                saves: Some(HourlyRate::from_micros(960_000)),
                approvals: 0,
            }],
            count: 1,
            sum: sum(960_000, 1, 0),
        },
        unseen: Some(Listed {
            first: vec![Unseen {
                name: "web-1".into(),
                kind: Some("m5.large".into()),
                rate: None,
                why: "no agent has ever reported from it".into(),
            }],
            count: 1,
            sum: sum(0, 0, 1),
        }),
        unread: vec!["aws 123456789012 us-east-1".into()],
        audit: AuditHead { entries: 41, hash: "9f".repeat(32) },
    }
}

/// A day of a team of which nothing is known yet.
fn nothing() -> Digest {
    let none = sum(0, 0, 0);
    Digest {
        list: "genomics".into(),
        owner: Some("ada".into()),
        every: Every::Day,
        running: None,
        open: Listed { first: Vec::new(), count: 0, sum: none },
        classes: Vec::new(),
        days: vec![Day { date: day("2026-03-08"), cost: none }],
        found: Machines { count: 0, per_hour: none },
        ended: Ended { count: 0, spent: none },
        saved: Saved { in_period: none, so_far: none, per_month: none },
        waiting: Listed { first: Vec::new(), count: 0, sum: none },
        unseen: None,
        unread: Vec::new(),
        audit: AuditHead { entries: 0, hash: String::new() },
        ..week()
    }
}

/// Every text is hostile, and every list far too long.
fn hostile() -> Digest {
    let evil =
        "<!channel> <script>alert(1)</script> & \"x\"\r\nBcc: everyone@example.org\r\n\r\n\u{202E}drowssap\u{200B}";
    let long = "🖥&<".repeat(2_000);
    let open = Open {
        finding_id: "f-1; rm -rf / #".into(),
        name: evil.into(),
        kind: Some(long.clone()),
        place: Some(evil.into()),
        owner: Some(long.clone()),
        ..open(1)
    };
    let waiting = Waiting {
        plan: format!("$(reboot){long}"),
        finding_id: evil.into(),
        title: long.clone(),
        name: evil.into(),
        saves: None,
        approvals: 3,
    };
    let unseen = Unseen { name: long.clone(), kind: Some(evil.into()), rate: None, why: long.clone() };
    let mut digest = week();
    (digest.list, digest.owner) = (evil.into(), Some(evil.into()));
    digest.period.zone = evil.into();
    digest.open = Listed { first: vec![open; 300], count: 300, sum: sum(i64::MAX, 300, 0) };
    digest.classes = vec![Class { name: evil.into(), count: 1, per_hour: sum(i64::MAX, 1, 1) }; 300];
    digest.days = vec![Day { date: Date::MAX, cost: sum(i64::MAX, 1, 1) }; 300];
    digest.waiting = Listed { first: vec![waiting; 300], count: 300, sum: sum(0, 0, 300) };
    digest.unseen = Some(Listed { first: vec![unseen; 300], count: 300, sum: sum(0, 0, 300) });
    digest.unread = vec![long; 300];
    digest.audit.hash = evil.into();
    digest
}

fn url() -> Url {
    "https://sweeper.example.org/v1/digests/unsubscribe?token=abc&x=1".parse().unwrap()
}

fn wire(digest: &Digest, unsubscribe: Option<&Url>, key: &str) -> String {
    let from = "Cloud Sweeper <sweeper@example.org>".parse().unwrap();
    let to = "Ann <ann@example.org>".parse().unwrap();
    let addressed = Addressed { from: &from, to, unsubscribe, idempotency_key: key };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_773_039_612);
    String::from_utf8(render(digest, &addressed, now).unwrap().formatted()).unwrap()
}

/// Unfolded header lines.
fn headers(wire: &str) -> Vec<String> {
    let (head, _) = wire.split_once("\r\n\r\n").unwrap();
    head.replace("\r\n ", " ").split("\r\n").map(str::to_owned).collect()
}

#[test]
fn a_week_of_everyone() {
    let (text, html) = preview(&week()).unwrap();
    insta::assert_snapshot!("digest_text", text);
    // Without the pictures themselves, which a newer library may pack otherwise.
    let html = html.split('"').map(|part| if part.starts_with("data:") { "data:…" } else { part });
    insta::assert_snapshot!("digest_html", html.collect::<Vec<_>>().join("\""));
}

#[test]
fn a_day_without_anything() {
    let (text, html) = preview(&nothing()).unwrap();
    insta::assert_snapshot!("digest_of_nothing_text", text);
    assert!(!html.contains("<img"), "a picture of nothing: {html}");
}

#[test]
fn headers_name_the_list_and_how_to_leave_it() {
    let url = url();
    let with = headers(&wire(&week(), Some(&url), "k"));
    let has = |line: &str| with.iter().any(|header| header == line);
    assert!(has("List-Id: Cloud Sweeper digest <everyone.digest.example.org>"), "{with:#?}");
    assert!(has(&format!("List-Unsubscribe: <{url}>")), "{with:#?}");
    assert!(has("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{with:#?}");
    assert!(has("Auto-Submitted: auto-generated"), "{with:#?}");
    assert!(has("To: Ann <ann@example.org>"), "{with:#?}");
    let without = wire(&week(), None, "k");
    assert!(!without.contains("List-Unsubscribe") && !without.contains("href"), "{without}");
    let names = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.split_once(':').unwrap().0.to_owned()).collect()
    };
    assert_eq!(names(headers(&wire(&hostile(), Some(&url), "k"))), names(with));
}

#[test]
fn the_same_key_gives_the_same_message_id_and_pictures_are_named_in_the_mail_alone() {
    let id = |key: &str| {
        let headers = headers(&wire(&week(), None, key));
        headers.into_iter().find(|line| line.starts_with("Message-ID: ")).unwrap()
    };
    assert_eq!(id("digest/everyone/1/ann@example.org"), id("digest/everyone/1/ann@example.org"));
    assert_ne!(id("digest/everyone/1/ann@example.org"), id("digest/everyone/2/ann@example.org"));
    let wire = wire(&week(), None, "k");
    assert!(wire.contains("multipart/alternative") && wire.contains("multipart/related"), "{wire}");
    // The days, and a bar for each length.
    assert_eq!(wire.matches("Content-Type: image/png").count(), 3, "{wire}");
    assert_eq!(wire.matches("Content-ID: <").count(), 3);
    assert_eq!(wire.matches("Content-Disposition: inline").count(), 3);
    assert!(!wire.contains("http"), "something is fetched: {wire}");
}

#[test]
fn untrusted_text_is_only_ever_text() {
    let (text, html) = preview(&hostile()).unwrap();
    assert!(!html.contains("<script") && !html.contains("href") && !html.contains("javascript:"));
    assert!(!text.lines().any(|line| line.starts_with("Bcc:")));
    assert!(!text.contains('\u{202E}') && !html.contains('\u{202E}'));
    // A command is pasted into a shell as it stands.
    assert!(text.contains("sweeper explain f-1rm-rf/\n") && !text.contains("$("), "{text}");
}

#[test]
fn long_digests_are_shortened_and_say_so() {
    let (text, html) = preview(&hostile()).unwrap();
    assert!(html.len() < GMAIL_CLIPS_AT, "{} bytes", html.len());
    for command in ["sweeper findings", "sweeper plans", "sweeper sweep", "sweeper scopes"] {
        assert!(text.contains(&format!("and 290 more: {command}")), "{command}: {text}");
    }
    assert!(wire(&hostile(), Some(&url()), "k").len() < 400_000);
}

#[test]
fn a_kept_digest_reads_as_it_was_written() {
    for digest in [week(), nothing(), hostile()] {
        let kept = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&kept).unwrap(), digest);
    }
    assert!(service::preview(&week()).unwrap().text.contains("sweeper explain f-000000000001"));
}

fn any_digest() -> impl Strategy<Value = Digest> {
    let text = || prop_oneof![any::<String>(), "[ \\t\\n]{0,3}", "[&<>*_~`|\"']{0,20}", ".{0,400}"].boxed();
    let maybe = move || proptest::option::of(text()).boxed();
    let a_sum =
        || (any::<i64>(), 0_usize..9, 0_usize..9).prop_map(|(micros, count, unknown)| sum(micros, count, unknown));
    let rate = || proptest::option::of(any::<i64>().prop_map(HourlyRate::from_micros));
    let one = (text(), text(), maybe(), maybe(), maybe(), any::<i64>(), rate());
    let one = one.prop_map(|(finding_id, name, kind, place, owner, lasts, rate)| Open {
        finding_id,
        name,
        kind,
        place,
        owner,
        lasts: SignedDuration::from_secs(lasts),
        rate,
        spent: rate.map(HourlyRate::per_hour),
    });
    let class = (text(), any::<usize>(), a_sum()).prop_map(|(name, count, per_hour)| Class { name, count, per_hour });
    let days = proptest::collection::vec(a_sum().prop_map(|cost| Day { date: Date::MIN, cost }), 0..30);
    let texts = (text(), maybe(), text(), proptest::collection::vec(text(), 0..20), any::<u64>());
    let lists = (proptest::collection::vec(one, 0..20), proptest::collection::vec(class, 0..40), days);
    (texts, lists, any::<usize>(), a_sum(), any::<bool>()).prop_map(|(texts, lists, count, sum, is_daily)| {
        let (list, owner, zone, unread, entries) = texts;
        let (first, classes, days) = lists;
        let mut digest = week();
        (digest.list, digest.owner, digest.unread, digest.audit.entries) = (list, owner, unread, entries);
        digest.period.zone = zone.clone();
        digest.audit.hash = zone;
        digest.every = if is_daily { Every::Day } else { Every::Week };
        digest.open = Listed { first, count, sum };
        (digest.classes, digest.days, digest.ended.spent, digest.saved.per_month) = (classes, days, sum, sum);
        digest
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_digest_stops_a_mail_or_makes_it_long(digest in any_digest(), key in any::<String>()) {
        let (_, html) = preview(&digest).unwrap();
        // Pictures are part of this HTML, and not of that in a mail.
        prop_assert!(html.len() < GMAIL_CLIPS_AT + 20_000, "{} bytes", html.len());
        let wire = wire(&digest, Some(&url()), &key);
        prop_assert_eq!(headers(&wire).len(), 11);
        prop_assert!(wire.len() < 400_000);
        prop_assert!(wire.split("\r\n").all(|line| line.len() <= 998));
    }
}
