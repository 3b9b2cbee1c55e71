//! The slash command of Slack: whoever may decide is told, alone, what is open, planned and saved, and shown the button that approves; nobody else learns anything.

use crate::{
    site::{ANYBODY, SWITCHED_ON, Site, TIMEOUT},
    slack::{ADA, GRACE},
};
use lab::{
    slack::{Hears, Slack, has_buttons},
    wait,
};
use serde_json::{Value, json};

lab::on_both_databases! {
    each_command_is_answered_to_whoever_typed_it_alone,
    a_plan_that_was_asked_for_is_approved_by_its_button_alone,
    what_is_asked_for_can_be_left_alone_where_the_app_is_not_in_the_channel,
    whoever_may_not_ask_learns_nothing,
    what_slack_has_not_signed_just_now_is_not_answered,
    commands_over_sockets_are_answered_all_the_same,
    of_three_hundred_the_dearest_are_shown_and_the_others_counted,
}

/// A command that somebody types, as the stand-in is told of it; `how` is what is not as usual.
fn typed(site: &Site, text: &str, user: &str, how: Value) -> Value {
    let at = site.slack.answers_at();
    let mut typed = json!({ "secret": Slack::SECRET, "text": text, "user": user, "answers_at": at });
    typed.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
    typed
}

/// All that an answer shows.
fn words(answer: &Value) -> String {
    let blocks = answer["blocks"].as_array().into_iter().flatten();
    blocks.map(Value::to_string).fold(answer["text"].to_string(), |all, block| all + &block)
}

impl Site {
    /// Types a command; returns the status of what Slack is answered at once, which tells nothing else.
    async fn types(&self, text: &str, user: &str, how: Value) -> u16 {
        Slack::press(&format!("{}/v1/slack/interactions", self.sweeper.url()), &typed(self, text, user, how)).await
    }

    /// What was answered last, once there are so many answers.
    pub(crate) async fn replied(&self, count: usize) -> Value {
        let all = wait::until(&format!("{count} answers"), TIMEOUT, || async {
            let all = self.slack.replies();
            (all.len() >= count).then_some(all)
        })
        .await;
        assert_eq!(all.len(), count, "{all:#?}");
        let last = all[count - 1].clone();
        assert_eq!((&last["response_type"], &last["replace_original"]), (&json!("ephemeral"), &json!(false)));
        last
    }

    /// Types a command as ada, and returns what she is told.
    async fn tells(&self, text: &str) -> Value {
        let before = self.slack.replies().len();
        assert_eq!(self.types(text, ADA, json!({})).await, 200, "{text}");
        let told = self.replied(before + 1).await;
        assert_eq!(told["user"], ADA, "{text}: {told:#}");
        told
    }

    /// Presses a button of an answer, which only whoever asked sees.
    async fn press_in_reply(&self, reply: &Value, button: &str, user: &str, how: Value) -> u16 {
        let mut how = how;
        how["answers_at"] = json!(self.slack.answers_at());
        self.press(reply, button, user, how).await
    }
}

async fn each_command_is_answered_to_whoever_typed_it_alone(url: String) {
    let site = Site::start(&url).await;
    site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    let finding = asked["metadata"]["event_payload"]["finding_id"].as_str().unwrap().to_owned();
    let (short, id) = (&plan[..12], &finding[..6]);
    for (text, shown) in [
        ("findings", vec!["1 finding is open: $", "align-7", "EC2 instance, m5.large", &finding]),
        (" FINDINGS ", vec!["1 finding is open: $"]),
        (&format!("explain {id}"), vec!["align-7 has been idle for", "Why we say so", "What could be done", &finding]),
        (&format!("explain {finding}"), vec!["align-7 has been idle for"]),
        ("explain f-0123456789ab", vec!["There is no such finding"]),
        ("plans", vec!["1 plan: $", "/h saved", short, "saves $", "nobody has answered"]),
        (&format!("approve {short}"), vec!["A plan would end the waste on align-7", "Stop it", "Are you sure?"]),
        ("approve 00000000", vec!["Nobody can approve that: there is no such plan."]),
        ("savings", vec!["What was saved", "Nothing was carried out yet", "Of all plans 0 were approved"]),
        ("help", vec!["/sweeper findings", "/sweeper explain ID", "/sweeper approve PLAN", "/sweeper savings"]),
        ("", vec!["What you can ask"]),
        ("deny everything", vec!["What you can ask"]),
        ("explain <!channel> *b* <https://evil.example|x>", vec!["What you can ask"]),
        ("approve ../../etc/passwd", vec!["What you can ask"]),
        (&format!("findings {}", "evil.example ".repeat(1_000)), vec!["What you can ask"]),
    ] {
        let told = site.tells(text).await;
        for shown in shown {
            assert!(words(&told).contains(shown), "`{shown}` is not what {text} shows: {told:#}");
        }
        assert!(!words(&told).contains("evil.example"), "what is typed is not shown again: {told:#}");
        assert_eq!(has_buttons_in(&told), text.starts_with("approve ") && text.ends_with(short), "{text}: {told:#}");
    }
    // Nothing of that was said to anybody else, or counts for anything.
    assert_eq!((site.slack.whispers(), site.slack.updates()), (Vec::new(), Vec::new()));
    assert_eq!(site.sweeper.json(&["plans"]).await[0]["answers"], json!([]));
    assert_eq!(site.sweeper.json(&["actions"]).await, json!([]));
    assert_eq!(site.dry_runs().await, 0);
    let log = site.sweeper.log();
    assert!(!log.contains("/commands/T0LAB1/"), "whoever has an address may answer there: {log}");
}

fn has_buttons_in(reply: &Value) -> bool {
    reply["blocks"].is_array() && has_buttons(reply)
}

async fn a_plan_that_was_asked_for_is_approved_by_its_button_alone(url: String) {
    let policy = "[[rule]]\nname = \"two\"\napprovers = [\"*\"]\nneeds = 2\n";
    let site = Site::start_with(&url, policy, SWITCHED_ON).await;
    site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    let shown = site.tells(&format!("approve {}", &plan[..8])).await;
    assert!(has_buttons(&shown), "{shown:#}");
    assert_eq!(site.press_in_reply(&shown, "approve", ADA, json!({})).await, 200);
    let told = site.replied(2).await;
    assert!(told["user"] == ADA && told["text"].as_str().unwrap().contains("More people must"), "{told:#}");
    site.shows(&asked, "ada said yes").await;
    let again = site.tells(&format!("approve {plan}")).await;
    assert_eq!(again["text"], "Nobody can approve that: you have said so already.");
    // Who pressed counts, whoever it was shown to.
    assert_eq!(site.press_in_reply(&shown, "approve", "U0EVE123", json!({})).await, 200);
    let told = site.replied(4).await;
    assert!(told["text"].as_str().unwrap().starts_with("That does not count: nobody has said whose"), "{told:#}");
    site.searched_twice().await;
    assert_eq!(site.dry_runs().await, 0, "one is not enough");
    assert_eq!(site.types(&format!("approve {plan}"), GRACE, json!({})).await, 200);
    let shown = site.replied(5).await;
    assert!(words(&shown).contains("ada said yes"), "{shown:#}");
    assert_eq!(site.press_in_reply(&shown, "approve", GRACE, json!({})).await, 200);
    assert!(site.replied(6).await["text"].as_str().unwrap().starts_with("You said yes. It is looked at once more"));
    let ended = site.ended(&plan).await;
    assert_eq!((&ended["state"], &ended["asked_by"]), (&json!("done"), &json!(["ada", "grace"])), "{ended:#}");
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
    assert!(!has_buttons(&site.shows(&asked, "grace said yes").await), "the record is the channel's message");
    assert!(site.slack.whispers().is_empty(), "where the app may not be it whispers nothing");
    let log = site.sweeper.json(&["audit"]).await;
    let ways: Vec<&Value> = log.as_array().unwrap().iter().filter(|entry| entry["did"] == "approved").collect();
    assert!(ways.len() == 2 && ways.iter().all(|entry| entry["way"] == "slack"), "{log:#}");
    site.sweeper.sweep().await;
    let savings = words(&site.tells("savings").await);
    for shown in [
        "Stop the idle m5.large instance",
        "(align-7)",
        "so far ",
        "approved by ada, grace",
        "Of all plans 1 were approved",
        &plan[..12],
    ] {
        assert!(savings.contains(shown), "`{shown}` is not in {savings}");
    }
}

async fn what_is_asked_for_can_be_left_alone_where_the_app_is_not_in_the_channel(url: String) {
    let site = Site::start(&url).await;
    site.links("ada", ADA).await;
    let plan = site.plan().await;
    let shown = site.tells(&format!("approve {plan}")).await;
    assert_eq!(site.press_in_reply(&shown, "never", ADA, json!({})).await, 200);
    let form = wait::until("a form", TIMEOUT, || async { site.slack.views().first().cloned() }).await;
    let values = json!({ "never": { "value": "the licence server" } });
    let filled = json!({ "secret": Slack::SECRET, "view": form, "values": values, "user": ADA });
    assert_eq!(Slack::press(&format!("{}/v1/slack/interactions", site.sweeper.url()), &filled).await, 200);
    let told = site.replied(2).await;
    assert!(told["text"].as_str().unwrap().starts_with("It is left alone for good."), "{told:#}");
    let told = site.tells(&format!("approve {plan}")).await;
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("Nobody can approve that: it is to be left alone: ") && text.contains("ada"), "{told:#}");
    assert_eq!(site.slack.whispers(), Vec::<Value>::new());
}

async fn whoever_may_not_ask_learns_nothing(url: String) {
    let site = Site::start(&url).await;
    site.links("grace", GRACE).await;
    let linked = site.run(&["approvers", "link", "grace", &format!("T0OTHER1/{GRACE}")]).await;
    assert_eq!(linked.code, 0, "{linked:?}");
    let plan = site.plan().await;
    let people = |grace: Value| site.slack.people(&json!({ GRACE: grace }));
    let approve = format!("approve {plan}");
    let mut replies = 0;
    for (who, how, grace, said) in [
        ("U0EVE123", json!({}), json!({}), "nobody has said whose account T0LAB1/U0EVE123 is"),
        // Whoever an administrator has linked by mistake is of another workspace all the same.
        (GRACE, json!({ "team": "T0OTHER1" }), json!({}), "people of another workspace decide about nothing here"),
        (GRACE, json!({}), json!({ "team_id": "T0OTHER1" }), "people of another workspace decide about nothing here"),
        (GRACE, json!({}), json!({ "is_stranger": true }), "people of another workspace"),
        (GRACE, json!({}), json!({ "is_restricted": true }), "guests decide about nothing"),
        (GRACE, json!({}), json!({ "is_bot": true }), "the account is a program's"),
        (GRACE, json!({}), json!({ "deleted": true }), "the account is deactivated"),
        (GRACE, json!({}), json!("error"), "Slack did not say whether you are a member"),
    ] {
        people(grace);
        for text in ["findings", "plans", "savings", "explain f-0", "help", "", &approve] {
            assert_eq!(site.types(text, who, how.clone()).await, 200, "{text} {said}");
            replies += 1;
            let told = site.replied(replies).await;
            let shown = told["text"].as_str().unwrap();
            assert!(shown.starts_with("That does not count: ") && shown.contains(said), "{text}: {told:#}");
            assert!(told["user"] == who && told["blocks"].is_null(), "{told:#}");
        }
    }
    assert_eq!((site.slack.whispers(), site.slack.updates()), (Vec::new(), Vec::new()));
}

async fn what_slack_has_not_signed_just_now_is_not_answered(url: String) {
    let site = Site::start(&url).await;
    site.links("ada", ADA).await;
    let now = jiff::Timestamp::now().as_second();
    for how in [
        json!({ "secret": "0".repeat(32) }),
        json!({ "signature": "v0=00" }),
        json!({ "at": now - 301 }),
        json!({ "at": now + 3_600 }),
    ] {
        assert_eq!(site.types("findings", ADA, how.clone()).await, 401, "{how}");
    }
    assert_eq!(site.types(&"x".repeat(300_000), ADA, json!({})).await, 413);
    for how in [
        json!({ "command": "/other" }),
        json!({ "response_url": "no address" }),
        json!({ "body": "command=%2Fsweeper&text=findings" }),
    ] {
        assert_eq!(site.types("findings", ADA, how.clone()).await, 400, "{how}");
    }
    // Signed well, and answers are not sent elsewhere: an address of this very host, too.
    for elsewhere in [site.sweeper.url() + "/v1/scopes", "http://169.254.169.254/latest/meta-data".to_owned()] {
        assert_eq!(site.types("findings", ADA, json!({ "response_url": elsewhere })).await, 200);
    }
    wait::until("two warnings", TIMEOUT, || async {
        let log = site.sweeper.log();
        (log.matches("the address to answer to is not one of Slack's").count() == 2).then_some(())
    })
    .await;
    assert_eq!(site.slack.replies(), Vec::<Value>::new());
    // Who has recorded a request may send it again for five minutes: whoever typed it is told again, and nobody else.
    assert_eq!(site.types("findings", ADA, json!({ "times": 3 })).await, 200);
    assert_eq!(site.replied(3).await["user"], ADA);
}

async fn commands_over_sockets_are_answered_all_the_same(url: String) {
    let site = Site::start_hearing(&url, ANYBODY, SWITCHED_ON, Hears::Sockets).await;
    site.links("ada", ADA).await;
    let plan = site.plan().await;
    let acknowledged = async |text: &str, user: &str| {
        let typed = typed(&site, text, user, json!({}));
        wait::until("a socket", TIMEOUT, || site.slack.press_over_a_socket(&typed)).await
    };
    assert!(acknowledged("findings", "U0EVE123").await);
    let told = site.replied(1).await;
    assert!(told["text"].as_str().unwrap().starts_with("That does not count: nobody has said whose"), "{told:#}");
    assert!(acknowledged("findings", ADA).await);
    assert!(words(&site.replied(2).await).contains("1 finding is open: $"));
    assert!(acknowledged(&format!("approve {plan}"), ADA).await);
    let shown = site.replied(3).await;
    let at = site.slack.answers_at();
    let press = json!({ "message": shown, "action_id": "approve", "user": ADA, "answers_at": at });
    assert_eq!(site.slack.press_over_a_socket(&press).await, Some(true));
    assert!(site.replied(4).await["text"].as_str().unwrap().starts_with("You said yes."));
    assert_eq!(site.ended(&plan).await["state"], "done");
    assert_eq!(site.types("findings", ADA, json!({})).await, 404, "Slack sends no requests");
}

async fn of_three_hundred_the_dearest_are_shown_and_the_others_counted(url: String) {
    let site = Site::start(&url).await;
    site.links("ada", ADA).await;
    // The same finding with its plan 299 times more, each a little cheaper; the dearest has a name that would be a mention.
    let columns = "class, since_unix_ms, opened_unix_ms, confirmed_unix_ms, confirmed_sweeps, plan";
    for number in 1..300 {
        site.change(&format!(
            "INSERT INTO findings (id, resource, open_key, cost_micro_usd_per_hour, evidence, {columns}) \
             SELECT 'f-{number:012x}', resource || '{number}', open_key || '{number}', cost_micro_usd_per_hour - {number}, \
             REPLACE(evidence, 'align-7', 'align-{number}-<!channel>*'), {columns} FROM findings WHERE open_key LIKE '%{}' AND id NOT LIKE 'f-000000000%'",
            site.machine
        ))
        .await;
    }
    site.change("UPDATE findings SET cost_micro_usd_per_hour = 9000000 WHERE id = 'f-000000000007'").await;
    for (text, headline) in [("findings", "300 findings are open: $"), ("plans", "300 plans: $")] {
        let told = site.tells(text).await;
        let blocks = told["blocks"].as_array().unwrap();
        let lists = blocks.iter().filter(|block| block["type"] == "rich_text");
        let lines: Vec<&Value> = lists.flat_map(|block| block["elements"][0]["elements"].as_array().unwrap()).collect();
        assert!(told["text"].as_str().unwrap().starts_with(headline), "{told:#}");
        assert_eq!(lines.len(), 20, "{told:#}");
        let left_out = format!("*and 280 more:* `sweeper {text}` in the shell");
        assert!(words(&told).contains(&left_out), "{told:#}");
        if text == "findings" {
            assert_eq!(lines[0]["elements"][0]["text"], "align-7-<!channel>*", "literal text, and the dearest first");
        }
    }
}
