//! The order of recommendations, and which exclude each other.

use model::Usd;
use proptest::{collection::vec, prelude::*};
use recommender::{
    catalogue::{Saving, Worth},
    rank::{Group, rank, total},
    recommendation::{Change, Confidence, Doubt, Evidence, Recommendation, Undo},
};

fn to(machine_type: &str) -> Change {
    Change::Rightsize { from: "m5.4xlarge".into(), to: machine_type.into() }
}

/// Of the machine of this number: list and effective saving in micro-dollars, and doubts.
fn recommendation(machine: u64, change: Change, list: i64, effective: Option<i64>, doubts: u32) -> Recommendation {
    let usd = Usd::from_micros;
    Recommendation {
        resource: format!("aws:123456789012:us-east-1:i-{machine:017}").parse().unwrap(),
        change,
        evidence: Evidence::Weeks { weeks: 4 },
        confidence: Confidence::with((0..doubts).map(|timers| Doubt::TimersExist { timers }).collect()),
        saving: Some(Saving {
            list_per_month: usd(list),
            effective_per_month: effective
                .map_or_else(|| Worth::Unknown("not read".into()), |one| Worth::Known(usd(one))),
            once: usd(0),
        }),
        risks: Vec::new(),
        undo: Undo::EndSchedule,
    }
}

fn order(groups: &[Group]) -> Vec<Vec<&str>> {
    let name = |one: &Recommendation| match &one.change {
        Change::Rightsize { to, .. } => letter(to),
        _ => "other",
    };
    groups.iter().map(|group| group.ranked.iter().map(name).collect()).collect()
}

fn letter(to: &str) -> &'static str {
    ["a", "b", "c", "d"].into_iter().find(|name| *name == to).unwrap_or("?")
}

#[test]
fn the_surest_money_comes_first_and_only_one_of_a_machine_can_be_approved() {
    let groups = rank(vec![
        // By the list more, by the bill less.
        recommendation(1, to("a"), 90, Some(10), 0),
        recommendation(1, to("b"), 50, Some(50), 0),
        // As much, and less sure.
        recommendation(1, to("c"), 50, None, 3),
        recommendation(2, to("d"), 60, None, 1),
        // The same again.
        recommendation(2, to("d"), 60, None, 2),
    ]);
    assert_eq!(order(&groups), [vec!["d"], vec!["b", "c", "a"]]);
    let choice = groups[1].choose(&to("c")).unwrap();
    assert_eq!((&choice.chosen.change, choice.withdrawn.len()), (&to("c"), 2));
    assert_eq!(groups[1].choose(&to("d")), None);
    // The best of each alone: 60 + 50.
    assert_eq!((total(&groups).known, total(&groups).count), (Usd::from_micros(110), 2));
}

#[test]
fn what_prevents_failures_comes_before_what_saves() {
    let prevents = Recommendation { saving: None, ..recommendation(3, to("c"), 0, None, 0) };
    let groups = rank(vec![recommendation(1, to("a"), 90, None, 0), prevents]);
    assert_eq!(order(&groups), [vec!["c"], vec!["a"]]);
    assert_eq!(total(&groups).known, Usd::from_micros(90));
}

proptest! {
    #[test]
    fn the_order_is_total_and_the_same_however_they_come(
        drawn in vec((0..4_u64, 0..4_usize, 0..4_i64, proptest::option::of(0..4_i64), 0..4_u32), 0..12), by in 0..12_usize,
    ) {
        let all: Vec<_> = drawn
            .into_iter()
            .map(|(machine, name, list, effective, doubts)| {
                recommendation(machine, to(["a", "b", "c", "d"][name]), list, effective, doubts)
            })
            .collect();
        let mut other = all.clone();
        other.reverse();
        if !other.is_empty() {
            let by = by % other.len();
            other.rotate_left(by);
        }
        let groups = rank(all.clone());
        prop_assert_eq!(&groups, &rank(other));
        let machines: std::collections::BTreeSet<_> = all.iter().map(|one| one.resource.clone()).collect();
        prop_assert_eq!(groups.len(), machines.len(), "each machine once");
        for group in &groups {
            let saved = |one: &Recommendation| one.saving.as_ref().unwrap().surely();
            prop_assert!(group.ranked.windows(2).all(|pair| saved(&pair[0]) >= saved(&pair[1])));
        }
    }
}
