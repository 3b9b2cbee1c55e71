//! Where Slack reaches nothing of ours, what is pressed comes over sockets that the sweeper opens, encrypted, and counts all the same.

use crate::{
    site::{ANYBODY, SWITCHED_ON, Site, TIMEOUT},
    slack::{ADA, GRACE},
};
use lab::{
    slack::{Hears, Slack},
    wait,
};
use serde_json::{Value, json};

lab::on_both_databases! {
    two_people_press_over_sockets_and_one_that_is_replaced_or_breaks_costs_nothing,
    what_is_not_written_is_not_acknowledged,
}

impl Site {
    /// Presses *Stop it* over a socket, once one is open; whether that was acknowledged.
    async fn press_over_a_socket(&self, message: &Value, user: &str) -> bool {
        let press = json!({ "message": message, "action_id": "approve", "user": user });
        wait::until("a socket", TIMEOUT, || self.slack.press_over_a_socket(&press)).await
    }

    /// Waits until both sockets are open, and ends them.
    async fn drop_sockets(&self, is_asked: bool) {
        let before = self.greeted();
        wait::until("two sockets", TIMEOUT, || async { (self.slack.drop_sockets(is_asked).await == 2).then_some(()) })
            .await;
        wait::until("two sockets more", TIMEOUT, || async { (self.greeted() >= before + 2).then_some(()) }).await;
    }

    fn greeted(&self) -> usize {
        self.sweeper.log().matches("Slack says over a socket what is pressed").count()
    }
}

async fn two_people_press_over_sockets_and_one_that_is_replaced_or_breaks_costs_nothing(url: String) {
    let policy = "[[rule]]\nname = \"two\"\napprovers = [\"*\"]\nneeds = 2\n";
    let site = Site::start_hearing(&url, policy, SWITCHED_ON, Hears::Sockets).await;
    site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    // Slack sends no requests: whoever does is told that there is nothing.
    let press = json!({ "secret": Slack::SECRET, "message": asked, "action_id": "approve", "user": ADA });
    let interactions = format!("{}/v1/slack/interactions", site.sweeper.url());
    assert_eq!(Slack::press(&interactions, &press).await, 404);
    assert!(site.press_over_a_socket(&asked, "U0EVE123").await, "it is understood, and does not count");
    assert!(site.whispered(1).await["text"].as_str().unwrap().starts_with("That does not count: nobody has said"));
    assert!(site.press_over_a_socket(&asked, ADA).await);
    assert!(site.whispered(2).await["text"].as_str().unwrap().contains("More people must"));
    // Slack replaces each socket every few hours.
    site.drop_sockets(true).await;
    assert!(site.press_over_a_socket(&asked, ADA).await);
    assert!(
        site.whispered(3).await["text"].as_str().unwrap().starts_with("That does not count:"),
        "two are not one twice"
    );
    site.drop_sockets(false).await;
    assert!(site.press_over_a_socket(&asked, GRACE).await);
    let ended = site.ended(&plan).await;
    assert_eq!((&ended["state"], &ended["asked_by"]), (&json!("done"), &json!(["ada", "grace"])), "{ended:#}");
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
    site.shows(&asked, "grace said yes").await;
    let log = site.sweeper.log();
    assert!(!log.contains("ticket=") && !log.contains(Slack::APP_TOKEN), "{log}");
}

async fn what_is_not_written_is_not_acknowledged(url: String) {
    let site = Site::start_hearing(&url, ANYBODY, SWITCHED_ON, Hears::Sockets).await;
    site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    site.change("ALTER TABLE approvals RENAME TO away").await;
    assert!(!site.press_over_a_socket(&asked, ADA).await, "Slack tells whoever pressed that it did not work");
    wait::until("the answer to be left", TIMEOUT, || async {
        site.sweeper.log().contains("an answer in Slack was not written").then_some(())
    })
    .await;
    assert_eq!((site.slack.whispers(), site.called("StopInstances").await.len()), (Vec::new(), 0));
    site.change("ALTER TABLE away RENAME TO approvals").await;
    assert!(site.press_over_a_socket(&asked, ADA).await);
    assert!(site.whispered(1).await["text"].as_str().unwrap().starts_with("You said yes."));
    assert_eq!(site.ended(&plan).await["state"], "done");
}
