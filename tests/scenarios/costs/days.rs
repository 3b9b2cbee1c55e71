//! Days that are over are added up by the sweeper that serves, and questions are answered from them: the same as from rollups, also where these are gone; and no more once something else
//! that they rest on is known otherwise.

use super::{ACCOUNT, REGION, config, expected, lines, work};
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{Instance, Moto},
    rollups, sample,
    sweeper::Sweeper,
    wait,
};
use sea_orm::{ConnectionTrait as _, Statement};
use serde_json::Value;
use std::time::Duration;
use sweeper::store::{Store, TokenHash};

/// A day has 24 hours of $0.096, of which an agent saw an hour and a half.
const DAY: u64 = 24 * 96_000;
/// Longest that a round over one machine's days may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The begin of the day before yesterday: it has been over for a day.
fn day() -> Timestamp {
    let today = Timestamp::now().as_second() / 86_400 * 86_400;
    Timestamp::from_second(today - 2 * 86_400).unwrap()
}

/// A machine that has run for days, at a price that is known of all of them, and what its agent told of some hours of one.
async fn tell(store: &Store, instance: &str, day: Timestamp) {
    let before = "UPDATE prices SET effective_unix_ms = effective_unix_ms - 864000000";
    assert!(store.connection().execute_unprepared(before).await.unwrap().rows_affected() > 0);
    let node = format!("aws:{ACCOUNT}:{REGION}:{instance}").parse().unwrap();
    store.join_node(&sample::join(&node, sample::boot(1)), &TokenHash::of("a token"), day).await.unwrap();
    let begin = day + SignedDuration::from_hours(10);
    store.store_heartbeats(&sample::checked(&work::envelope(&node, begin)), Timestamp::now()).await.unwrap();
    rollups::make_all(store).await;
}

async fn count(store: &Store, what: &str) -> i64 {
    let backend = store.connection().get_database_backend();
    let count = Statement::from_string(backend, format!("SELECT COUNT(*) AS n FROM {what}"));
    store.connection().query_one_raw(count).await.unwrap().unwrap().try_get("", "n").unwrap()
}

/// Deletes all rollups behind the back of whoever notes it.
async fn lose_rollups(store: &Store, url: &str) {
    let aside = if url.starts_with("sqlite") {
        "DROP TRIGGER rollups_delete_changes_costs"
    } else {
        "ALTER TABLE rollups DISABLE TRIGGER rollups_delete_changes_costs"
    };
    for change in [aside, "DELETE FROM rollups"] {
        store.connection().execute_unprepared(change).await.unwrap();
    }
}

async fn ask(sweeper: &Sweeper, by: &str, day: Timestamp) -> Value {
    // Half of the day before, and half of the one behind it: these are read hour by hour.
    let (from, to) = (day - SignedDuration::from_hours(12), day + SignedDuration::from_hours(36));
    sweeper.json(&["costs", "--by", by, "--from", &from.to_string(), "--to", &to.to_string()]).await
}

pub(crate) async fn days_that_are_over_are_added_up_and_questions_are_answered_from_them(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let day = day();
    let launched_at = Some(day - SignedDuration::from_hours(60));
    let machine = Instance { launched_at, ..Instance::named("m5.large", "align-1") };
    let ids = moto.run(REGION, &[machine]).await;
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), &config(&url), &environment).await;
    assert_eq!(sweeper.sweep().await.0, 0);
    let store = Store::connect(&url).await.unwrap();
    tell(&store, &ids[0], day).await;
    let pairs = ["tool,day", "workload", "pipeline,team", "instance,day", "run,task"];
    let mut from_rollups = Vec::new();
    for by in pairs {
        from_rollups.push(ask(&sweeper, by, day).await);
    }
    let tools = lines(&from_rollups[0], "tool");
    let seen = work::BWA + work::SAMTOOLS + work::RUN + work::OUTSIDE + work::SYSTEM + work::UNOWNED + work::IDLE;
    assert_eq!(tools[&("bwa".to_owned(), "used".to_owned())], work::BWA, "{tools:#?}");
    assert_eq!(from_rollups[0]["bill_micro_usd"], Value::from(2 * DAY));

    // One that is started adds up at once what is due; a running one within minutes.
    sweeper.stop().await;
    sweeper.start_again().await;
    let number = day.as_second() / 86_400;
    let kept = format!("cost_days WHERE day BETWEEN {} AND {number}", number - 1);
    wait::until("two days to be added up in two views", TIMEOUT, || async {
        let is_kept = count(&store, &kept).await == 4;
        (is_kept && count(&store, &format!("cost_days_changed WHERE day = {number}")).await == 0).then_some(())
    })
    .await;
    for (by, expected) in pairs.iter().zip(&from_rollups) {
        assert_eq!(ask(&sweeper, by, day).await, *expected, "{by}");
    }

    // The hours that were seen are of a whole day: without their rollups it is told as before, and what was not seen is missed by nobody.
    lose_rollups(&store, &url).await;
    for (by, expected) in pairs.iter().zip(&from_rollups) {
        let told = ask(&sweeper, by, day).await;
        assert_eq!(
            (&told["lines"], &told["bill_micro_usd"]),
            (&expected["lines"], &expected["bill_micro_usd"]),
            "{by}"
        );
    }

    // The price is another one, as is learnt now: what was added up at the one before is not told.
    let price = "UPDATE prices SET micro_usd_per_hour = 2 * micro_usd_per_hour";
    store.connection().execute_unprepared(price).await.unwrap();
    let told = ask(&sweeper, "tool", day).await;
    let all = [("-", "unattributed", 4 * DAY)];
    assert_eq!(lines(&told, "tool"), expected(&all), "nothing is left that tells of the {seen} micro-dollars");
    too_much(&sweeper).await;
}

/// What takes too much is refused with what to ask instead.
async fn too_much(sweeper: &Sweeper) {
    let asked = [("by", "tool"), ("from", "2026-01-01T00:00:00Z"), ("to", "2026-04-04T00:00:00Z")];
    let url = format!("{}/v1/costs", sweeper.url());
    let answer = sweeper.client().get(url).query(&asked).bearer_auth(sweeper.operator_token()).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    let text = answer.text().await.unwrap();
    assert!(text.contains("at most 92 days are added up at once"), "{text}");
    let output = sweeper.run(&["costs", "--from", "2026-01-01", "--to", "2026-04-04"]).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("at most 92 days"), "{error}");
    assert!(sweeper.run(&["costs", "--from", "2026-01-01", "--to", "2026-04-03"]).await.status.success());
}
