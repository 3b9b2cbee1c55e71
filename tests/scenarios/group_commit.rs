//! Many nodes send at once, and whatever holds their heartbeats fails under them: the sweeper is killed, the database goes away, the disk is full.
//! What was acknowledged is there, once; what was not is refused with a word on when to come again, and comes again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    fleet::{Fleet, NODES},
    postgres::Postgres,
    sweeper::Sweeper,
    tmpfs::Tmpfs,
    wait,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sea_orm::ConnectionTrait as _;
use std::time::Duration;
use sweeper::store::Store;

const TIMEOUT: Duration = Duration::from_secs(60);

lab::on_both_databases! { what_was_acknowledged_survives_a_kill_in_the_middle_of_a_group }

fn config(url: &str) -> String {
    format!("[store]\nurl = \"{url}\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[aws]\nenabled = \"no\"\n")
}

async fn what_was_acknowledged_survives_a_kill_in_the_middle_of_a_group(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(folder.path(), &config(&url), &[]).await;
    let fleet = Fleet::start(&[&sweeper]).await;
    let mut random = StdRng::seed_from_u64(0x005e_edad);
    let store = Store::connect(&url).await.unwrap();
    for _ in 0..8 {
        fleet.until_stored(100).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..120))).await;
        sweeper.kill();
        // Rollups that would be due in minutes are due when it starts: it is killed while it makes them, too.
        store.connection().execute_unprepared("UPDATE rollups_due SET due_unix_ms = 0").await.unwrap();
        sweeper.start_again().await;
    }
    fleet.until_stored(100).await;
    wait::until("rollups to be made meanwhile", TIMEOUT, || async {
        let metrics = sweeper.metrics().await;
        let made = metrics.lines().find_map(|line| line.strip_prefix("rollups_made_total ")?.parse::<u64>().ok());
        made.filter(|made| *made > 0)
    })
    .await;
    let met = fleet.check(&store).await;
    assert!(met.broken_off() >= 8 * 10, "the sweeper was killed while many waited for it");
    let metrics = sweeper.metrics().await;
    assert!(metrics.contains("heartbeat_group_size"), "{metrics}");
}

#[tokio::test]
async fn a_database_that_goes_away_is_said_to_be_away_and_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut postgres = Postgres::start_with(&["fsync=off", "max_connections=50"]).await;
    let url = postgres.database().await;
    let sweeper = Sweeper::start(folder.path(), &config(&url), &[]).await;
    let fleet = Fleet::start(&[&sweeper]).await;
    for _ in 0..2 {
        fleet.until_stored(100).await;
        postgres.crash().await;
        // Longer than the sweeper waits for a connection, so that it has to say no.
        let refused = fleet.met.unavailable();
        let all = usize::try_from(NODES).unwrap();
        wait::until("every node to be refused", TIMEOUT, || async {
            (fleet.met.unavailable() >= refused + all).then_some(())
        })
        .await;
        postgres.start_again().await;
    }
    fleet.until_stored(100).await;
    let met = fleet.check(&Store::connect(&url).await.unwrap()).await;
    assert_eq!(met.broken_off(), 0, "the sweeper itself stays");
}

#[tokio::test]
async fn a_full_disk_under_the_database_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Tmpfs::mount(&folder.path().join("disk"), 64 << 20);
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("disk/sweeper.db").display());
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config(&url), &[]).await;
    let fleet = Fleet::start(&[&sweeper]).await;
    fleet.until_stored(200).await;
    disk.fill();
    let refused = fleet.met.unavailable();
    wait::until("every node to be refused", TIMEOUT, || async {
        (fleet.met.unavailable() >= refused + usize::try_from(NODES).unwrap()).then_some(())
    })
    .await;
    disk.make_room();
    fleet.until_stored(200).await;
    let met = fleet.check(&Store::connect(&url).await.unwrap()).await;
    assert_eq!(met.broken_off(), 0, "the sweeper itself stays");
}
