//! What somebody wants left alone, for now or for good, is: no plan, no message and no action until then.

use crate::{
    site::{ANYBODY, SWITCHED_ON, Says, Site, TIMEOUT},
    slack::{ADA, GRACE},
};
use lab::{
    slack::{Hears, Slack, has_buttons},
    wait,
};
use serde_json::{Value, json};
use std::path::Path;

lab::on_both_databases! {
    not_now_by_a_tap_ends_by_itself_and_then_it_is_told_again,
    never_asks_why_and_holds_until_somebody_lifts_it,
    what_is_approved_and_then_left_alone_is_not_carried_out,
    what_somebody_says_no_to_is_left_alone_for_as_long_as_the_policy_says,
}

fn sqlite(folder: &Path) -> String {
    format!("sqlite://{}?mode=rwc", folder.join("sweeper.db").display())
}

impl Site {
    /// Chooses from the list of *Not now*.
    async fn not_now(&self, message: &Value, option: &str, user: &str) {
        assert_eq!(self.press(message, "not_now", user, json!({ "option": option })).await, 200);
    }

    /// The form that was opened last, once there are so many.
    async fn form(&self, count: usize) -> Value {
        wait::until("a form", TIMEOUT, || async {
            let forms = self.slack.views();
            (forms.len() == count).then(|| forms[count - 1].clone())
        })
        .await
    }

    /// Fills a form in.
    async fn fill_in(&self, form: &Value, values: Value, user: &str) {
        let filled = json!({ "secret": Slack::SECRET, "view": form, "values": values, "user": user });
        let url = format!("{}/v1/slack/interactions", self.sweeper.url());
        assert_eq!(Slack::press(&url, &filled).await, 200);
    }

    /// The only exemption that holds.
    async fn exemption(&self) -> Value {
        let all = self.sweeper.json(&["exemptions"]).await;
        let [one] = all.as_array().unwrap().as_slice() else { panic!("{all:#}") };
        one.clone()
    }

    /// Two sweeps plan nothing and tell nobody.
    async fn is_left_alone(&self) {
        let before = self.slack.messages().len();
        for _ in 0..2 {
            self.sweeper.sweep().await;
            assert_eq!(self.sweeper.json(&["plans"]).await, json!([]));
        }
        let findings = self.sweeper.json(&["findings"]).await;
        let why = findings[0]["no_plan_because"].as_str().unwrap_or_default().to_owned();
        assert!(why.starts_with("ada said "), "it is found still, and says why nothing is planned: {findings:#}");
        assert_eq!(self.slack.messages().len(), before);
    }

    /// A sweep plans it again, and people are asked again.
    async fn is_asked_again(&self, before: &str) -> (String, Value) {
        self.sweeper.sweep().await;
        let plan = self.plan().await;
        assert_ne!(plan, before, "what was said of the plan before is none to this one");
        let asked = self.hears(&plan).await;
        assert!(has_buttons(&asked), "{asked:#}");
        (plan, asked)
    }
}

async fn not_now_by_a_tap_ends_by_itself_and_then_it_is_told_again(url: String) {
    let site = Site::start(&url).await;
    let token = site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    // A stranger's word counts for nothing here, either.
    site.not_now(&asked, "For an hour", "U0EVE123").await;
    assert!(site.whispered(1).await["text"].as_str().unwrap().starts_with("That does not count: nobody has said"));
    site.not_now(&asked, "For an hour", ADA).await;
    let told = site.whispered(2).await["text"].as_str().unwrap().to_owned();
    let exemption = site.exemption().await;
    let id = exemption["id"].as_str().unwrap();
    assert!(told.starts_with("It is left alone until ") && told.contains(" CET. ") && told.contains(id), "{told}");
    let time = |field: &str| exemption[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let length = time("until").duration_since(time("at")).as_secs();
    assert!((3_570..=3_630).contains(&length), "an hour, to the minute: {length} s");
    assert_eq!([&exemption["class"], &exemption["approver"], &exemption["way"]], ["idle_node", "ada", "slack"]);
    let shown = site.shows(&asked, "ada said not before ").await;
    assert!(!has_buttons(&shown), "nobody is asked any more: {shown:#}");
    // The plan is nobody's any more, whoever approves it.
    let refused = site.run(&["approve", &plan, "--token-file", token.to_str().unwrap()]).await;
    assert!(refused.code == 1 && refused.error.contains("it is to be left alone: ada said not before"), "{refused:?}");
    site.is_left_alone().await;
    let log = site.sweeper.json(&["audit"]).await;
    let entry = log.as_array().unwrap().iter().find(|entry| entry["did"] == "snoozed").unwrap();
    assert_eq!([&entry["who"], &entry["way"], &entry["detail"]["exemption"]], ["ada", "slack", id], "{entry:#}");
    // Its time is over.
    site.change("UPDATE exemptions SET until_unix_ms = at_unix_ms + 1").await;
    assert_eq!(site.sweeper.json(&["exemptions"]).await, json!([]));
    let (plan, asked) = site.is_asked_again(&plan).await;
    assert_eq!(site.press(&asked, "approve", ADA, json!({})).await, 200);
    assert_eq!(site.ended(&plan).await["state"], "done");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

async fn never_asks_why_and_holds_until_somebody_lifts_it(url: String) {
    let site = Site::start(&url).await;
    let token = site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    // Who is nobody here is asked nothing.
    assert_eq!(site.press(&asked, "never", "U0EVE123", json!({})).await, 200);
    site.whispered(1).await;
    assert_eq!(site.press(&asked, "never", ADA, json!({})).await, 200);
    let form = site.form(1).await;
    assert_eq!([&form["callback_id"], &form["title"]["text"]], ["never", "Leave it alone"], "{form:#}");
    // A form proves nothing of who fills it in.
    site.fill_in(&form, json!({ "never": { "value": "mine" } }), "U0EVE123").await;
    assert!(site.whispered(2).await["text"].as_str().unwrap().starts_with("That does not count: nobody has said"));
    assert_eq!(site.sweeper.json(&["exemptions"]).await, json!([]));
    let because = "the licence server <!channel>";
    site.fill_in(&form, json!({ "never": { "value": because } }), ADA).await;
    assert!(site.whispered(3).await["text"].as_str().unwrap().starts_with("It is left alone for good."));
    let shown = site.shows(&asked, "ada said never").await;
    assert!(!has_buttons(&shown) && shown.to_string().contains(because), "literal text: {shown:#}");
    let exemption = site.exemption().await;
    assert_eq!([&exemption["until"], &exemption["because"]], [&Value::Null, &json!(because)]);
    site.is_left_alone().await;
    // Filled in once more, as whoever has recorded it would send it.
    site.fill_in(&form, json!({ "never": { "value": because } }), ADA).await;
    assert!(site.whispered(4).await["text"].as_str().unwrap().contains("you have said so already"));
    let id = exemption["id"].as_str().unwrap();
    let lifted = site.run(&["exemptions", "lift", id, "--token-file", token.to_str().unwrap()]).await;
    assert!(lifted.code == 0 && lifted.said.ends_with("is not left alone any more.\n"), "{lifted:?}");
    let again = site.run(&["exemptions", "lift", id, "--token-file", token.to_str().unwrap()]).await;
    assert!(again.code == 1 && again.error.contains(&format!("no exemption {id} holds")), "{again:?}");
    let all = site.run(&["exemptions", "--ended"]).await.said;
    assert!(all.contains(id) && all.contains("lifted by ada"), "{all}");
    site.is_asked_again(&plan).await;
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

// What a form says is told to the database as a tap is: one will do.
#[tokio::test]
async fn another_time_is_asked_for_in_a_form() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&sqlite(folder.path())).await;
    site.links("ada", ADA).await;
    let asked = site.asks().await;
    site.not_now(&asked, "Another time …", ADA).await;
    let form = site.form(1).await;
    let until = |second: i64| json!({ "until": { "selected_date_time": second } });
    let now = jiff::Timestamp::now().as_second();
    let refused = [(now - 60, "name a time that is to come"), (now + 370 * 86_400, "more than a year from now")];
    for (number, (second, words)) in refused.into_iter().enumerate() {
        site.fill_in(&form, until(second), ADA).await;
        let told = site.whispered(number + 1).await;
        assert!(told["text"].as_str().unwrap().contains(words), "{told:#}");
        assert_eq!(site.sweeper.json(&["exemptions"]).await, json!([]));
    }
    site.fill_in(&form, until(now + 3 * 86_400), ADA).await;
    assert!(site.whispered(3).await["text"].as_str().unwrap().starts_with("It is left alone until "));
    let ends = site.exemption().await["until"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(ends.as_second(), now + 3 * 86_400);
}

async fn what_is_approved_and_then_left_alone_is_not_carried_out(url: String) {
    let site = Site::start(&url).await;
    let (ada, grace) = (site.links("ada", ADA).await, site.links("grace", GRACE).await);
    let grace = grace.to_str().unwrap();
    let key = format!("aws:{}:{}:{}", lab::aws::ACCOUNT, crate::site::REGION, site.machine);
    for (way, words) in [
        (&["exempt", &key, "--because", "a pet"][..], "grace wants it left alone for good"),
        (&["snooze", &key, "--for", "2h"][..], "grace wants it left alone until "),
    ] {
        let plan = site.plan().await;
        // It cannot be decided until the node has spoken.
        site.node_says(Says::Nothing);
        site.approve(&plan, &ada).await;
        site.action(&plan, "do", &["asking"]).await;
        let said = site.run(&[way, &["--token-file", grace]].concat()).await;
        assert!(said.code == 0 && said.said.contains(" is left alone until "), "{said:?}");
        site.node_says(Says::Quiet);
        let ended = site.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        let id = site.exemption().await["id"].as_str().unwrap().to_owned();
        assert_eq!(site.run(&["exemptions", "lift", &id, "--token-file", grace]).await.code, 0);
        site.sweeper.sweep().await;
    }
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
}

#[tokio::test]
async fn a_form_over_a_socket_counts_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite(folder.path());
    let site = Site::start_hearing(&url, ANYBODY, SWITCHED_ON, Hears::Sockets).await;
    site.links("ada", ADA).await;
    let asked = site.asks().await;
    let press = |press: Value| async {
        let press = press;
        wait::until("a socket", TIMEOUT, || site.slack.press_over_a_socket(&press)).await
    };
    assert!(press(json!({ "message": asked, "action_id": "never", "user": ADA })).await);
    let form = site.form(1).await;
    let values = json!({ "never": { "value": "a pet" } });
    assert!(press(json!({ "view": form, "values": values, "user": ADA })).await);
    site.shows(&asked, "ada said never").await;
    assert_eq!(site.exemption().await["because"], "a pet");
}

async fn what_somebody_says_no_to_is_left_alone_for_as_long_as_the_policy_says(url: String) {
    let site = Site::start_with(&url, &format!("snooze_after_no_days = 14\n{ANYBODY}"), SWITCHED_ON).await;
    let token = site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    let token = token.to_str().unwrap();
    let denied = site.run(&["deny", &plan, "--because", "a demo on Monday", "--token-file", token]).await;
    assert!(denied.code == 0 && denied.said.contains("It is left alone until "), "{denied:?}");
    let exemption = site.exemption().await;
    let time = |field: &str| exemption[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("until").duration_since(time("at")).as_hours(), 14 * 24, "{exemption:#}");
    assert_eq!([&exemption["class"], &exemption["approver"], &exemption["way"]], ["idle_node", "ada", "shell"]);
    let because = format!("after a no to the plan {} (a demo on Monday), for 14 days by the policy", &plan[..12]);
    assert_eq!(exemption["because"], because);
    let shown = site.shows(&asked, &because).await;
    assert!(!has_buttons(&shown) && shown.to_string().contains("ada said no"), "{shown:#}");
    site.is_left_alone().await;
    let id = exemption["id"].as_str().unwrap();
    assert_eq!(site.run(&["exemptions", "lift", id, "--token-file", token]).await.code, 0);
    site.is_asked_again(&plan).await;
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    // More than a year is no policy, and lets nobody.
    let file = site.folder.path().join("policy.toml");
    std::fs::write(&file, format!("snooze_after_no_days = 366\n{ANYBODY}")).unwrap();
    let checked = site.run(&["policy", "check", file.to_str().unwrap()]).await;
    assert!(
        checked.code != 0 && checked.error.contains("`snooze_after_no_days` is 366, and 365 at most"),
        "{checked:?}"
    );
}
