//! Notices for tests: one with everything, one with nothing known, one meant to do harm.

use jiff::Timestamp;
use proptest::prelude::*;

use crate::message::{FindingNotice, headline};

const SINCE: &str = "2026-03-02T00:10:00Z";
const AS_OF: &str = "2026-03-02T02:50:30Z";

/// A fully known, priced idle instance.
pub(crate) fn idle() -> FindingNotice {
    let (since, as_of) = (at(SINCE), at(AS_OF));
    let headline = headline("training-7", "idle", since, as_of, Some("$0.461/h"));
    let resource = "aws:123456789012:eu-central-1:i-0a1b2c3d4e5f60718";
    let mut notice = FindingNotice::new("F-7K3QJ2", headline, resource, "idle", since, as_of);
    notice.resource_name = Some("training-7".into());
    notice.resource_kind = Some("EC2 instance, m5.2xlarge".into());
    notice.place = Some("AWS account 123456789012, eu-central-1".into());
    notice.owner = Some("genomics@example.org".into());
    notice.certainty = Some(
        "Measured by the kernel in all 321 intervals; decided by workload CPU, which stayed under its threshold".into(),
    );
    notice.evidence = vec![
        "Workload CPU: 0.4 ms per second at most (threshold 2 ms per second)".into(),
        "Workload disk: 0 bytes per second (threshold 4,096)".into(),
        "Network: 312 bytes per second (threshold 4,096)".into(),
        "Processes started by workloads: none".into(),
        "Sessions of people: none with input since 2026-03-01 17:42 UTC".into(),
    ];
    notice.cost_per_hour = Some("$0.461/h".into());
    notice.cost_so_far = Some("$1.23".into());
    notice.net_saving = Some("$0.448/h ($326.97 per month)".into());
    notice.keeps_billing = vec!["EBS volume vol-0f00 (100 GiB gp3)".into(), "Elastic address 203.0.113.7".into()];
    notice.proposal_summary =
        Some("Stop the instance. Starting it again reverses this; its public address changes.".into());
    notice.page_url = Some("https://sweeper.example.org/findings/F-7K3QJ2?tab=evidence&from=mail".into());
    notice
}

/// A blind spot without a price.
pub(crate) fn blind() -> FindingNotice {
    let (since, as_of) = (at("2026-02-27T02:50:30Z"), at(AS_OF));
    let resource = "aws:123456789012:eu-central-1:i-00000000000000003";
    let headline = headline(resource, "unknown", since, as_of, None);
    let mut notice = FindingNotice::new("F-9", headline, resource, "unknown", since, as_of);
    notice.certainty = Some("No agent has ever reported from this instance".into());
    notice.unknown_price_reason = Some("the price list holds 2 rows for this exact key".into());
    notice
}

/// Every text is hostile: markup, mentions, line breaks, hidden characters, shell, and length.
pub(crate) fn hostile() -> FindingNotice {
    let evil = "<!channel> <script>alert(1)</script> & \"x\"\r\nBcc: everyone@example.org\r\n\r\n\u{202E}drowssap\u{200B} `*_~";
    let long = "🖥&<".repeat(2_000);
    let mut notice = FindingNotice::new("F-1; rm -rf / #", format!("{evil}{long}"), evil, evil, at(SINCE), at(AS_OF));
    let all = [
        &mut notice.resource_name,
        &mut notice.resource_kind,
        &mut notice.place,
        &mut notice.owner,
        &mut notice.certainty,
        &mut notice.cost_per_hour,
        &mut notice.cost_so_far,
        &mut notice.net_saving,
        &mut notice.proposal_summary,
    ];
    for (turn, text) in all.into_iter().enumerate() {
        *text = Some(if turn % 2 == 0 { evil.into() } else { long.clone() });
    }
    notice.evidence = vec![evil.into(); 40];
    notice.keeps_billing = vec![long; 40];
    notice.page_url = Some("javascript:alert(1)".into());
    notice
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_default()
}

/// Any notice at all, from empty to far too long.
pub(crate) fn any_notice() -> impl Strategy<Value = FindingNotice> {
    let text = || prop_oneof![any::<String>(), "[ \\t\\n]{0,3}", "[&<>*_~`|]{0,20}", ".{0,400}",];
    let maybe = move || proptest::option::of(text());
    let lines = move || proptest::collection::vec(text(), 0..16);
    let moment = || (-377_705_023_201_i64..=253_402_207_200).prop_map(second);
    (
        (text(), text(), text(), text(), moment(), moment()),
        (maybe(), maybe(), maybe(), maybe(), maybe()),
        (maybe(), maybe(), maybe(), maybe(), maybe(), maybe()),
        (lines(), lines()),
    )
        .prop_map(|((id, headline, resource, verdict, since, as_of), who, money, lines)| {
            let mut notice = FindingNotice::new(id, headline, resource, verdict, since, as_of);
            (notice.resource_name, notice.resource_kind, notice.place, notice.owner, notice.certainty) = who;
            (
                notice.cost_per_hour,
                notice.cost_so_far,
                notice.net_saving,
                notice.unknown_price_reason,
                notice.proposal_summary,
                notice.page_url,
            ) = money;
            (notice.evidence, notice.keeps_billing) = lines;
            notice
        })
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}
