//! People hear what became of what they approved, where they heard of the finding.

use crate::site::{REGION, Says, Site, TIMEOUT};
use lab::aws::{ACCOUNT, Fault, Instance};
use serde_json::json;

lab::on_both_databases! {
    people_hear_what_was_done_and_what_was_not,
    what_was_done_is_told_after_an_outage_though_its_finding_is_over,
    what_ran_on_a_machine_while_it_was_stopped_is_told,
    a_machine_on_which_work_had_begun_is_started_again,
    a_machine_for_which_there_is_no_room_is_started_later,
    what_somebody_else_starts_again_is_a_relapse,
    what_is_launched_in_its_place_is_a_relapse,
}

async fn people_hear_what_was_done_and_what_was_not(url: String) {
    let site = Site::start(&url).await;
    let opening = site.hears("align-7 has been idle").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    assert_eq!(site.run(&["kill-switch", "on", "--because", "an audit"]).await.code, 0);
    site.approve(&plan, &ada).await;
    let told = site.hears("align-7 was not stopped, though ada approved it").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    let text = told.to_string();
    assert!(text.contains("The kill switch is on") && text.contains("Nothing has been changed"), "{text}");
    assert!(text.contains("sweeper explain") && !text.contains("sweeper undo"), "{text}");

    assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0);
    site.sweeper.sweep().await;
    let plan = site.plan().await;
    site.approve(&plan, &ada).await;
    let told = site.hears("align-7 was stopped, as ada approved").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    let (text, undo) = (told.to_string(), format!("sweeper undo {}", &plan[..12]));
    assert!(text.contains(&undo) && !text.contains("Nothing has been changed"), "{text}");

    // What was saved counts from the first sweep on that sees the machine stopped.
    let saves = async || site.sweeper.json(&["savings"]).await;
    assert_eq!(saves().await["actions"][0]["ending"], "not_seen");
    site.sweeper.sweep().await;
    let savings = saves().await;
    let one = &savings["actions"][0];
    assert_eq!([&one["plan"], &one["ending"], &one["approved_by"]], [&json!(plan), &json!("lasts"), &json!(["ada"])]);
    assert!(one["until"].as_str() > one["since"].as_str(), "{savings:#}");
    assert_eq!(savings["saved"]["unknown"], i32::from(one["per_hour"].is_null()), "{savings:#}");

    // As the message says it.
    let undone = site.run(&["undo", &plan[..12], "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert_eq!(undone.code, 0, "{undone:?}");
    let told = site.hears("align-7 was started again, as ada wanted").await;
    assert!(told["thread_ts"] == opening["ts"] && !told.to_string().contains("sweeper undo"), "{told:#}");
    let savings = saves().await;
    assert_eq!(savings["actions"][0]["ending"], "undone", "{savings:#}");
    let shadow = json!({ "worked": 0, "rested": 0, "too_early": 0, "not_known": 0 });
    let plans =
        json!({ "approved": 2, "denied": 0, "done": 1, "voided": 1, "failed": 0, "undone": 1, "shadow": shadow });
    assert_eq!(savings["plans"], plans, "{savings:#}");
    let said = site.run(&["savings"]).await.said;
    assert!(said.contains(": undone") && said.contains("1 voided at the last moment"), "{said}");
    let acted = site.slack.messages().into_iter().filter(|message| message.to_string().contains("What came of it"));
    assert_eq!(acted.count(), 3, "each is told once");
}

async fn what_was_done_is_told_after_an_outage_though_its_finding_is_over(url: String) {
    let mut site = Site::start(&url).await;
    site.hears("align-7 has been idle").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.slack.stop();
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    // What it found is over: nobody needs to learn of that any more.
    site.sweeper.sweep().await;
    assert_eq!(site.sweeper.json(&["findings"]).await, json!([]));
    site.slack.start_again().await;
    let told = site.hears("align-7 was stopped, as ada approved").await;
    assert!(told.to_string().contains("The machine is stopped"), "{told:#}");
}

async fn what_ran_on_a_machine_while_it_was_stopped_is_told(url: String) {
    let site = Site::start(&url).await;
    let opening = site.hears("align-7 has been idle").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    // Two dry runs pass; the call itself is answered late.
    let late = Fault {
        service: Some("ec2".to_owned()),
        action: Some("StopInstances".to_owned()),
        delay_s: Some(8),
        after: Some(2),
        times: Some(1),
        ..Fault::default()
    };
    site.moto.fail(&[late]).await;
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["calling"]).await;
    site.node_says(Says::Works);
    let node = format!("aws:{ACCOUNT}:{REGION}:{}", site.machine);
    assert_eq!(site.run(&["nodes", &node, "--now"]).await.code, 0);
    let ended = site.ended(&plan).await;
    let outcome = ended["outcome"].as_str().unwrap();
    assert_eq!(ended["state"], "done", "{ended:#}");
    assert!(outcome.contains("After its agent had answered") && outcome.contains("above its threshold"), "{outcome}");
    let told = site.hears("align-7 was stopped, as ada approved, and something ran on it until it was off").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    let (text, undo) = (told.to_string(), format!("sweeper undo {}", &plan[..12]));
    assert!(text.contains(&undo) && text.contains("above its threshold"), "{text}");
    let undone = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert!(undone.code == 0 && undone.said.contains("done: the machine is running"), "{undone:?}");
}

async fn a_machine_on_which_work_had_begun_is_started_again(url: String) {
    let site = Site::start(&url).await;
    let opening = site.hears("align-7 has been idle").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
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
    // A shutdown ends the agent, too: what it reports twice was none.
    for _ in 0..2 {
        assert_eq!(site.run(&["nodes", &node, "--now"]).await.code, 0);
    }
    let ended = site.ended(&plan).await;
    let outcome = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "done" && outcome.ends_with("It is started again"), "{ended:#}");
    let undone = site.action(&plan, "undo", &["done", "voided", "failed"]).await;
    assert_eq!([&undone["state"], &undone["asked_by"]], [&json!("done"), &json!([])], "{undone:#}");
    assert_eq!(site.moto.instance_state(REGION, &site.machine).await, "running");
    let told = site.hears("align-7 was stopped, as ada approved, work had begun on it, and it is started again").await;
    assert!(told["thread_ts"] == opening["ts"] && !told.to_string().contains("sweeper undo"), "{told:#}");
    let again = site.hears("align-7 was started again, because work had begun on it before it was off").await;
    assert!(again["thread_ts"] == opening["ts"], "{again:#}");
    assert!(again.to_string().contains("the sweeper did so by itself"), "{again:#}");
    // Nothing more is done in the account until somebody has seen to it.
    let listed = site.run(&["actions"]).await.said;
    assert!(
        listed.contains("work had begun on it before it was off: nothing more is done in 123456789012"),
        "{listed}"
    );
    let log = site.sweeper.json(&["audit"]).await;
    let asked = log.as_array().unwrap().iter().filter(|entry| entry["did"] == "undo_asked").count();
    assert_eq!(asked, 1, "{log:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    assert_eq!(site.sweeper.json(&["savings"]).await["actions"][0]["ending"], "undone");
    // Its person is told that it is done already.
    let late = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap()]).await;
    assert!(late.code != 0 && late.error.contains("it is being undone, or was"), "{late:?}");
}

async fn a_machine_for_which_there_is_no_room_is_started_later(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    // Each try is a dry run, which passes, and a call. The first call finds no room, and so does the second.
    let full = |after| Fault {
        service: Some("ec2".to_owned()),
        action: Some("StartInstances".to_owned()),
        status: Some(500),
        code: Some("InsufficientInstanceCapacity".to_owned()),
        message: Some("We currently do not have sufficient m5.large capacity".to_owned()),
        after: Some(after),
        times: Some(1),
        ..Fault::default()
    };
    site.moto.fail(&[full(1), full(2)]).await;
    assert_eq!(site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap()]).await.code, 0);
    let told = site.hears("Starting align-7 again failed, which ada wanted").await;
    let text = told.to_string();
    assert!(text.contains("sufficient m5.large capacity") && text.contains("it is tried again in 15 s"), "{text}");
    // It is under way, whoever asks.
    let twice = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap()]).await;
    assert!(twice.code != 0 && twice.error.contains("it is being undone, or was"), "{twice:?}");
    let undone = site.action(&plan, "undo", &["done"]).await;
    assert_eq!([&undone["attempt"], &undone["asked_by"]], [&json!(3), &json!(["ada"])], "{undone:#}");
    assert_eq!(site.moto.instance_state(REGION, &site.machine).await, "running");
    site.hears("align-7 was started again, as ada wanted").await;
    let failures = site.slack.messages().iter().filter(|one| one.to_string().contains("again failed")).count();
    assert_eq!(failures, 1, "of what fails for the same want again and again one message tells");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

async fn what_somebody_else_starts_again_is_a_relapse(url: String) {
    let site = Site::start(&url).await;
    let (opening, asked) = (site.hears("align-7 has been idle").await, site.asks().await);
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    site.sweeper.sweep().await;
    let start = [("Action", "StartInstances"), ("Version", "2016-11-15"), ("InstanceId.1", site.machine.as_str())];
    site.moto.query("ec2", REGION, &start).await;
    site.sweeper.sweep().await;
    // It is looked for twice a minute.
    lab::wait::until("the relapse to be noted", TIMEOUT, || async {
        let listed = site.run(&["actions"]).await.said;
        listed.contains("started again by somebody else: nothing more is done in 123456789012 until").then_some(())
    })
    .await;
    let log = site.sweeper.json(&["audit"]).await;
    let noted = log.as_array().unwrap().iter().filter(|entry| entry["did"] == "relapsed").count();
    assert_eq!(noted, 1, "{log:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    // Whoever was told that it was stopped is told once, in the same thread; the record shows it.
    let told = site.hears("align-7 runs again, ").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    let words = told.to_string();
    for part in [
        "after it was stopped, as ada approved",
        "Somebody else has started it again",
        "as a relapse",
        "sweeper actions review 123456789012",
    ] {
        assert!(words.contains(part), "`{part}` is not in {told:#}");
    }
    assert!(!words.contains("sweeper undo") && !words.contains("Nothing has been changed"), "{told:#}");
    let record = site.shows(&asked, "counts as a relapse since ").await.to_string();
    assert!(record.contains("ada said yes") && record.contains("looked at once more and stopped, "), "{record}");
    site.searched_twice().await;
    let count = site.slack.messages().iter().filter(|message| message.to_string().contains("runs again, ")).count();
    assert_eq!(count, 1, "it is told once");
    assert_eq!(site.sweeper.json(&["savings"]).await["actions"][0]["ending"], "restarted");
    assert_eq!(site.run(&["actions", "review", ACCOUNT]).await.code, 0);
}

async fn what_is_launched_in_its_place_is_a_relapse(url: String) {
    let site = Site::start(&url).await;
    let (opening, asked) = (site.hears("align-7 has been idle").await, site.asks().await);
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    site.sweeper.sweep().await;
    let owned = |name: &str, owner: &str| {
        let mut machine = Instance::named("m5.large", name);
        machine.tags.insert("owner".to_owned(), owner.to_owned());
        machine
    };
    // Of these nobody says that they are in its place.
    site.moto.run(REGION, &[owned("align-8", "ada"), owned("align-7", "grace")]).await;
    site.sweeper.sweep().await;
    site.searched_twice().await;
    assert!(!site.run(&["actions"]).await.said.contains("in its place"));

    let twin = site.moto.run(REGION, &[owned("align-7", "ada")]).await.remove(0);
    site.sweeper.sweep().await;
    let told = site.hears("align-7 was replaced, ").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    let words = told.to_string();
    for part in
        ["as ada approved", "Another machine was launched in its place", &twin, "sweeper actions review 123456789012"]
    {
        assert!(words.contains(part), "`{part}` is not in {told:#}");
    }
    let record = site.shows(&asked, "counts as a relapse since ").await.to_string();
    assert!(record.contains(&twin), "{record}");
    let listed = site.run(&["actions"]).await.said;
    assert!(listed.contains("nothing more is done in 123456789012 until"), "{listed}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}
