//! Delivery: a finding reaches people by email and in Slack, once each, whatever happens in between.

use lab::{
    quiet,
    slack::{self, Slack},
    smtp::{self, Smtp},
    sweeper::Sweeper,
    wait,
};
use mail_parser::MessageParser;
use std::time::Duration;
use tempfile::TempDir;

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
        let (smtp, slack) = (Smtp::start().await, Slack::start_https().await);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = format!(
            r#"
            [aws]
            enabled = "no"
            [pricing]
            source = "none"
            [onprem]
            hourly_usd = {{ default = "0.25" }}
            [sweep]
            schedule = "0 0 0 1 1 *"
            proposal_after_sweeps = 1
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
        let sweeper = Sweeper::start(folder.path(), &config, &[("SSL_CERT_FILE", &roots)]).await;
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
    stage.delivered(3).await;
    let mut subjects = stage.subjects();
    subjects.sort();
    for (subject, name) in subjects.iter().zip(["quiet-1", "quiet-2", "quiet-3"]) {
        assert!(subject.contains(name), "{subjects:?}");
    }
}

#[tokio::test]
async fn servers_that_refuse_for_a_while_are_asked_again_no_sooner_than_they_wish() {
    let stage = Stage::set().await;
    stage.smtp.fail_next(&[smtp::Fault::Reply("451 4.3.0 try again later"); 2]);
    stage.slack.fail_next(&[slack::Fault::RateLimited(3), slack::Fault::Status(503)]);
    quiet::report(&stage.sweeper, "quiet-1").await;
    stage.sweep().await;
    stage.delivered(1).await;
    assert_eq!(stage.smtp.attempts(), 3);
    let at: Vec<_> = stage.slack.requests().iter().map(|request| request["at"].as_f64().expect("a time")).collect();
    assert_eq!(at.len(), 3);
    assert!(at[1] - at[0] >= 3.0, "asked again after {} s instead of 3", at[1] - at[0]);
}
