//! Who hears of what, for which time, and that what is not known is never nothing.

use super::*;
use crate::{
    approvals::Given,
    detectors::Class,
    digest::facts::Swept,
    findings::{Evidence, FindingId, LeftoverEvidence, Recorded},
    inventory::UsedBy,
    pricing::Cost,
    savings::Stopped,
    snapshot::{Coverage, LeftoverInputs, Thing},
    sweep::{self, KeptReport, Overview, Part},
};
use jiff::SignedDuration;
use model::plan::{Action, Plan, PlanContent};
use notifier::digest::Every;

/// An hour of the week that ends at hour 168.
fn at(hour: i64) -> Timestamp {
    // A Monday, 00:00 UTC.
    let monday: Timestamp = "2026-03-02T00:00:00Z".parse().expect("a time");
    monday + SignedDuration::from_hours(hour)
}

const WEEK: i64 = 168;

/// A volume of an owner in an account that is attached to nothing from one hour to another.
fn finding(name: &str, owner: Option<&str>, account: &str, hours: [i64; 2], cents: Option<i64>) -> Finding {
    let resource: ResourceKey = format!("aws:{account}:eu-central-1:volume/{name}").parse().expect("a key");
    let thing = Thing { name: Some(name.to_owned()), what: None, owner: owner.map(str::to_owned), created_at: None };
    let listed = LeftoverInputs {
        at: at(hours[1]),
        used_by: Some(UsedBy::Nothing),
        coverage: Coverage::Complete,
        since: Some(at(hours[0])),
        after_s: 3_600,
        not_before: Timestamp::MIN,
        failed: Vec::new(),
    };
    Finding {
        id: FindingId(format!("f-{name}")),
        class: Class::UnattachedVolume,
        resource,
        status: Status::Open,
        since: at(hours[0]),
        opened_at: at(hours[0] + 1),
        confirmed_at: at(hours[1]),
        confirmed_until: at(hours[1]),
        confirmed_sweeps: 3,
        cost: match cents {
            Some(cents) => Cost::Known { per_hour: HourlyRate::from_micros(cents * 10_000), as_of: None },
            None => Cost::Unknown { why: "nobody knows".into() },
        },
        evidence: Evidence::Leftover(Box::new(LeftoverEvidence { thing: Some(thing), listed })),
        recorded: Recorded::default(),
        plan: None,
        no_plan_because: None,
    }
}

fn ended(mut finding: Finding) -> Finding {
    finding.status = Status::Closed { at: finding.confirmed_until, because: "it is used".into() };
    finding
}

fn rate(machines: usize, priced: usize, cents: i64) -> RunRate {
    RunRate { machines, priced, micro_usd_per_hour: cents * 10_000 }
}

fn unseen_machine(name: &str, owner: Option<&str>, cents: Option<i64>) -> MachineLine {
    MachineLine {
        resource: format!("aws:123456789012:eu-central-1:{name}"),
        name: Some(name.to_owned()),
        owner: owner.map(str::to_owned),
        instance_type: Some("m5.large".into()),
        verdict: "unknown".into(),
        why: "no agent has ever reported from it".into(),
        cost_micro_usd_per_hour: cents.map(|cents| cents * 10_000),
        cost_per_hour: None,
        cost_unknown_because: None,
        usage: None,
        launched_by: None,
        no_report: None,
    }
}

fn swept(account: &str, is_complete: bool) -> Swept {
    let part = |name: Option<&str>, rate| Part { name: name.map(str::to_owned), rate };
    let counted = |owner: Option<&str>, rate| sweep::Unseen {
        account: Some(account.to_owned()),
        owner: owner.map(str::to_owned),
        rate,
    };
    let overview = Overview {
        running: rate(10, 8, 400),
        by_owner: vec![part(Some("ada"), rate(4, 4, 300)), part(None, rate(6, 4, 100))],
        unseen: Some(vec![counted(Some("ada"), rate(1, 1, 50)), counted(None, rate(150, 149, 149))]),
        ..Overview::default()
    };
    let blind_spots = vec![unseen_machine("i-1", Some("ada"), Some(50)), unseen_machine("i-2", None, None)];
    let report = Some(KeptReport { overview, blind_spots });
    Swept { scope: format!("aws {account} eu-central-1"), account: Some(account.to_owned()), is_complete, report }
}

fn facts() -> Facts {
    let saved = crate::savings::Saved {
        plan: "5d".repeat(32).try_into().expect("a hash"),
        finding: FindingId("f-old".into()),
        resource: "aws:123456789012:eu-central-1:i-9".parse().expect("a key"),
        title: "Stop it".into(),
        approved_by: vec!["ada".into()],
        stopped: Stopped { since: at(-10), until: at(20), ending: Ending::Lasts },
        per_hour: Some(HourlyRate::from_micros(10_000)),
        saved: Some(Usd::from_micros(300_000)),
    };
    Facts {
        now: at(WEEK),
        open: vec![
            finding("cheap", Some("ada"), "123456789012", [100, WEEK], Some(1)),
            finding("unpriced", Some(" Ada "), "123456789012", [-400, WEEK], None),
            finding("dear", None, "123456789012", [-400, WEEK], Some(100)),
            finding("elsewhere", Some("grace"), "999999999999", [140, WEEK], Some(10)),
        ],
        closed: vec![
            ended(finding("over", Some("ada"), "123456789012", [0, 30], Some(2))),
            ended(finding("over-before", Some("ada"), "123456789012", [-30, -1], Some(7))),
        ],
        answers: std::collections::HashMap::new(),
        acted: std::collections::HashSet::new(),
        saved: vec![(saved, Some("ada".into()))],
        swept: vec![swept("123456789012", true), swept("999999999999", false)],
        audit: (3, "ab".repeat(32)),
    }
}

fn digest(facts: &Facts, change: impl Fn(&mut DigestList)) -> Digest {
    let mut list = DigestList { name: "one".into(), every: Every::Week, ..DigestList::default() };
    change(&mut list);
    let calendar = Calendar::of(&list).expect("a calendar");
    make(facts, &list, &calendar, Span { from: at(0), until: at(WEEK) })
}

fn cents(sum: Sum) -> (i64, usize, usize) {
    (sum.known.micros() / 10_000, sum.count, sum.unknown)
}

#[test]
fn everyone_hears_of_everything_dearest_first() {
    let digest = digest(&facts(), |_| {});
    let names: Vec<_> = digest.open.first.iter().map(|open| open.name.as_str()).collect();
    assert_eq!(names, ["dear", "elsewhere", "cheap", "unpriced"]);
    assert_eq!((digest.open.count, cents(digest.open.sum)), (4, (111, 3, 1)));
    assert_eq!((digest.found.count, cents(digest.found.per_hour)), (3, (13, 3, 0)), "cheap, elsewhere and over");
    assert_eq!((digest.ended.count, cents(digest.ended.spent)), (1, (60, 1, 0)));
    assert_eq!(digest.running.map(|all| (all.count, cents(all.per_hour))), Some((20, (800, 16, 4))));
    assert_eq!(digest.unread, ["aws 999999999999 eu-central-1"]);
    assert_eq!(digest.classes.len(), 1);
    assert_eq!(digest.classes[0].name, "unattached volume");
    assert_eq!(digest.audit.entries, 3);
    let unseen = digest.unseen.expect("it is known");
    assert_eq!(
        (unseen.count, cents(unseen.sum), unseen.first.len()),
        (302, (398, 300, 2), 4),
        "all count, some are named"
    );
}

#[test]
fn an_owner_hears_of_what_is_theirs_however_their_tag_is_written() {
    let digest = digest(&facts(), |list| list.owner = Some("Ada".into()));
    assert_eq!(digest.owner.as_deref(), Some("Ada"));
    let names: Vec<_> = digest.open.first.iter().map(|open| open.name.as_str()).collect();
    assert_eq!(names, ["cheap", "unpriced"]);
    assert_eq!(digest.running.map(|all| all.count), Some(8));
    assert_eq!(digest.unseen.as_ref().map(|unseen| unseen.count), Some(2));
    assert_eq!(cents(digest.saved.so_far), (30, 1, 0));
    // Where their machines may be, nobody could look.
    assert_eq!(digest.unread.len(), 1);
}

#[test]
fn an_account_hears_of_what_it_is_billed_for() {
    let digest = digest(&facts(), |list| list.account = Some("999999999999".into()));
    assert_eq!(digest.open.count, 1);
    assert_eq!(digest.running.map(|all| all.count), Some(10));
    // Whose blind spots are named is by their keys, and these are of the other account.
    assert_eq!(digest.unseen.as_ref().map(|unseen| (unseen.count, unseen.first.len())), Some((151, 0)));
    assert_eq!(cents(digest.saved.so_far), (0, 0, 0));
    let none = make(
        &facts(),
        &DigestList { account: Some("1".into()), ..DigestList::default() },
        &Calendar::of(&DigestList::default()).expect("a calendar"),
        Span { from: at(0), until: at(WEEK) },
    );
    assert_eq!((none.open.count, none.unread.len()), (0, 0));
}

#[test]
fn each_day_costs_what_lasted_on_it_as_far_as_evidence_reaches() {
    let mut facts = facts();
    facts.open.retain(|finding| ["f-cheap", "f-unpriced"].contains(&finding.id.0.as_str()));
    let days = digest(&facts, |_| {}).days;
    assert_eq!(days.len(), 7);
    assert_eq!((days[0].date.to_string().as_str(), days[6].date.to_string().as_str()), ("2026-03-02", "2026-03-08"));
    let shown: Vec<_> = days.iter().map(|day| cents(day.cost)).collect();
    // `over` for 24 and 6 hours at 2 cents; `cheap` from hour 100 on at one; what has no price counts each day.
    assert_eq!(shown[..2], [(48, 1, 1), (12, 1, 1)]);
    assert_eq!(shown[2..4], [(0, 0, 1), (0, 0, 1)]);
    assert_eq!(shown[4..], [(20, 1, 1), (24, 1, 1), (24, 1, 1)]);
    // Its evidence ends at hour 160: what it costs after that is nobody's guess.
    for finding in &mut facts.open {
        finding.confirmed_until = at(160);
    }
    assert_eq!(cents(digest(&facts, |_| {}).days[6].cost), (16, 1, 1));
}

#[test]
fn what_was_saved_within_the_week_is_told_beside_all_of_it() {
    let saved = digest(&facts(), |_| {}).saved;
    assert_eq!((cents(saved.in_period), cents(saved.so_far)), ((20, 1, 0), (30, 1, 0)));
    assert_eq!(cents(saved.per_month), (730, 1, 0));
}

/// A finding on which a plan was made that is good up to some hour, with what was said of it.
fn planned(facts: &mut Facts, name: &str, until: i64, saves: Option<i64>, said: &[Answer]) -> String {
    let mut finding = finding(name, Some("ada"), "123456789012", [100, WEEK], Some(5));
    let content = PlanContent {
        finding: finding.id.0.clone(),
        record: 1,
        resource: "aws:123456789012:eu-central-1:i-1".parse().expect("a key"),
        title: format!("Stop {name}"),
        conditions: Vec::new(),
        actions: vec![Action::StopInstance],
        reversal: vec![Action::StartInstance],
        lost: Vec::new(),
        keeps_billing: Vec::new(),
        net_saving: match saves.map(|cents| HourlyRate::from_micros(cents * 10_000)) {
            Some(per_hour) => Saving::Known { per_hour, per_month: per_hour.per_month(), basis: "on demand".into() },
            None => Saving::Unknown { why: "nobody knows".into() },
        },
    };
    let plan = Plan::seal(content, at(until)).expect("a plan");
    let hash = plan.content_hash().to_string();
    let given = |answer: &Answer| Given {
        answer: *answer,
        at: at(150),
        approver: "grace".into(),
        way: "shell".into(),
        because: None,
    };
    facts.answers.insert(hash.clone(), said.iter().map(given).collect());
    finding.plan = Some(plan);
    facts.open.push(finding);
    hash
}

#[test]
fn a_plan_waits_until_somebody_says_no_something_comes_of_it_or_its_time_is_over() {
    let mut facts = facts();
    facts.open.clear();
    planned(&mut facts, "unknown", WEEK + 1, None, &[]);
    planned(&mut facts, "dear", WEEK + 1, Some(9), &[]);
    planned(&mut facts, "half-approved", WEEK + 1, Some(3), &[Answer::Approve]);
    planned(&mut facts, "over", WEEK, Some(100), &[]);
    planned(&mut facts, "denied", WEEK + 1, Some(100), &[Answer::Approve, Answer::Deny]);
    let carried_out = planned(&mut facts, "carried-out", WEEK + 1, Some(100), &[Answer::Approve]);
    facts.acted.insert(carried_out);
    let waiting = digest(&facts, |_| {}).waiting;
    let shown: Vec<_> = waiting.first.iter().map(|plan| (plan.name.as_str(), plan.approvals)).collect();
    assert_eq!(shown, [("dear", 0), ("half-approved", 1), ("unknown", 0)]);
    assert_eq!((waiting.count, cents(waiting.sum)), (3, (12, 2, 1)));
    assert_eq!(digest(&facts, |list| list.owner = Some("grace".into())).waiting.count, 0);
}

#[test]
fn what_no_sweep_has_told_is_not_known_and_not_nothing() {
    let mut facts = facts();
    // The report of a version that did not count what nobody sees.
    for swept in &mut facts.swept {
        swept.report.as_mut().expect("a report").overview.unseen = None;
    }
    let digest_of = digest(&facts, |_| {});
    assert!(digest_of.unseen.is_none() && digest_of.running.is_some());
    for swept in &mut facts.swept {
        (swept.report, swept.is_complete) = (None, false);
    }
    let digest_of = digest(&facts, |_| {});
    assert!(digest_of.unseen.is_none() && digest_of.running.is_none());
    assert_eq!(digest_of.unread.len(), 2);
}

#[test]
fn a_kept_report_is_read_as_it_is_written_and_as_it_was_before() {
    let kept = serde_json::json!({
        "overview": serde_json::to_value(swept("123456789012", true).report.expect("one").overview).expect("JSON"),
        "blind_spots": [unseen_machine("i-1", Some("ada"), Some(50))],
        "counts": { "active": 3 },
    });
    let read: KeptReport = serde_json::from_value(kept.clone()).expect("a report");
    assert_eq!(read.overview.unseen.map(|unseen| unseen.len()), Some(2));
    let mut before = kept;
    before["overview"].as_object_mut().expect("an object").remove("unseen");
    before["blind_spots"][0].as_object_mut().expect("an object").remove("owner");
    let read: KeptReport = serde_json::from_value(before).expect("a report");
    assert_eq!((read.overview.unseen, read.blind_spots[0].owner.clone()), (None, None));
}
