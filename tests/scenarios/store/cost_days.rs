//! What machines cost by days is kept only while it is of the rollups that are there, whoever writes these: a replica of the version before, too.

use super::{intervals::lines, open};
use costs::{Packed, View};
use jiff::Timestamp;
use lab::sample;
use sea_orm::ConnectionTrait as _;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use sweeper::{
    rollup::Rollup,
    store::{ChangedDays, DayPart, NodeHours, Store},
};
use tokio::{
    sync::{Barrier, watch},
    task::JoinSet,
};

lab::on_both_databases! {
    every_change_of_an_hours_rollup_is_noted_by_node_and_day,
    a_day_is_kept_only_if_nothing_changed_while_it_was_added_up,
    what_changes_while_days_are_added_up_is_in_them_or_noted,
    one_replica_adds_days_up_at_a_time,
    what_is_kept_comes_back_by_day_part_and_view,
}

/// A day of long ago.
const DAY: i64 = 20_000;
const OF: DayPart = DayPart { day: DAY, part: 3 };

fn hour(number: i64) -> Timestamp {
    Timestamp::from_second(DAY * 86_400 + number * 3_600).unwrap()
}

/// A rollup that is told from others by its number.
fn rollup(number: u64) -> Rollup {
    let mut rollup = Rollup::default();
    rollup.heartbeats = number;
    rollup
}

async fn put(store: &Store, node: u32, hours: &[(i64, u64)]) {
    let hours = hours.iter().map(|(number, heartbeats)| (hour(*number), rollup(*heartbeats))).collect();
    store.put_hours(&sample::node(node), hours).await.unwrap();
}

async fn changed(store: &Store) -> ChangedDays {
    store.changed_cost_days(0..=DAY + 10).await.unwrap()
}

/// The notes, by day and node, without their marks.
async fn noted(store: &Store) -> Vec<(i64, String)> {
    let mut noted: Vec<_> = changed(store)
        .await
        .into_iter()
        .flat_map(|(day, nodes)| nodes.into_keys().map(move |node| (day, node)))
        .collect();
    noted.sort();
    noted
}

fn packed(text: &str) -> BTreeMap<View, Packed> {
    let of = |view: View| {
        let bytes = |what: &str| format!("{what} {text} {}", view.as_str()).into_bytes();
        let texts = view.dimensions().iter().map(|dimension| (*dimension, bytes(dimension.as_str())));
        (view, Packed { machines: text.as_bytes().to_vec(), amounts: bytes("amounts"), texts: texts.collect() })
    };
    View::ALL.map(of).into()
}

async fn every_change_of_an_hours_rollup_is_noted_by_node_and_day(url: String) {
    let store = open(&url).await;
    let node = |number: u32| sample::node(number).to_string();
    put(&store, 1, &[(0, 1), (23, 1), (24, 1)]).await;
    put(&store, 2, &[(5, 1)]).await;
    let all = [(DAY, node(1)), (DAY, node(2)), (DAY + 1, node(1))];
    assert_eq!(noted(&store).await, all);
    let before = changed(&store).await;

    // Made anew: another mark, and those of the others stay.
    put(&store, 2, &[(5, 2)]).await;
    let after = changed(&store).await;
    assert_ne!(after[&DAY][&node(2)], before[&DAY][&node(2)]);
    assert_eq!((after[&DAY][&node(1)], &after[&(DAY + 1)]), (before[&DAY][&node(1)], &before[&(DAY + 1)]));

    // As a replica of the version before makes hours anew, and as retention deletes them; rollups of five minutes are no hours.
    store.connection().execute_unprepared("DELETE FROM cost_days_changed").await.unwrap();
    let write = |node: &str, tier: i64, hour: i64| {
        format!(
            "INSERT INTO rollups (node_id, tier, start_unix_ms, heartbeats, rollup) \
             SELECT '{node}', {tier}, {hour}, 9, rollup FROM rollups WHERE tier = 3600 AND node_id = '{}' AND start_unix_ms = {} \
             ON CONFLICT (node_id, tier, start_unix_ms) DO UPDATE SET heartbeats = excluded.heartbeats, rollup = excluded.rollup",
            sample::node(2),
            self::hour(5).as_millisecond(),
        )
    };
    let run = async |statement: &str, rows: u64| {
        let done = store.connection().execute_unprepared(statement).await.unwrap().rows_affected();
        assert_eq!(done, rows, "{statement}");
    };
    run(&write(&node(2), 300, hour(5).as_millisecond()), 1).await;
    assert_eq!(noted(&store).await, []);
    run(&write(&node(2), 3_600, hour(5).as_millisecond()), 1).await;
    run(&write(&node(3), 3_600, hour(30).as_millisecond()), 1).await;
    assert_eq!(noted(&store).await, [(DAY, node(2)), (DAY + 1, node(3))]);
    store.connection().execute_unprepared("DELETE FROM cost_days_changed").await.unwrap();
    assert_eq!(store.delete_rollups_before(hour(24)).await.unwrap(), 4);
    assert_eq!(noted(&store).await, [(DAY, node(1)), (DAY, node(2))]);

    // What is forgotten is forgotten with its notes.
    assert!(store.put_cost_day(OF, &packed("a"), None, &[], &BTreeMap::new()).await.unwrap());
    assert_eq!(store.forget_cost_days_before(DAY).await.unwrap(), 0);
    assert_eq!(store.forget_cost_days_before(DAY + 1).await.unwrap(), 2);
    assert_eq!(noted(&store).await, []);
}

async fn a_day_is_kept_only_if_nothing_changed_while_it_was_added_up(url: String) {
    let store = open(&url).await;
    let nodes = [1, 2].map(|number| sample::node(number).to_string());
    put(&store, 1, &[(0, 1)]).await;
    let read = async || changed(&store).await.remove(&DAY).unwrap_or_default();
    let kept = async || store.cost_day(OF).await.unwrap();
    let keep = async |text: &str, before: Option<&sweeper::store::CostDay>, changed: &BTreeMap<String, i64>| {
        store.put_cost_day(OF, &packed(text), before, &nodes, changed).await.unwrap()
    };
    let at_first = read().await;
    assert_eq!(at_first.len(), 1);

    // Written again, and another node's first hour: both are seen, and neither note goes.
    put(&store, 1, &[(1, 1)]).await;
    assert!(!keep("a", None, &at_first).await && kept().await.is_none());
    let then = read().await;
    put(&store, 2, &[(1, 1)]).await;
    assert!(!keep("a", None, &then).await && kept().await.is_none());
    let both = read().await;
    assert_eq!(both.len(), 2);
    assert!(keep("a", None, &both).await);
    assert_eq!(noted(&store).await, []);
    let first = kept().await.unwrap();
    assert_eq!(first.views, packed("a"));

    // Somebody has kept it meanwhile, and whatever was noted in between is gone with that.
    assert!(!keep("b", None, &BTreeMap::new()).await);
    assert!(keep("b", Some(&first), &BTreeMap::new()).await);
    assert!(!keep("c", Some(&first), &BTreeMap::new()).await);
    let second = kept().await.unwrap();
    assert_eq!(second.views, packed("b"));
    // A node that is none of these changes nothing.
    put(&store, 3, &[(1, 1)]).await;
    assert!(keep("c", Some(&second), &BTreeMap::new()).await);
    assert_eq!(noted(&store).await, [(DAY, sample::node(3).to_string())]);
}

/// Adds up: the hours' heartbeats of each node.
async fn added_up(store: &Store, nodes: &[String]) -> String {
    let asked = nodes.iter().map(|node| NodeHours { node: node.clone(), from: hour(0), to: hour(24) });
    let hours = store.packed_hours(&asked.collect::<Vec<_>>()).await.unwrap();
    let mut sums = BTreeMap::<&str, u64>::new();
    for ((node, _), packed) in &hours {
        *sums.entry(node).or_default() += packed.unpack().unwrap().heartbeats;
    }
    sums.iter().map(|(node, sum)| format!("{node}={sum}\n")).collect()
}

async fn what_changes_while_days_are_added_up_is_in_them_or_noted(url: String) {
    const NODES: u32 = 4;
    let store = open(&url).await;
    let nodes: Vec<String> = (0..NODES).map(|number| sample::node(number).to_string()).collect();
    let done = Arc::new(AtomicBool::new(false));
    let (kept, _) = watch::channel(0_u32);
    // Two at once, which the turn would prevent: nothing rests on it.
    let mut makers = JoinSet::new();
    for _ in 0..2 {
        let (store, nodes, done, kept) = (store.clone(), nodes.clone(), Arc::clone(&done), kept.clone());
        makers.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let changed = store.changed_cost_days(DAY..=DAY).await.unwrap().remove(&DAY).unwrap_or_default();
                let before = store.cost_day(OF).await.unwrap();
                let text = added_up(&store, &nodes).await;
                let is_kept = store.put_cost_day(OF, &packed(&text), before.as_ref(), &nodes, &changed).await.unwrap();
                kept.send_modify(|kept| *kept += u32::from(is_kept));
                tokio::task::yield_now().await;
            }
        });
    }
    let mut writers = JoinSet::new();
    let all_rest = Arc::new(Barrier::new(nodes.len()));
    for number in 0..NODES {
        let (store, all_rest, mut kept) = (store.clone(), Arc::clone(&all_rest), kept.subscribe());
        writers.spawn(async move {
            for round in 1..=60_u64 {
                put(&store, number, &[(0, round), (i64::from(number) + 1, round * 100)]).await;
                // Now and then nobody writes until a day was kept, so that what is written next changes one.
                if round % 20 == 0 {
                    all_rest.wait().await;
                    let before = *kept.borrow();
                    kept.wait_for(|kept| *kept > before).await.unwrap();
                }
            }
        });
    }
    writers.join_all().await;
    // What is kept now of whom is not noted must be what is there.
    let now = added_up(&store, &nodes).await;
    let noted = changed(&store).await.remove(&DAY).unwrap_or_default();
    let row = store.cost_day(OF).await.unwrap();
    done.store(true, Ordering::Relaxed);
    makers.join_all().await;
    if let Some(row) = row {
        let text = String::from_utf8(row.views[&View::Runs].machines.clone()).unwrap();
        for node in nodes.iter().filter(|node| !noted.contains_key(*node)) {
            let of = |text: &str| text.lines().find(|line| line.starts_with(node.as_str())).map(str::to_owned);
            assert_eq!(of(&text), of(&now), "{node}");
        }
    }
    // And once nobody writes any more, all of it is kept.
    let changed = changed(&store).await.remove(&DAY).unwrap_or_default();
    let before = store.cost_day(OF).await.unwrap();
    let text = added_up(&store, &nodes).await;
    assert!(store.put_cost_day(OF, &packed(&text), before.as_ref(), &nodes, &changed).await.unwrap());
    assert!(*kept.borrow() >= 3, "days were kept while rollups were written");
    assert_eq!(self::noted(&store).await, []);
}

async fn one_replica_adds_days_up_at_a_time(url: String) {
    let (one, other) = (open(&url).await, Store::connect(&url).await.unwrap());
    let turn = one.turn_of_cost_days().await.unwrap().unwrap();
    if url.starts_with("sqlite") {
        // One process, whose turn it always is, and which nobody waits for.
        other.turn_of_cost_days().await.unwrap().unwrap().end().await.unwrap();
    } else {
        assert!(other.turn_of_cost_days().await.unwrap().is_none());
    }
    // Whoever has the turn keeps nobody from writing.
    put(&other, 1, &[(0, 1)]).await;
    assert!(other.put_cost_day(OF, &packed("a"), None, &[], &BTreeMap::new()).await.unwrap());
    turn.end().await.unwrap();
    let turn = other.turn_of_cost_days().await.unwrap().unwrap();
    // One that is dropped ends as well.
    drop(turn);
    lab::wait::until("the turn to be free", std::time::Duration::from_secs(30), || {
        let turn = one.turn_of_cost_days();
        async { turn.await.unwrap() }
    })
    .await;
}

async fn what_is_kept_comes_back_by_day_part_and_view(url: String) {
    let store = open(&url).await;
    let other = DayPart { part: 31, ..OF };
    for (of, text) in [(OF, "a"), (other, "b"), (DayPart { day: DAY + 1, ..OF }, "c")] {
        assert!(store.put_cost_day(of, &packed(text), None, &[], &BTreeMap::new()).await.unwrap());
    }
    let machines = store.kept_cost_days(DAY).await.unwrap();
    assert_eq!(machines, BTreeMap::from([(OF, b"a".to_vec()), (other, b"b".to_vec())]));
    for view in View::ALL {
        let dimensions = &view.dimensions()[..1];
        let mut expected = [packed("a").remove(&view).unwrap(), packed("b").remove(&view).unwrap()];
        expected.iter_mut().for_each(|packed| packed.texts.retain(|dimension, _| dimensions.contains(dimension)));
        assert_eq!(store.cost_days(DAY, view, dimensions).await.unwrap(), expected);
    }
    assert_eq!(store.cost_days(DAY - 1, View::Runs, &[]).await.unwrap(), []);
    // A column of another view is none.
    let null = "SELECT CAST(COUNT(*) AS TEXT) AS line FROM cost_days WHERE (workload IS NULL) = (view = 'runs')";
    assert_eq!(lines(&store, null).await, ["6"]);
}
