//! Steps of the schema that carry over what is there.

use super::{answer, everything, intervals::lines, open, send_at};
use jiff::{SignedDuration, Timestamp};
use lab::sample;
use migrations::{Migrator, MigratorTrait as _};
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use sweeper::store::Store;

lab::on_both_databases! {
    findings_of_before_have_the_keys_of_their_resources_in_columns,
    heartbeats_of_before_are_carried_over_and_sweepers_of_before_go_on_to_store_them,
    messages_of_before_are_told_by_themselves,
}

/// The step that gave findings the keys of their resources.
const STEPS: usize = 15;
/// The one that gave heartbeats columns and days.
const INTERVALS: usize = 18;

/// How many steps there are from this one on.
fn steps_from(step: usize) -> Option<u32> {
    Some(u32::try_from(Migrator::migrations().len() - (step - 1)).unwrap())
}

async fn findings_of_before_have_the_keys_of_their_resources_in_columns(url: String) {
    let store = open(&url).await;
    let connection = store.connection();
    Migrator::down(connection, steps_from(STEPS)).await.unwrap();
    let aws = ("aws:123456789012:eu-central-1:i-1", "aws|123456789012|eu-central-1|instance|i-1");
    let expected = [
        aws,
        aws,
        ("gcp:example.com:omics:europe-west3-a:42", "gcp|example.com:omics|europe-west3-a|instance|42"),
        ("gcp:omics:europe-west3-a:42", "gcp|omics|europe-west3-a|instance|42"),
        ("host:0123456789abcdef0123456789abcdef", "onprem|||node|0123456789abcdef0123456789abcdef"),
        ("of another time", "not known"),
    ];
    for (number, (resource, _)) in expected.iter().enumerate() {
        let insert = format!(
            "INSERT INTO findings (id, class, resource, since_unix_ms, opened_unix_ms, confirmed_unix_ms, confirmed_sweeps, evidence) \
             VALUES ('f-{number}', 'idle_node', '{resource}', 1, 1, 1, 1, '')"
        );
        connection.execute_unprepared(&insert).await.unwrap();
    }
    Migrator::up(connection, None).await.unwrap();
    let columns =
        "COALESCE(provider || '|' || account || '|' || location || '|' || kind || '|' || resource_id, 'not known')";
    let select = format!("SELECT {columns} AS columns FROM findings ORDER BY id");
    let rows =
        connection.query_all_raw(Statement::from_string(connection.get_database_backend(), select)).await.unwrap();
    let rows: Vec<String> = rows.iter().map(|row| row.try_get("", "columns").unwrap()).collect();
    assert_eq!(rows, expected.map(|(_, columns)| columns));
    // What they say is what the key itself says.
    for (resource, columns) in &expected[..5] {
        let key: model::ResourceKey = resource.parse().unwrap();
        let told = [key.provider.as_str(), &key.account, &key.location, key.kind.as_str(), &key.id].join("|");
        assert_eq!(&told, columns);
    }
}

/// The columns of heartbeats that are not of their key.
async fn columns(store: &Store) -> String {
    let is_postgres = store.connection().get_database_backend() == DbBackend::Postgres;
    let all = if is_postgres {
        "SELECT column_name::text AS line FROM information_schema.columns WHERE table_name = 'heartbeats' ORDER BY ordinal_position"
    } else {
        "SELECT name AS line FROM pragma_table_info('heartbeats') ORDER BY cid"
    };
    lines(store, all).await.split_off(3).join(", ")
}

/// How a sweeper that knows these columns stores heartbeats, and deletes those that are old.
fn of_before(is_postgres: bool, columns: &str, from_sequence: u64, to_sequence: u64) -> [String; 2] {
    let insert = format!(
        "WITH given AS (SELECT * FROM heartbeats WHERE sequence = {from_sequence}) \
         INSERT INTO heartbeats (node_id, boot_id, sequence, {columns}) \
         SELECT node_id, boot_id, {to_sequence}, {columns} FROM given WHERE true \
         ON CONFLICT DO NOTHING RETURNING CAST(sequence AS TEXT) AS line"
    );
    let id = if is_postgres { "ctid" } else { "rowid" };
    let delete = format!(
        "DELETE FROM heartbeats WHERE {id} IN (SELECT {id} FROM heartbeats WHERE end_unix_ms < 1700000000000 LIMIT 5000)"
    );
    [insert, delete]
}

async fn heartbeats_of_before_are_carried_over_and_sweepers_of_before_go_on_to_store_them(url: String) {
    let store = open(&url).await;
    let connection = store.connection();
    let is_postgres = connection.get_database_backend() == DbBackend::Postgres;
    let (boot, now) = (sample::boot(1), Timestamp::now());
    let (day, long_ago) = (SignedDuration::from_hours(24), Timestamp::from_second(1_600_000_000).unwrap());
    // Of long ago, of some days, and of an agent whose clock runs ahead.
    send_at(&store, boot, &[1, 2, 3], 1, long_ago).await;
    for days in 0..9_u64 {
        let sequences: Vec<u64> = (4 + days * 100..104 + days * 100).collect();
        let end = now - day * (8 - i32::try_from(days).unwrap()) + SignedDuration::from_mins(50);
        assert_eq!(send_at(&store, boot, &sequences, 1, end).await.stored, 100);
    }
    let all = "SELECT CAST(sequence AS TEXT) || ' ' || CAST(end_unix_ms AS TEXT) || ' ' || CAST(LENGTH(message) AS TEXT) AS line FROM heartbeats ORDER BY sequence";
    let before = lines(&store, all).await;
    Migrator::down(connection, steps_from(INTERVALS)).await.unwrap();
    let columns = columns(&store).await;
    assert_eq!(lines(&store, all).await, before, "in one table, as the version before has them");
    Migrator::up(connection, None).await.unwrap();
    assert_eq!(lines(&store, all).await, before);
    assert_eq!(everything(&store, &sample::node(1)).await.len(), 903);
    assert_eq!(send_at(&store, boot, &[903, 904], 1, now + day).await, answer(1, 1, 904, 0));

    // A replica of the version before stores what is new, once, and deletes none that it does not mean.
    let [insert, delete] = of_before(is_postgres, &columns, 904, 905);
    assert_eq!(lines(&store, &insert).await, ["905"]);
    assert_eq!(lines(&store, &insert).await, [""; 0]);
    let unknown = "SELECT CAST(sequence AS TEXT) AS line FROM heartbeats WHERE sequence > 903 AND cpu_busy_ns IS NULL";
    assert_eq!(lines(&store, unknown).await, ["905"], "it knows no columns");
    let deleted = connection.execute_unprepared(&delete).await.unwrap().rows_affected();
    assert_eq!(deleted, if is_postgres { 0 } else { 3 });
    let left = everything(&store, &sample::node(1)).await;
    assert_eq!(left.iter().filter(|(_, sequence)| *sequence > 3).count(), 902);

    // This one deletes what is past its retention, and drops the table of before once all of it is.
    assert_eq!(store.delete_heartbeats_before(now - day * 20).await.unwrap(), if is_postgres { 3 } else { 0 });
    let dropped = store.drop_heartbeat_days_before(now + day * 4).await.unwrap();
    assert_eq!(dropped > 0, is_postgres);
    let left = everything(&store, &sample::node(1)).await.len();
    assert_eq!(left, if is_postgres { 0 } else { 902 });
}

async fn messages_of_before_are_told_by_themselves(url: String) {
    let store = open(&url).await;
    let connection = store.connection();
    let steps = Migrator::migrations();
    let at = steps.iter().position(|step| step.name() == "m0019_bundles").unwrap();
    Migrator::down(connection, Some(u32::try_from(steps.len() - at).unwrap())).await.unwrap();
    let notice = r#"{"finding_id":"f-1","headline":"h","resource":"r","verdict":"idle","since":"2026-05-01T12:00:00Z","as_of":"2026-05-01T12:00:00Z"}"#;
    // As a sweeper of the version before writes them, which may run beside this one.
    let write = async |number: u32| {
        let insert = format!(
            "INSERT INTO outbox (finding_id, channel, notice, state, attempts, created_unix_ms, next_attempt_unix_ms, claimed_until_unix_ms) \
             VALUES ('f-{number}', 'slack', '{notice}', 'pending', 0, 1, {number}, 0)"
        );
        connection.execute_unprepared(&insert).await.unwrap();
    };
    write(1).await;
    Migrator::up(connection, None).await.unwrap();
    write(2).await;
    let now = store.now().await.unwrap();
    for event in ["f-1", "f-2"] {
        let claimed = store.claim_message("slack", now, now + SignedDuration::from_mins(1)).await.unwrap().unwrap();
        assert_eq!((claimed.key(), claimed.bundle.as_deref()), (format!("{event}/slack"), None));
    }
    assert_eq!(store.messages(None, 10).await.unwrap().len(), 2);
}
