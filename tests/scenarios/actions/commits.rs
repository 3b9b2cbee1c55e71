//! A sweeper that dies where its database does not take what it has come to, on either side of the call: of a start again because of work, of an undo that is tried again and again, and of
//! a release. One call for one wish at most, and the next one ends what this one began.

use crate::{
    addresses::{FOR_GOOD, unused},
    site::{REGION, SWITCHED_ON, Says, Site, TIMEOUT},
};
use lab::{
    aws::{ACCOUNT, Fault},
    wait,
};
use sea_orm::DbBackend;
use serde_json::{Value, json};

lab::on_both_databases! {
    killed_before_it_is_written_that_it_is_off_it_is_started_again_once,
    killed_before_it_is_written_that_the_start_leaves_it_leaves_once,
    killed_before_it_is_written_that_the_start_was_taken_it_leaves_once,
    killed_before_it_is_written_that_the_machine_runs_it_leaves_once,
    killed_before_the_next_try_is_written_nothing_is_called_again,
    killed_between_two_tries_the_next_one_is_made_once,
    killed_around_each_commit_of_a_release_it_leaves_once,
}

impl Site {
    /// From now on the database does not take that an action of this direction is so far, or that an attempt is made.
    async fn refuse(&self, what: &str) {
        let backend = self.store.connection().get_database_backend();
        let (event, when) = match what.split_once(' ') {
            Some((direction, state)) => ("UPDATE", format!("NEW.direction = '{direction}' AND NEW.state = '{state}'")),
            None => ("INSERT", format!("NEW.direction = '{what}' AND NEW.attempt > 1")),
        };
        if backend == DbBackend::Sqlite {
            let trigger = format!(
                "CREATE TRIGGER refuses BEFORE {event} ON actions WHEN {when} BEGIN SELECT RAISE(ABORT, 'not now: {what}'); END"
            );
            return self.change(&trigger).await;
        }
        let function = format!(
            "CREATE OR REPLACE FUNCTION not_now() RETURNS trigger AS $$ BEGIN IF {when} THEN RAISE EXCEPTION 'not now: {what}'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
        );
        self.change(&function).await;
        let trigger =
            format!("CREATE TRIGGER refuses BEFORE {event} ON actions FOR EACH ROW EXECUTE FUNCTION not_now()");
        self.change(&trigger).await;
    }

    /// The sweeper has come there, and dies; the database takes everything again.
    async fn dies_there(&mut self, what: &str) {
        let refused = format!("not now: {what}");
        wait::until(&refused, TIMEOUT, || async { self.sweeper.log().contains(&refused).then_some(()) }).await;
        self.sweeper.kill();
        let sqlite = self.store.connection().get_database_backend() == DbBackend::Sqlite;
        self.change(if sqlite { "DROP TRIGGER refuses" } else { "DROP TRIGGER refuses ON actions" }).await;
    }

    async fn starts(&self) -> usize {
        self.called("StartInstances").await.len()
    }

    async fn asked_to_undo(&self) -> usize {
        let log = self.sweeper.json(&["audit"]).await;
        log.as_array().unwrap().iter().filter(|entry| entry["did"] == "undo_asked").count()
    }

    /// It was started again, by one call.
    async fn was_started_once(&self, plan: &str) -> Value {
        let undone = self.action(plan, "undo", &["done", "voided", "failed"]).await;
        assert_eq!((self.starts().await, &undone["state"]), (1, &json!("done")), "{undone:#}");
        assert_eq!(self.moto.instance_state(REGION, &self.machine).await, "running");
        assert_eq!(self.asked_to_undo().await, 1);
        assert_eq!(self.run(&["audit", "verify"]).await.code, 0);
        undone
    }
}

/// A machine on which work begins while the call that stops it is out, over a database that refuses this.
async fn worked_while_it_stopped(url: &str, refused: &str) -> (Site, String) {
    let site = Site::start(url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.refuse(refused).await;
    let late = Fault {
        service: Some("ec2".to_owned()),
        action: Some("StopInstances".to_owned()),
        delay_s: Some(15),
        after: Some(2),
        times: Some(1),
        ..Fault::default()
    };
    site.moto.fail(&[late]).await;
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["calling"]).await;
    site.node_says(Says::Works);
    let node = format!("aws:{ACCOUNT}:{REGION}:{}", site.machine);
    for _ in 0..2 {
        assert_eq!(site.run(&["nodes", &node, "--now"]).await.code, 0);
    }
    (site, plan)
}

async fn killed_before_it_is_written_that_it_is_off_it_is_started_again_once(url: String) {
    let (mut site, plan) = worked_while_it_stopped(&url, "do done").await;
    site.dies_there("do done").await;
    site.sweeper.start_again().await;
    let ended = site.ended(&plan).await;
    assert!(ended["outcome"].as_str().unwrap().ends_with("It is started again"), "{ended:#}");
    assert_eq!((site.called("StopInstances").await.len(), &ended["state"]), (1, &json!("done")), "{ended:#}");
    site.was_started_once(&plan).await;
}

async fn killed_before_it_is_written_that_the_start_leaves_it_leaves_once(url: String) {
    let (mut site, plan) = worked_while_it_stopped(&url, "undo calling").await;
    site.dies_there("undo calling").await;
    site.sweeper.start_again().await;
    let undone = site.was_started_once(&plan).await;
    assert_eq!(undone["asked_by"], json!([]), "{undone:#}");
}

async fn killed_before_it_is_written_that_the_start_was_taken_it_leaves_once(url: String) {
    let (mut site, plan) = worked_while_it_stopped(&url, "undo awaiting").await;
    site.dies_there("undo awaiting").await;
    site.sweeper.start_again().await;
    let undone = site.was_started_once(&plan).await;
    assert!(undone["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{undone:#}");
}

async fn killed_before_it_is_written_that_the_machine_runs_it_leaves_once(url: String) {
    let (mut site, plan) = worked_while_it_stopped(&url, "undo done").await;
    site.dies_there("undo done").await;
    site.sweeper.start_again().await;
    site.was_started_once(&plan).await;
}

/// A stopped machine that somebody wants back, for which EC2 has no room at the first call.
async fn without_room(url: &str, refused: Option<&str>) -> (Site, String) {
    let site = Site::start(url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    if let Some(refused) = refused {
        site.refuse(refused).await;
    }
    let full = Fault {
        service: Some("ec2".to_owned()),
        action: Some("StartInstances".to_owned()),
        status: Some(500),
        code: Some("InsufficientInstanceCapacity".to_owned()),
        after: Some(1),
        times: Some(1),
        ..Fault::default()
    };
    site.moto.fail(&[full]).await;
    assert_eq!(site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap()]).await.code, 0);
    (site, plan)
}

async fn killed_before_the_next_try_is_written_nothing_is_called_again(url: String) {
    let (mut site, plan) = without_room(&url, Some("undo")).await;
    site.dies_there("undo").await;
    // Whoever takes over does not know that it was refused, and may not call again; a quarter of an hour is over.
    site.change("UPDATE actions SET called_unix_ms = called_unix_ms - 1000000").await;
    site.sweeper.start_again().await;
    let failed = site.action(&plan, "undo", &["failed"]).await;
    assert_eq!((site.starts().await, &failed["attempt"]), (1, &json!(1)), "{failed:#}");
    assert_eq!(site.moto.instance_state(REGION, &site.machine).await, "stopped");
    // It is said, and whoever wants it says so again.
    let ada = site.folder.path().join("ada");
    let again = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert_eq!((again.code, site.starts().await), (0, 2), "{again:?}");
}

async fn killed_between_two_tries_the_next_one_is_made_once(url: String) {
    let (mut site, plan) = without_room(&url, None).await;
    wait::until("the next try to be written", TIMEOUT, || async {
        let all = site.sweeper.json(&["actions"]).await;
        all.as_array().unwrap().iter().any(|action| action["attempt"] == 2).then_some(())
    })
    .await;
    site.sweeper.kill();
    assert_eq!(site.starts().await, 1);
    site.sweeper.start_again().await;
    let undone = site.action(&plan, "undo", &["done", "voided"]).await;
    assert_eq!(
        (site.starts().await, &undone["attempt"], &undone["state"]),
        (2, &json!(2), &json!("done")),
        "{undone:#}"
    );
    assert_eq!(site.asked_to_undo().await, 1);
}

async fn killed_around_each_commit_of_a_release_it_leaves_once(url: String) {
    let states = ["calling", "awaiting", "done"];
    let mut site = Site::start_leaving(&url, FOR_GOOD, SWITCHED_ON, &states.map(unused), &[]).await;
    let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
    for (number, state) in states.into_iter().enumerate() {
        let plan = site.plan_to(&format!("({state})")).await;
        site.refuse(&format!("do {state}")).await;
        site.approve(&plan, &ada).await;
        site.approve(&plan, &grace).await;
        site.dies_there(&format!("do {state}")).await;
        site.sweeper.start_again().await;
        let ended = site.ended(&plan).await;
        assert_eq!(ended["state"], "done", "{state}: {ended:#}");
        assert_eq!(site.called("ReleaseAddress").await.len(), number + 1, "{state}");
    }
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}
