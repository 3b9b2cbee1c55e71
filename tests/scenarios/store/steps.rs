//! Steps of the schema that carry over what is there.

use super::open;
use migrations::{Migrator, MigratorTrait as _};
use sea_orm::{ConnectionTrait as _, Statement};

lab::on_both_databases! {
    findings_of_before_have_the_keys_of_their_resources_in_columns,
}

/// The newest step of those that this file knows.
const STEPS: usize = 15;

async fn findings_of_before_have_the_keys_of_their_resources_in_columns(url: String) {
    let store = open(&url).await;
    let connection = store.connection();
    let steps = u32::try_from(Migrator::migrations().len() - (STEPS - 1)).unwrap();
    Migrator::down(connection, Some(steps)).await.unwrap();
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
