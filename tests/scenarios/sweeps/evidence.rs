//! What a decision rests on is kept when it says something new, and decides the same again.

use crate::site::{BUSY, Site};
use jiff::{SignedDuration, Timestamp};
use lab::{quiet, sweeper::Sweeper};
use sea_orm::ConnectionTrait as _;
use sweeper::{
    findings::{FindingId, notice},
    pricing::Cost,
    reconcile::{Change, EventKind},
    store::Store,
};

lab::on_both_databases! {
    evidence_is_kept_when_something_changes_and_not_at_every_sweep,
    a_finding_that_had_no_evidence_kept_gets_some_when_it_is_confirmed,
    what_ended_last_is_told_as_long_as_the_finding_lasts,
}

async fn evidence_is_kept_when_something_changes_and_not_at_every_sweep(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(12, 0).await;
    site.sweep().await;
    site.pass(1, 0).await;
    site.sweep().await;
    let kept = site.decisions().await[0].len();
    assert_eq!(kept, 2, "opened, and why there is no plan");
    for _ in 0..10 {
        site.pass(1, 0).await;
        site.sweep().await;
    }
    assert_eq!(site.decisions().await[0].len(), kept, "nothing changed");
    let open = site.context.store.open_findings().await.unwrap();
    assert_eq!((open[0].confirmed_sweeps, open[0].confirmed_until), (12, site.now()), "it is confirmed all the same");
    site.pass(100, 0).await;
    site.sweep().await;
    assert_eq!(site.decisions().await[0].len(), kept + 1, "a window twice as long is news");
    site.context.config.onprem.hourly_usd.insert("default".into(), "0.30".into());
    site.pass(1, 0).await;
    site.sweep().await;
    let decisions = site.decisions().await;
    assert_eq!(decisions[0].len(), kept + 2, "another price is news");
    assert_eq!(decisions[0][kept + 1].cost, Cost::Known { per_hour: "0.30".parse().unwrap(), as_of: None });
}

async fn a_finding_that_had_no_evidence_kept_gets_some_when_it_is_confirmed(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let id = site.sweep().await.opened[0].clone();
    let database = site.context.store.connection();
    // As a sweeper of the version before leaves it.
    for statement in [
        "DELETE FROM evidence",
        "UPDATE findings SET records = NULL, recorded_unix_ms = NULL, recorded_until_unix_ms = NULL, confirmed_until_unix_ms = NULL",
    ] {
        assert_eq!(database.execute_unprepared(statement).await.unwrap().rows_affected(), 1, "{statement}");
    }
    let open = site.context.store.open_findings().await.unwrap();
    assert_eq!(
        (open[0].confirmed_until, open[0].recorded.count),
        (site.now(), 0),
        "its evidence tells how far it reaches"
    );
    site.pass(1, 0).await;
    let report = site.sweep().await;
    assert_eq!((report.findings[0].id.as_str(), report.opened.len()), (id.as_str(), 0));
    let records = site.context.store.evidence(&FindingId(id)).await.unwrap();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.event, record.replay().is_same), (EventKind::Changed, true));
}

async fn what_ended_last_is_told_as_long_as_the_finding_lasts(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(2, 0).await;
    site.pass(1, BUSY).await;
    let worked_until = site.now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    site.pass(12, 0).await;
    let told = format!("last seen at work until {worked_until}: CPU time of workloads, mostly of /work (python3)");
    let report = site.sweep().await;
    assert_eq!(report.findings[0].last_work, std::slice::from_ref(&told));
    let open = site.context.store.open_findings().await.unwrap();
    let notice = notice(&open[0]);
    assert!(notice.evidence.contains(&told), "{notice:?}");
    // Beyond the look-back of four hours nobody sees that work any more.
    site.pass(500, 0).await;
    let later = site.sweep().await;
    assert_eq!((&later.findings[0].id, later.opened.len()), (&report.findings[0].id, 0));
    assert_eq!(later.findings[0].last_work, [told]);
    site.decisions().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_this_version_would_not_make_is_named_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(folder.path(), "[aws]\nenabled = \"no\"\n", &[]).await;
    let done = sweeper.run(&["replay"]).await;
    assert!(done.status.success() && done.stdout.starts_with(b"0 decisions about 0 findings"), "{done:?}");
    let names = ["quiet-1", "quiet-2"];
    for name in names {
        quiet::report(&sweeper, name).await;
    }
    let (_, report) = sweeper.sweep().await;
    let ids: Vec<&str> = report["opened"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(sweeper.replays().await, (2, 0));
    let url = format!("sqlite://{}/data/sweeper.db?mode=rw", folder.path().display());
    let store = Store::connect(&url).await.unwrap();
    // As if the version that decided had counted an hour more.
    let conclusion = store.evidence(&FindingId(ids[0].to_owned())).await.unwrap().remove(0).change;
    let Change::Open { since, until } = conclusion else { panic!("{conclusion:?}") };
    let earlier = since - SignedDuration::from_hours(1);
    let change = format!(
        "UPDATE evidence SET conclusion = replace(conclusion, '{since}', '{earlier}') WHERE finding_id = '{}'",
        ids[0]
    );
    assert_eq!(store.connection().execute_unprepared(&change).await.unwrap().rows_affected(), 1);
    let before = store.open_findings().await.unwrap();

    let done = sweeper.run(&["replay"]).await;
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let window = |since| format!("it is so, from {} to {}", time(since), time(until));
    for part in [
        ids[0],
        &format!("decided then: {}", window(earlier)),
        &format!("this version: {}", window(since)),
        "2 decisions about 2 findings: this version decides 1 otherwise.",
    ] {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(!said.contains(ids[1]), "{said}");
    let other = sweeper.run(&["replay", ids[1]]).await;
    assert!(other.status.success(), "{other:?}");
    let nothing = sweeper.run(&["replay", "f-nothing"]).await;
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("there is no finding `f-nothing`"), "{nothing:?}");
    let explained = String::from_utf8(sweeper.run(&["explain", ids[0]]).await.stdout).unwrap();
    assert!(explained.contains("this version decides otherwise from the kept evidence"), "{explained}");
    // What cannot be read is neither the same nor nothing.
    let damage = format!("UPDATE evidence SET inputs = x'00' WHERE finding_id = '{}'", ids[1]);
    assert_eq!(store.connection().execute_unprepared(&damage).await.unwrap().rows_affected(), 1);
    assert_eq!(sweeper.json(&["explain", ids[1]]).await["replays"], false);
    let done = sweeper.run(&["replay", ids[1]]).await;
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.code() == Some(1) && said.contains("cannot be read"), "{said}");
    assert_eq!(store.open_findings().await.unwrap(), before);
}
