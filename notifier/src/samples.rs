//! Notices for tests: one with everything, one with nothing known, one meant to do harm; and bundles of these.

use jiff::Timestamp;
use model::{HourlyRate, Usd, plan::ContentHash};
use proptest::prelude::*;

use crate::{
    bundle::{Bundle, Member, News},
    message::{Acted, Ask, Ended, Ending, FindingNotice, Outcome, end_headline, headline},
};

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
    notice.account = Some("AWS account 123456789012".into());
    notice.cost_per_hour = Some("$0.461/h".into());
    notice.cost_so_far = Some("$1.23".into());
    notice.rate = Some(HourlyRate::from_micros(461_000));
    notice.spent = Some(Usd::from_micros(1_233_175));
    notice.saving = Some(HourlyRate::from_micros(448_000));
    notice.net_saving = Some("$0.448/h ($326.97 per month)".into());
    notice.keeps_billing = vec!["EBS volume vol-0f00 (100 GiB gp3)".into(), "Elastic address 203.0.113.7".into()];
    notice.plan_summary =
        Some("Stop the instance. Starting it again reverses this; its public address changes.".into());
    notice.page_url = Some("https://sweeper.example.org/findings/F-7K3QJ2?tab=evidence&from=mail".into());
    notice
}

/// The same instance once it works again.
pub(crate) fn ended() -> FindingNotice {
    let mut notice = idle();
    (notice.as_of, notice.spent) = (at("2026-03-02T05:12:00Z"), Some(Usd::from_micros(2_320_367)));
    notice.cost_so_far = Some("$2.32".into());
    notice.headline =
        end_headline("training-7", "idle", Ending::Resolved, notice.since, notice.as_of, notice.cost_so_far.as_deref());
    (notice.plan_summary, notice.net_saving, notice.saving) = (None, None, None);
    notice.keeps_billing.clear();
    let because = "Work runs on it: CPU time of workloads was 812 ms per second, above 2 ms per second".to_owned();
    notice.ended = Some(Ended { at: at("2026-03-02T05:13:30Z"), how: Ending::Resolved, because });
    notice
}

/// What is asked of a plan that one of two has approved.
pub(crate) fn asked() -> FindingNotice {
    let mut notice = idle();
    notice.ask = Some(Ask { plan: hash(), label: "Stop it".into(), nobody_may: None });
    notice.answers = vec!["ada said yes, 2026-03-02 02:53 UTC; one more must".into()];
    notice
}

/// The same instance once it was stopped, as two people had approved.
pub(crate) fn stopped() -> FindingNotice {
    let mut notice = idle();
    notice.headline = "training-7 was stopped, as ada and grace approved".into();
    notice.plan_summary = None;
    notice.keeps_billing.clear();
    notice.acted = Some(Acted {
        at: at("2026-03-02T02:55:10Z"),
        outcome: Outcome::Done,
        because: "The machine is stopped".into(),
        asked_by: vec!["ada".into(), "grace".into()],
        undo: Some("5d0f66e0a1b2".into()),
        has_relapsed: false,
    });
    notice
}

/// And what its owner hears where it was not.
pub(crate) fn not_stopped() -> FindingNotice {
    let mut notice = stopped();
    notice.headline = "training-7 was not stopped, though ada approved it".into();
    let because = "Somebody has typed at it since".to_owned();
    let asked_by = vec!["ada".into()];
    notice.acted = Some(Acted {
        at: at("2026-03-02T02:55:10Z"),
        outcome: Outcome::Voided,
        because,
        asked_by,
        undo: None,
        has_relapsed: false,
    });
    notice
}

/// Three of one owner, one of them without a price.
pub(crate) fn bundle() -> Bundle {
    let mut bundle = bundle_of(2);
    let mut unknown = idle();
    (unknown.finding_id, unknown.owner) = ("F-9".into(), Some("ada".into()));
    unknown.resource_name = None;
    (unknown.rate, unknown.spent, unknown.saving) = (None, None, None);
    bundle.members.push(Member { notice: unknown, end: None });
    bundle
}

/// The same after the dearest one has ended.
pub(crate) fn bundle_of_which_one_ended() -> Bundle {
    let mut bundle = bundle();
    let mut end = ended();
    end.resource_name.clone_from(&bundle.members[1].notice.resource_name);
    bundle.members[1].end = Some(end);
    bundle
}

/// Plans for the same.
pub(crate) fn plans() -> Bundle {
    Bundle { news: News::Planned, ..bundle() }
}

/// Plans for two that people are asked about, of which one was carried out.
pub(crate) fn asked_plans() -> Bundle {
    let mut bundle = plans();
    for (number, member) in bundle.members.iter_mut().enumerate() {
        member.notice.ask = Some(Ask { plan: plan(number), label: "Stop it".into(), nobody_may: None });
    }
    let decided = &mut bundle.members[1].notice;
    decided.ask = None;
    decided.answers = vec![
        "ada said yes, 2026-03-02 02:53 UTC".into(),
        "looked at once more and stopped, 2026-03-02 02:55 UTC".into(),
    ];
    decided.came_of_it = Some(Outcome::Done);
    bundle
}

/// One of several plans.
pub(crate) fn plan(number: usize) -> ContentHash {
    ContentHash::try_from(format!("{number:064x}")).unwrap_or_else(|error| panic!("{error}"))
}

/// So many of one owner; each costs a cent more than the one before.
pub(crate) fn bundle_of(count: i64) -> Bundle {
    let member = |number: i64| {
        let mut notice = idle();
        notice.finding_id = format!("F-{number}");
        notice.resource_name = Some(format!("machine-{number}"));
        notice.owner = Some("ada".into());
        notice.rate = Some(HourlyRate::from_micros(10_000 + number * 10_000));
        Member { notice, end: None }
    };
    Bundle { news: News::Opened, members: (0..count).map(member).collect() }
}

/// Hostile texts in every line, and in how one ended.
pub(crate) fn hostile_bundle() -> Bundle {
    let mut end = hostile();
    let because = hostile().owner.unwrap_or_default() + &hostile().headline;
    end.ended = Some(Ended { at: at(AS_OF), how: Ending::Gone, because });
    let members = [None, Some(end), None].map(|end| Member { notice: hostile(), end });
    Bundle { news: News::Opened, members: members.into() }
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
        &mut notice.plan_summary,
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
    let text = || prop_oneof![any::<String>(), "[ \\t\\n]{0,3}", "[&<>*_~`|]{0,20}", ".{0,400}",].boxed();
    let maybe = move || proptest::option::of(text());
    let lines = move || proptest::collection::vec(text(), 0..16);
    let moment = || (-377_705_023_201_i64..=253_402_207_200).prop_map(second);
    (
        (text(), text(), text(), text(), moment(), moment()),
        (maybe(), maybe(), maybe(), maybe(), maybe()),
        (maybe(), maybe(), maybe(), maybe(), maybe(), maybe()),
        (lines(), lines(), lines()),
        // In boxes: without them they overflow the stack of a test.
        (text(), text(), text(), lines(), any::<bool>(), any::<bool>()).boxed(),
    )
        .prop_map(|((id, headline, resource, verdict, since, as_of), who, money, lines, said)| {
            let mut notice = FindingNotice::new(id, headline, resource, verdict, since, as_of);
            (notice.resource_name, notice.resource_kind, notice.place, notice.owner, notice.certainty) = who;
            (
                notice.cost_per_hour,
                notice.cost_so_far,
                notice.net_saving,
                notice.unknown_price_reason,
                notice.plan_summary,
                notice.page_url,
            ) = money;
            (notice.evidence, notice.keeps_billing, notice.answers) = lines;
            let (label, because, undo, asked_by, is_asked, was_acted) = said;
            notice.ask = is_asked.then(|| Ask { plan: hash(), label, nobody_may: None });
            let acted =
                Acted { at: as_of, outcome: Outcome::Done, because, asked_by, undo: Some(undo), has_relapsed: false };
            notice.acted = was_acted.then_some(acted);
            notice
        })
}

/// Any bundle at all.
pub(crate) fn any_bundle() -> impl Strategy<Value = Bundle> {
    let news = prop_oneof![Just(News::Opened), Just(News::Planned)];
    let amount = || proptest::option::of(any::<i64>());
    let member = (any_notice(), proptest::option::of(any_notice()), amount(), amount(), any::<String>());
    let member = member.prop_map(|(mut notice, mut end, rate, spent, because)| {
        notice.rate = rate.map(HourlyRate::from_micros);
        notice.saving = notice.rate;
        notice.spent = spent.map(Usd::from_micros);
        if let Some(end) = &mut end {
            end.ended = Some(Ended { at: end.as_of, how: Ending::Resolved, because });
        }
        Member { notice, end }
    });
    (news, proptest::collection::vec(member, 0..30)).prop_map(|(news, members)| Bundle { news, members })
}

fn hash() -> ContentHash {
    ContentHash::try_from("5d".repeat(32)).unwrap_or_else(|error| panic!("{error}"))
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}
