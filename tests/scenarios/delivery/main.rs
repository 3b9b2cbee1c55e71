//! Delivery: a finding reaches people by email and in Slack, once each, whatever happens in between.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bundles;
mod fleet;
mod refusals;
mod routes;
mod updates;

use jiff::Timestamp;
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    quiet,
    slack::{self, Slack},
    smtp::{self, Smtp},
    sweeper::Sweeper,
    wait,
};
use mail_parser::MessageParser;
use std::{path::Path, time::Duration};
use tempfile::TempDir;

const REGION: &str = "eu-central-1";
/// Longest wait for a message; it takes a second on an idle machine.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// A sweeper with a mail server and a Slack of its own.
struct Stage {
    sweeper: Sweeper,
    smtp: Smtp,
    slack: Slack,
    _folder: TempDir,
}

impl Stage {
    async fn set() -> Self {
        Self::with("enabled = \"no\"", 1, &[]).await
    }

    /// With these settings of `[aws]`, plans after so many sweeps, and this in the environment.
    async fn with(aws: &str, sweeps: u32, environment: &[(&str, &str)]) -> Self {
        let (smtp, slack) = (Smtp::start().await, Slack::start_https().await);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = format!(
            r#"
            [aws]
            {aws}
            [pricing]
            source = "none"
            [onprem]
            hourly_usd = {{ default = "0.25" }}
            [sweep]
            schedule = "0 0 0 1 1 *"
            plan_after_sweeps = {sweeps}
            [slack]
            token = "{token}"
            channel = "{channel}"
            api_url = "{api_url}"
            [email]
            host = "{host}"
            port = {port}
            username = "{username}"
            password = "{password}"
            from = "sweeper@example.org"
            to = ["ops@example.org"]
            tls = "starttls"
            ca_file = "{ca_file}"
            [outbox]
            base_delay = "200ms"
            max_delay = "1s"
            "#,
            token = Slack::TOKEN,
            channel = Slack::CHANNEL,
            api_url = slack.api_url(),
            host = smtp.host(),
            port = smtp.port(),
            username = Smtp::USERNAME,
            password = Smtp::PASSWORD,
            ca_file = smtp.ca_file().display(),
        );
        // Slack's certificate is checked against the system's roots; here, the stand-in's authority is the system's.
        let roots = slack.ca_file().display().to_string();
        let environment = [environment, &[("SSL_CERT_FILE", &roots)]].concat();
        let sweeper = Sweeper::start(folder.path(), &config, &environment).await;
        // It catches up with the tick that nobody served for, once: what is reported while that goes on would be found by it, and not when a scenario sweeps.
        wait::until("the sweep that it begins with", DELIVERY_TIMEOUT, || async {
            sweeper.log().contains("swept scope=nodes that no scope covers").then_some(())
        })
        .await;
        Self { sweeper, smtp, slack, _folder: folder }
    }

    async fn sweep(&self) -> serde_json::Value {
        self.sweeper.json(&["sweep"]).await
    }

    /// Waits until each channel has taken `count` messages.
    async fn delivered(&self, count: usize) {
        wait::until(&format!("{count} messages on each channel"), DELIVERY_TIMEOUT, || async {
            (self.smtp.delivered().len() >= count && self.slack.messages().len() >= count).then_some(())
        })
        .await;
        assert_eq!((self.smtp.delivered().len(), self.slack.messages().len()), (count, count));
    }

    /// Subjects of the emails, in order of arrival.
    fn subjects(&self) -> Vec<String> {
        let parse = |raw: &Vec<u8>| {
            let mail = MessageParser::default().parse(raw).expect("a message");
            mail.subject().expect("a subject").to_owned()
        };
        self.smtp.delivered().iter().map(parse).collect()
    }
}

#[tokio::test]
async fn a_finding_is_told_once_on_each_channel() {
    let stage = Stage::set().await;
    let resource = quiet::report(&stage.sweeper, "quiet-1").await;
    stage.sweep().await;
    stage.delivered(1).await;

    let raw = stage.smtp.delivered().remove(0);
    let mail = MessageParser::default().parse(&raw).expect("a message");
    assert_eq!(mail.subject(), Some("[Cloud Sweeper] quiet-1 has been idle for 1 h, at $0.25/h"));
    let (text, html) = (mail.body_text(0).expect("a text"), mail.body_html(0).expect("an HTML part"));
    let post = stage.slack.messages().remove(0);
    let said = post.to_string();
    for part in [resource.as_str(), "quiet-1", "$0.25/h", "sweeper explain "] {
        assert!(text.contains(part) && html.contains(part) && said.contains(part), "{part}:\n{text}\n{html}\n{said}");
    }
    // The command in the message works as it is written.
    let command = text.lines().find(|line| line.trim().starts_with("sweeper explain ")).expect("a command");
    let explained = stage.sweeper.run(&command.split_whitespace().skip(1).collect::<Vec<_>>()).await;
    let explanation = String::from_utf8_lossy(&explained.stdout);
    assert!(explained.status.success() && explanation.contains("quiet-1"), "{explained:?}");

    // A repeated sweep sends nothing. The second machine is the proof that the outbox was emptied since.
    stage.sweep().await;
    stage.sweep().await;
    quiet::report(&stage.sweeper, "quiet-2").await;
    stage.sweep().await;
    stage.delivered(2).await;
    assert_eq!(stage.subjects().iter().filter(|subject| subject.contains("quiet-1")).count(), 1);
    assert_eq!(stage.smtp.attempts(), 2);
    assert_eq!(stage.slack.requests().len(), 2);
}

#[tokio::test]
async fn servers_that_are_down_lose_nothing() {
    let mut stage = Stage::set().await;
    stage.smtp.stop();
    stage.slack.stop();
    for name in ["quiet-1", "quiet-2", "quiet-3"] {
        quiet::report(&stage.sweeper, name).await;
    }
    stage.sweep().await;
    // Not even the sweeper's own exit in the meantime.
    stage.sweeper.kill();
    stage.sweeper.start_again().await;
    stage.sweep().await;
    stage.smtp.start_again().await;
    stage.slack.start_again().await;
    stage.delivered(1).await;
    let (post, mail) = (stage.slack.messages().remove(0).to_string(), stage.smtp.delivered().remove(0));
    let mail = MessageParser::default().parse(&mail).expect("a message");
    let mail = mail.body_text(0).expect("a text");
    for name in ["quiet-1", "quiet-2", "quiet-3"] {
        assert!(post.contains(name) && mail.contains(name), "{name}:\n{mail}\n{post}");
    }
}

#[tokio::test]
async fn servers_that_refuse_for_a_while_are_asked_again_no_sooner_than_they_wish() {
    let stage = Stage::set().await;
    stage.smtp.fail_next(&[smtp::Fault::Reply("451 4.3.0 try again later"); 2]);
    stage.slack.fail_next(&[slack::Fault::RateLimited(3), slack::Fault::Status(503)]);
    quiet::report(&stage.sweeper, "quiet-1").await;
    quiet::report(&stage.sweeper, "quiet-2").await;
    stage.sweep().await;
    stage.delivered(1).await;
    assert_eq!(stage.smtp.attempts(), 3);
    let at: Vec<_> = stage.slack.requests().iter().map(|request| request["at"].as_f64().expect("a time")).collect();
    assert_eq!(at.len(), 3);
    assert!(at[1] - at[0] >= 3.0, "the channel was asked again after {} s instead of 3", at[1] - at[0]);
}

/// An idle EC2 instance, whose plan is made after so many sweeps.
async fn planned(folder: &Path, sweeps: u32) -> (Moto, Stage, String) {
    let moto = Moto::start(folder).await;
    let instance = moto.run(REGION, &[Instance::named("m5.large", "quiet-1")]).await.remove(0);
    let environment = moto.environment();
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let stage = Stage::with(&format!("enabled = \"yes\"\nregions = [\"{REGION}\"]"), sweeps, &environment).await;
    // From now on every scope is swept for the schedule's last tick, so that the service itself sweeps none meanwhile.
    stage.sweep().await;
    quiet::report_as(&stage.sweeper, &format!("aws:{ACCOUNT}:{REGION}:{instance}"), "quiet-1", |_| {}).await;
    (moto, stage, instance)
}

/// The plan is withdrawn while the instance is exempt, and made anew afterwards.
async fn withdraw_and_make_anew(moto: &Moto, stage: &Stage, instance: &str) {
    for (exempt, is_planned) in [("true", false), ("false", true)] {
        let tag = ("cloud-sweeper:exempt".to_owned(), exempt.to_owned());
        let change = Instance { tags: [tag].into(), ..Instance::default() };
        moto.change_in(ACCOUNT, REGION, instance, &change).await;
        assert_eq!(stage.sweep().await["findings"][0]["plan"].is_string(), is_planned);
    }
}

#[tokio::test]
async fn a_plan_that_the_first_message_has_is_told_no_second_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (moto, stage, instance) = planned(folder.path(), 1).await;
    stage.sweep().await;
    stage.delivered(1).await;
    assert!(stage.slack.messages()[0].to_string().contains("What could be done"));
    withdraw_and_make_anew(&moto, &stage, &instance).await;
    assert_eq!(stage.sweeper.json(&["messages"]).await.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_reply_that_slack_takes_in_no_thread_stands_by_itself_and_begins_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_moto, stage, _) = planned(folder.path(), 2).await;
    stage.sweep().await;
    stage.delivered(1).await;
    stage.slack.fail_next(&[slack::Fault::Error("restricted_action_thread_locked")]);
    stage.sweep().await;
    stage.delivered(2).await;
    let posts = stage.slack.messages();
    assert!(posts[1]["thread_ts"].is_null() && posts[1].to_string().contains("A plan would end"), "{}", posts[1]);
    let messages = stage.sweeper.json(&["messages"]).await;
    let of = |channel: &str| {
        let plan = messages.as_array().expect("a list").iter().find(|message| message["channel"] == channel);
        plan.expect("a message")["answers"].is_null()
    };
    assert_eq!((of("slack"), of("email")), (true, false));
}

#[tokio::test]
async fn a_channel_is_paused_as_a_whole_and_for_an_hour_at_most() {
    let stage = Stage::set().await;
    stage.slack.fail_next(&[slack::Fault::RateLimited(31_536_000_000)]);
    quiet::report(&stage.sweeper, "quiet-1").await;
    stage.sweep().await;
    let pending = async || {
        let pending = stage.sweeper.json(&["messages", "--state", "pending"]).await;
        pending.as_array().expect("a list").clone()
    };
    let refused = wait::until("a refused message", DELIVERY_TIMEOUT, || async {
        pending().await.into_iter().find(|message| message["attempts"] == 1)
    })
    .await;
    let next: Timestamp = refused["next_attempt_at"].as_str().expect("a time").parse().expect("a time");
    let wait = next.duration_since(Timestamp::now());
    assert!((3_500..3_700).contains(&wait.as_secs()), "{wait:#}");
    // What is written during the pause waits, too; the other channel is none of its business.
    quiet::report(&stage.sweeper, "quiet-2").await;
    stage.sweep().await;
    wait::until("two mails", DELIVERY_TIMEOUT, || async { (stage.smtp.delivered().len() == 2).then_some(()) }).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((stage.slack.requests().len(), pending().await.len()), (1, 2));
}

fn header(mail: &[u8], name: &str) -> Option<String> {
    let mail = MessageParser::default().parse(mail).expect("a message");
    mail.header_raw(name).map(|value| value.trim().to_owned())
}

#[tokio::test]
async fn a_plan_is_told_once_in_the_thread_of_its_finding() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (moto, stage, instance) = planned(folder.path(), 2).await;
    let finding = stage.sweep().await["opened"][0].as_str().expect("a finding").to_owned();
    stage.delivered(1).await;
    stage.sweep().await;
    stage.delivered(2).await;

    let posts = stage.slack.messages();
    assert_eq!((&posts[1]["thread_ts"], &posts[1]["reply_broadcast"]), (&posts[0]["ts"], &true.into()));
    assert!(!posts[0].to_string().contains("What could be done"), "{}", posts[0]);
    let said = posts[1].to_string();
    for part in ["A plan would end the waste on quiet-1", "What could be done", "Stop the idle m5.large instance"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    let mails = stage.smtp.delivered();
    let id = header(&mails[0], "Message-ID").expect("an id");
    assert_eq!((header(&mails[0], "In-Reply-To"), header(&mails[0], "References")), (None, None));
    assert_eq!(header(&mails[1], "In-Reply-To").as_ref(), Some(&id));
    assert_eq!(header(&mails[1], "References").as_ref(), Some(&id));
    assert_ne!(header(&mails[1], "Message-ID").as_ref(), Some(&id));
    assert!(stage.subjects()[1].contains("A plan would end the waste on quiet-1"), "{:?}", stage.subjects());

    // Withdrawn and made again within a day: that is no news.
    withdraw_and_make_anew(&moto, &stage, &instance).await;
    let messages = stage.sweeper.json(&["messages"]).await;
    let messages = messages.as_array().expect("a list");
    assert_eq!(messages.len(), 4, "{messages:#?}");
    for (message, answers) in messages.iter().zip([Some(&finding), Some(&finding), None, None]) {
        assert_eq!((&message["state"], message["answers"].as_str()), (&"sent".into(), answers.map(String::as_str)));
        assert_eq!(message["finding"], finding.as_str());
        let receipt = message["receipt"].as_str().expect("a receipt");
        let is_named = match message["channel"].as_str() {
            Some("email") => mails.iter().any(|mail| header(mail, "Message-ID").as_deref() == Some(receipt)),
            _ => posts.iter().any(|post| receipt.ends_with(&format!("/{}", post["ts"].as_str().expect("a name")))),
        };
        assert!(is_named, "{message:#}");
    }
    assert_eq!(stage.sweeper.replays().await.1, 2, "the plan was made twice");
}

#[tokio::test]
async fn a_message_waits_for_the_one_that_it_answers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_moto, mut stage, _) = planned(folder.path(), 2).await;
    stage.smtp.stop();
    stage.slack.stop();
    stage.sweep().await;
    stage.sweep().await;
    stage.smtp.start_again().await;
    stage.slack.start_again().await;
    stage.delivered(2).await;
    let posts = stage.slack.messages();
    assert_eq!(posts[1]["thread_ts"], posts[0]["ts"]);
    let mails = stage.smtp.delivered();
    assert_eq!(header(&mails[1], "In-Reply-To"), header(&mails[0], "Message-ID"));
}

#[tokio::test]
async fn what_was_discarded_is_listed_with_its_reason_and_tried_again_on_request() {
    let stage = Stage::set().await;
    stage.slack.fail_next(&[slack::Fault::Error("is_archived")]);
    quiet::report(&stage.sweeper, "quiet-1").await;
    let finding = stage.sweep().await["opened"][0].as_str().expect("a finding").to_owned();
    let failed =
        async || stage.sweeper.json(&["messages", "--state", "failed"]).await.as_array().expect("a list").clone();
    let discarded = wait::until("a discarded message", DELIVERY_TIMEOUT, || async { failed().await.pop() }).await;
    assert_eq!((&discarded["event"], &discarded["channel"]), (&finding.as_str().into(), &"slack".into()));
    let table = stage.sweeper.run(&["messages"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    for part in
        ["discarded after 1 ×: Slack refused the message", "Unarchive the channel", "sent at ", "quiet-1 has been idle"]
    {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
    assert_eq!(stage.sweeper.json(&["messages", "retry", "f-other"]).await["requeued"], 0);
    assert_eq!(stage.sweeper.json(&["messages", "retry", &finding]).await["requeued"], 1);
    stage.delivered(1).await;
    assert_eq!(failed().await, Vec::<serde_json::Value>::new());
    assert_eq!(stage.sweeper.json(&["messages", "retry"]).await["requeued"], 0, "what was sent is not sent again");
}

#[tokio::test]
async fn what_is_about_an_ended_finding_is_tried_again_only_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (moto, stage, instance) = planned(folder.path(), 2).await;
    stage.slack.fail_next(&[slack::Fault::Error("is_archived")]);
    let finding = stage.sweep().await["opened"][0].as_str().expect("a finding").to_owned();
    wait::until("a discarded message", DELIVERY_TIMEOUT, || async {
        let failed = stage.sweeper.json(&["messages", "--state", "failed"]).await;
        failed.as_array().is_some_and(|failed| failed.len() == 1).then_some(())
    })
    .await;
    let terminated = Instance { state: Some("terminated".into()), ..Instance::default() };
    moto.change_in(ACCOUNT, REGION, &instance, &terminated).await;
    assert_eq!(stage.sweep().await["closed"][0], finding.as_str());
    let retried = stage.sweeper.json(&["messages", "retry"]).await;
    assert_eq!((&retried["requeued"], &retried["ended"]), (&0.into(), &1.into()));
    assert_eq!(stage.sweeper.json(&["messages", "retry", &finding]).await["requeued"], 1);
    stage.delivered(1).await;
}
