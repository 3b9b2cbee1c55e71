//! Which sweeper may use which schema.

use super::{intervals::lines, open};
use migrations::NEEDED;
use sea_orm::ConnectionTrait as _;
use sweeper::store::{Schema, Store};

lab::on_both_databases! {
    a_newer_schema_is_used_where_it_says_that_this_version_may,
    a_newer_schema_is_left_alone_where_this_version_lacks_a_step_that_it_must_know,
    a_schema_that_lacks_steps_and_has_unknown_ones_is_left_alone,
    an_older_version_takes_back_no_word_of_a_newer_one,
}

const LATER: &str = "m9998_later";

async fn run(store: &Store, statement: &str) {
    let done = store.connection().execute_unprepared(statement).await.unwrap();
    assert_eq!(done.rows_affected(), 1, "{statement}");
}

/// As a sweeper of a later version leaves it, which needs this step.
async fn from_later(store: &Store, needs: &str) {
    run(store, &format!("INSERT INTO seaql_migrations (version, applied_at) VALUES ('{LATER}', 0)")).await;
    run(store, &format!("UPDATE needed_step SET step = '{needs}'")).await;
}

async fn needed(store: &Store) -> Vec<String> {
    lines(store, "SELECT step AS line FROM needed_step").await
}

async fn a_newer_schema_is_used_where_it_says_that_this_version_may(url: String) {
    let store = open(&url).await;
    assert_eq!((store.schema().await.unwrap(), needed(&store).await), (Schema::Current, vec![NEEDED.to_owned()]));
    assert_eq!(store.migrate().await.unwrap(), Schema::Current);
    from_later(&store, NEEDED).await;
    let steps = "SELECT version AS line FROM seaql_migrations ORDER BY version";
    let before = lines(&store, steps).await;
    assert_eq!((store.schema().await.unwrap(), store.migrate().await.unwrap()), (Schema::Newer(1), Schema::Newer(1)));
    assert_eq!(lines(&store, steps).await, before);
    // It is a database that can be used, and not only opened.
    assert!(!store.kill_switch().await.unwrap().is_on);
}

async fn a_newer_schema_is_left_alone_where_this_version_lacks_a_step_that_it_must_know(url: String) {
    let store = open(&url).await;
    from_later(&store, LATER).await;
    let said = [store.schema().await.unwrap_err().to_string(), store.migrate().await.unwrap_err().to_string()];
    for said in said {
        assert!(
            said.contains("has 1 steps that this version of the sweeper does not know") && said.contains(LATER),
            "{said}"
        );
    }
    // Nobody left word.
    run(&store, "DELETE FROM needed_step").await;
    assert!(store.schema().await.unwrap_err().to_string().contains("(all of them)"));
    store.migrate().await.unwrap_err();
    // A version of before the word itself was there.
    store.connection().execute_unprepared("DROP TABLE needed_step").await.unwrap();
    run(&store, "DELETE FROM seaql_migrations WHERE version = 'm0037_needed_step'").await;
    store.schema().await.unwrap_err();
    store.migrate().await.unwrap_err();
}

async fn a_schema_that_lacks_steps_and_has_unknown_ones_is_left_alone(url: String) {
    let store = open(&url).await;
    from_later(&store, NEEDED).await;
    run(&store, "DELETE FROM seaql_migrations WHERE version = 'm0036_price_rows'").await;
    store.schema().await.unwrap_err();
    store.migrate().await.unwrap_err();
    run(&store, &format!("DELETE FROM seaql_migrations WHERE version = '{LATER}'")).await;
    assert_eq!(store.schema().await.unwrap(), Schema::Older(1));
}

async fn an_older_version_takes_back_no_word_of_a_newer_one(url: String) {
    let store = open(&url).await;
    run(&store, &format!("UPDATE needed_step SET step = '{LATER}'")).await;
    assert_eq!(store.migrate().await.unwrap(), Schema::Current);
    assert_eq!(needed(&store).await, [LATER]);
    run(&store, "UPDATE needed_step SET step = 'm0001_nodes'").await;
    store.migrate().await.unwrap();
    assert_eq!(needed(&store).await, [NEEDED]);
}
