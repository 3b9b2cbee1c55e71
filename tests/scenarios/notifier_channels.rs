//! Each channel of the notifier against its real counterpart: what arrives, and what each refusal means.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    slack::{self, Slack},
    smtp::{self, Protection, Smtp},
};
use mail_parser::{MessageParser, MimeHeaders};
use notifier::{
    SendError,
    bundle::Notice,
    email::{EmailConfig, Login, Mailer, Tls},
    message::{Ended, Ending, FindingNotice},
    slack::{Slack as Channel, SlackConfig, Updated},
};
use secrecy::SecretString;
use std::time::{Duration, Instant};

fn notice() -> FindingNotice {
    let at = |text: &str| text.parse().unwrap();
    let headline = "training-7 has been idle for 2 h 40 min, at $0.461/h";
    let resource = "aws:123456789012:eu-central-1:i-0a1b2c3d4e5f60718";
    let (since, as_of) = (at("2026-03-02T00:10:00Z"), at("2026-03-02T02:50:30Z"));
    let mut notice = FindingNotice::new("F-7K3QJ2", headline, resource, "idle", since, as_of);
    notice.resource_name = Some("trainïng-7 <!channel>\r\nBcc: evil@example.org".into());
    notice.certainty = Some("Measured in all 321 intervals".into());
    notice.evidence = vec!["Workload CPU: 0.4 ms per second at most".into(); 3];
    notice.cost_per_hour = Some("$0.461/h".into());
    notice.plan_summary = Some("Stop the instance".into());
    notice.keeps_billing = vec!["EBS volume vol-0f00".into()];
    notice.page_url = Some("https://sweeper.example.org/findings/F-7K3QJ2?a=1&b=2".into());
    notice
}

fn email_config(server: &Smtp, tls: Tls) -> EmailConfig {
    let mut config = EmailConfig::new(
        server.host(),
        "sweeper@example.org",
        vec!["ops@example.org".into(), "Ann <ann@example.org>".into()],
    );
    config.port = server.port();
    config.tls = tls;
    config.login = (tls != Tls::None)
        .then(|| Login { username: Smtp::USERNAME.into(), password: SecretString::from(Smtp::PASSWORD) });
    config.ca_file = (tls != Tls::None).then(|| server.ca_file());
    config
}

fn slack_config(server: &Slack) -> SlackConfig {
    let mut config = SlackConfig::new(SecretString::from(Slack::TOKEN), Slack::CHANNEL);
    config.api_url = server.api_url();
    config
}

fn assert_arrived(server: &Smtp) {
    let delivered = server.delivered();
    let [raw] = delivered.as_slice() else { panic!("{} messages instead of one", delivered.len()) };
    let mail = MessageParser::default().parse(raw).unwrap();
    let addresses = |list: Option<&mail_parser::Address<'_>>| -> Vec<String> {
        list.unwrap().iter().map(|one| one.address().unwrap().to_owned()).collect()
    };
    assert_eq!(mail.subject(), Some("[Cloud Sweeper] training-7 has been idle for 2 h 40 min, at $0.461/h"));
    assert_eq!(addresses(mail.from()), ["sweeper@example.org"]);
    assert_eq!(addresses(mail.to()), ["ops@example.org", "ann@example.org"]);
    assert!(mail.bcc().is_none() && mail.date().is_some());
    assert_eq!(mail.header("Auto-Submitted").and_then(|h| h.as_text()), Some("auto-generated"));
    assert!(mail.message_id().unwrap().ends_with(".cloud-sweeper@example.org"));
    assert!(mail.content_type().unwrap().subtype() == Some("alternative"));
    let (text, html) = (mail.body_text(0).unwrap(), mail.body_html(0).unwrap());
    for said in ["sweeper explain F-7K3QJ2", "$0.461/h", "Stop the instance", "trainïng-7", "EBS volume vol-0f00"] {
        assert!(text.contains(said) && html.contains(said), "{said}: {text} {html}");
    }
    assert!(html.contains("trainïng-7 &#60;!channel&#62; Bcc: evil@example.org"), "{html}");
}

fn retry(result: Result<notifier::Receipt, SendError>) -> (Option<Duration>, String) {
    match result {
        Err(SendError::Retry { after, why }) => (after, why),
        other => panic!("{other:?} instead of a failure to retry"),
    }
}

fn permanent(result: Result<notifier::Receipt, SendError>) -> String {
    match result {
        Err(SendError::Permanent { why } | SendError::Unfit { why }) => why,
        other => panic!("{other:?} instead of a permanent failure"),
    }
}

fn no_channel(result: Result<notifier::Receipt, SendError>) -> String {
    match result {
        Err(SendError::NoChannel { why }) => why,
        other => panic!("{other:?} instead of a channel that takes nothing"),
    }
}

#[tokio::test]
async fn an_email_arrives_over_starttls_after_a_login() {
    let server = Smtp::start().await;
    let mailer = Mailer::new(email_config(&server, Tls::StartTls)).unwrap();
    let receipt = mailer.send(&notice(), "F-7K3QJ2/email").await.unwrap();
    assert!(receipt.said.starts_with("250"), "{receipt:?}");
    let mail = server.delivered().remove(0);
    assert!(
        String::from_utf8_lossy(&mail).contains(&format!("Message-ID: {}", receipt.reference.as_ref().unwrap())),
        "{receipt:?}"
    );
    assert_arrived(&server);
}

#[tokio::test]
async fn an_email_arrives_over_implicit_tls() {
    let server = Smtp::start_with(Protection::Implicit).await;
    Mailer::new(email_config(&server, Tls::Implicit)).unwrap().send(&notice(), "F-7K3QJ2/email").await.unwrap();
    assert_arrived(&server);
}

#[tokio::test]
async fn an_email_arrives_without_tls_on_this_very_host() {
    let server = Smtp::start_with(Protection::Plain).await;
    Mailer::new(email_config(&server, Tls::None)).unwrap().send(&notice(), "F-7K3QJ2/email").await.unwrap();
    assert_arrived(&server);
}

#[tokio::test]
async fn starttls_is_never_dropped_silently() {
    let server = Smtp::start_with(Protection::Plain).await;
    let mut config = email_config(&server, Tls::StartTls);
    config.ca_file = None;
    let failure = Mailer::new(config).unwrap().send(&notice(), "k").await.unwrap_err();
    assert!(server.delivered().is_empty(), "{failure}");
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = Smtp::start().await;
    let mut config = email_config(&server, Tls::StartTls);
    config.ca_file = None;
    let (_, why) = retry(Mailer::new(config).unwrap().send(&notice(), "k").await);
    assert!(why.contains("ca_file"), "{why}");
    assert!(server.delivered().is_empty());
}

#[tokio::test]
async fn a_temporary_refusal_is_retried_and_repetitions_share_their_message_id() {
    let server = Smtp::start().await;
    server.fail_next(&[smtp::Fault::Reply("451 4.3.0 try again later")]);
    let mailer = Mailer::new(email_config(&server, Tls::StartTls)).unwrap();
    let (after, why) = retry(mailer.send(&notice(), "F-7K3QJ2/email").await);
    assert_eq!(after, None);
    assert!(why.contains("451") && why.contains("try again later"), "{why}");
    mailer.send(&notice(), "F-7K3QJ2/email").await.unwrap();
    mailer.send(&notice(), "F-7K3QJ2/email").await.unwrap();
    mailer.send(&notice(), "F-8/email").await.unwrap();
    let delivered = server.delivered();
    let id = |raw: &Vec<u8>| MessageParser::default().parse(raw).unwrap().message_id().unwrap().to_owned();
    let ids: Vec<_> = delivered.iter().map(id).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[tokio::test]
async fn a_final_refusal_and_a_wrong_password_are_permanent() {
    let server = Smtp::start().await;
    server.fail_next(&[smtp::Fault::Reply("554 5.7.1 rejected by policy")]);
    let config = email_config(&server, Tls::StartTls);
    let why = permanent(Mailer::new(config.clone()).unwrap().send(&notice(), "k").await);
    assert!(why.contains("554") && why.contains("rejected by policy"), "{why}");
    let mut wrong = config;
    wrong.login = Some(Login { username: Smtp::USERNAME.into(), password: SecretString::from("hunter2") });
    let why = permanent(Mailer::new(wrong).unwrap().send(&notice(), "k").await);
    assert!(why.contains("535") && why.contains("password") && !why.contains("hunter2"), "{why}");
    assert!(server.delivered().is_empty());
}

#[tokio::test]
async fn a_mail_server_that_stalls_or_is_away_is_retried() {
    let mut server = Smtp::start().await;
    server.fail_next(&[smtp::Fault::Stall(Duration::from_secs(60))]);
    let mut config = email_config(&server, Tls::StartTls);
    config.timeout = Duration::from_secs(2);
    let mailer = Mailer::new(config).unwrap();
    let begun = Instant::now();
    retry(mailer.send(&notice(), "k").await);
    assert!(begun.elapsed() < Duration::from_secs(20), "the time-out did not fire: {:?}", begun.elapsed());
    server.stop();
    let (_, why) = retry(mailer.send(&notice(), "k").await);
    assert!(why.contains("refused"), "{why}");
    server.start_again().await;
    let mailer = Mailer::new(email_config(&server, Tls::StartTls)).unwrap();
    mailer.send(&notice(), "k").await.unwrap();
}

#[tokio::test]
async fn slack_posts_the_message() {
    let server = Slack::start().await;
    let channel = Channel::new(slack_config(&server)).unwrap();
    let receipt = channel.send(&notice(), "F-7K3QJ2/slack").await.unwrap();
    let messages = server.messages();
    let [message] = messages.as_slice() else { panic!("{} messages instead of one", messages.len()) };
    assert_eq!(receipt.reference, Some(format!("C0LABWASTE/{}", message["ts"].as_str().unwrap())));
    assert_eq!(message["channel"], Slack::CHANNEL);
    assert_eq!(message["metadata"]["event_payload"]["idempotency_key"], "F-7K3QJ2/slack");
    assert_eq!(message["unfurl_links"], false);
    let said = message.to_string();
    assert!(said.contains("sweeper explain F-7K3QJ2") && said.contains("&lt;!channel&gt;"), "{said}");
    assert!(!said.contains("<!channel>"), "{said}");
}

#[tokio::test]
async fn slack_is_waited_for_as_long_as_it_asks() {
    let server = Slack::start().await;
    server.fail_next(&[slack::Fault::RateLimited(17)]);
    let channel = Channel::new(slack_config(&server)).unwrap();
    let (after, _) = retry(channel.send(&notice(), "k").await);
    assert_eq!(after, Some(Duration::from_secs(17)));
    assert_eq!(server.requests().len(), 1, "one attempt per call");
    channel.send(&notice(), "k").await.unwrap();
}

#[tokio::test]
async fn slack_refusals_say_what_to_change() {
    let server = Slack::start().await;
    let mut config = slack_config(&server);
    config.token = SecretString::from("xoxb-revoked-hunter2");
    let why = permanent(Channel::new(config).unwrap().send(&notice(), "k").await);
    assert!(why.contains("invalid_auth") && why.contains("token") && !why.contains("hunter2"), "{why}");
    let mut config = slack_config(&server);
    config.channel = "#nowhere".into();
    let why = no_channel(Channel::new(config).unwrap().send(&notice(), "k").await);
    assert!(why.contains("channel_not_found") && why.contains("#nowhere"), "{why}");
    let mut config = slack_config(&server);
    config.api_url = format!("{}/wrong", server.api_url());
    let why = permanent(Channel::new(config).unwrap().send(&notice(), "k").await);
    assert!(why.contains("address"), "{why}");
    server.fail_next(&[slack::Fault::Error("not_in_channel"), slack::Fault::Error("is_archived")]);
    let channel = Channel::new(slack_config(&server)).unwrap();
    let why = no_channel(channel.send(&notice(), "k").await);
    assert!(why.contains("/invite"), "{why}");
    no_channel(channel.send(&notice(), "k").await);
    assert!(server.messages().is_empty());
}

#[tokio::test]
async fn what_answers_for_all_goes_where_all_are_told_now_if_its_channel_is_archived() {
    let server = Slack::start().await;
    let mut config = slack_config(&server);
    config.channel = "#genomics".into();
    let before = Channel::new(config).unwrap().send(&notice(), "k").await.unwrap();
    server.archive(&["#genomics"]);
    // Another channel is for all since then.
    let channel = Channel::new(slack_config(&server)).unwrap();
    let notice = notice();
    let answers = before.reference.as_deref();
    let answer = async |channel_of_a_team| {
        let place = notifier::slack::Place { channel: channel_of_a_team, answers, instead_of: None };
        channel.deliver(&Notice::One(&notice), "k2", place).await
    };
    let receipt = answer(None).await.unwrap();
    assert!(!receipt.in_thread && receipt.reference.unwrap().starts_with("C0LABWASTE/"));
    assert_eq!(server.messages()[1]["channel"], Slack::CHANNEL);
    let why = no_channel(answer(Some("#genomics")).await);
    assert!(why.contains("is_archived"), "of a team's it is the caller's to say so: {why}");
}

#[tokio::test]
async fn slack_that_fails_stalls_or_is_away_is_retried() {
    let mut server = Slack::start().await;
    server.fail_next(&[
        slack::Fault::Status(503),
        slack::Fault::Error("internal_error"),
        slack::Fault::Error("a_code_of_tomorrow"),
        slack::Fault::Stall(Duration::from_secs(60)),
    ]);
    let mut config = slack_config(&server);
    config.timeout = Duration::from_secs(2);
    let channel = Channel::new(config).unwrap();
    for said in ["503", "internal_error"] {
        let (_, why) = retry(channel.send(&notice(), "k").await);
        assert!(why.contains(said), "{why}");
    }
    let unclear = channel.send(&notice(), "k").await;
    assert!(matches!(&unclear, Err(SendError::Unclear { why }) if why.contains("a_code_of_tomorrow")), "{unclear:?}");
    let (_, why) = retry(channel.send(&notice(), "k").await);
    assert!(why.contains("within 2s"), "{why}");
    server.stop();
    let (_, why) = retry(channel.send(&notice(), "k").await);
    assert!(why.contains("refused"), "{why}");
    server.start_again().await;
    Channel::new(slack_config(&server)).unwrap().send(&notice(), "k").await.unwrap();
}

#[tokio::test]
async fn slack_takes_the_longest_and_strangest_notice() {
    let server = Slack::start().await;
    let mut notice = notice();
    let long = "<!here> & *🖥* `code` ".repeat(500);
    notice.headline.clone_from(&long);
    notice.resource.clone_from(&long);
    for text in [
        &mut notice.resource_name,
        &mut notice.resource_kind,
        &mut notice.place,
        &mut notice.owner,
        &mut notice.certainty,
        &mut notice.cost_per_hour,
        &mut notice.cost_so_far,
        &mut notice.net_saving,
        &mut notice.plan_summary,
    ] {
        *text = Some(long.clone());
    }
    notice.evidence = vec![long.clone(); 50];
    notice.keeps_billing = vec![long; 50];
    Channel::new(slack_config(&server)).unwrap().send(&notice, &"k".repeat(5_000)).await.unwrap();
    assert_eq!(server.messages().len(), 1);
}

/// The judge is judged: a stand-in that took everything would prove nothing.
#[tokio::test]
async fn the_slack_stand_in_refuses_what_slack_refuses() {
    let server = Slack::start().await;
    Channel::new(slack_config(&server)).unwrap().send(&notice(), "k").await.unwrap();
    let mut good = server.messages().remove(0);
    good.as_object_mut().unwrap().remove("ts");
    type Change = fn(&mut serde_json::Value);
    let refused: [(&str, Change); 9] = [
        ("a header that is too long", |m| m["blocks"][0]["text"]["text"] = "x".repeat(151).into()),
        ("mrkdwn in a header", |m| m["blocks"][0]["text"]["type"] = "mrkdwn".into()),
        ("an unknown block", |m| m["blocks"][0]["type"] = "heading".into()),
        ("an unknown property", |m| m["blocks"][1]["colour"] = "red".into()),
        ("a field that is too long", |m| m["blocks"][1]["fields"][0]["text"] = "x".repeat(2_001).into()),
        ("a section that is too long", |m| m["blocks"][4]["text"]["text"] = "x".repeat(3_001).into()),
        ("an empty text", |m| m["blocks"][1]["fields"][0]["text"] = "".into()),
        ("no field", |m| m["blocks"][1]["fields"] = serde_json::json!([])),
        ("too many blocks", |m| m["blocks"] = vec![m["blocks"][0].clone(); 51].into()),
    ];
    let post = async |message: &serde_json::Value| -> serde_json::Value {
        let request = reqwest::Client::new()
            .post(format!("{}/chat.postMessage", server.api_url()))
            .bearer_auth(Slack::TOKEN)
            .header("content-type", "application/json; charset=utf-8")
            .body(message.to_string());
        request.send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(post(&good).await["ok"], true);
    for (what, change) in refused {
        let mut message = good.clone();
        change(&mut message);
        assert_eq!(post(&message).await["error"], "invalid_blocks", "{what}");
    }
}

#[tokio::test]
async fn a_message_in_slack_is_updated_and_one_that_is_gone_is_not() {
    let server = Slack::start().await;
    let channel = Channel::new(slack_config(&server)).unwrap();
    let posted = channel.send(&notice(), "F-7K3QJ2/slack").await.unwrap().reference.unwrap();
    let mut over = notice();
    let because = "Work runs on it <!channel>".to_owned();
    over.ended = Some(Ended { at: over.as_of, how: Ending::Resolved, because });
    let updated = channel.update(&Notice::One(&over), "F-7K3QJ2/slack", &posted, None).await.unwrap();
    assert!(matches!(&updated, Updated::Shown(receipt) if receipt.reference.as_ref() == Some(&posted)), "{updated:?}");
    let updates = server.updates();
    let [update] = updates.as_slice() else { panic!("{updates:?}") };
    assert_eq!(update["ts"], server.messages()[0]["ts"]);
    assert_eq!(update["metadata"], server.messages()[0]["metadata"]);
    assert!(update.to_string().contains("What ended it") && server.messages().len() == 1, "{update}");
    for gone in ["C0LABWASTE/1.2", "not of Slack's form"] {
        let gone = channel.update(&Notice::One(&over), "k", gone, None).await.unwrap();
        assert!(matches!(gone, Updated::Gone { .. }), "{gone:?}");
    }
    let elsewhere = channel.update(&Notice::One(&over), "k", "C0OTHER/1.2", None).await.unwrap_err();
    assert!(matches!(&elsewhere, SendError::Permanent { why } if why.contains("channel_not_found")), "{elsewhere}");
}

#[tokio::test]
async fn what_is_about_one_message_or_one_channel_is_told_from_what_is_about_all() {
    let server = Slack::start().await;
    let channel = Channel::new(slack_config(&server)).unwrap();
    server.fail_next(&["msg_too_long", "is_archived", "token_revoked"].map(slack::Fault::Error));
    assert!(matches!(channel.send(&notice(), "k").await, Err(SendError::Unfit { .. })));
    assert!(matches!(channel.send(&notice(), "k").await, Err(SendError::NoChannel { .. })));
    assert!(matches!(channel.send(&notice(), "k").await, Err(SendError::Permanent { .. })));
    let server = Smtp::start().await;
    server.fail_next(&[smtp::Fault::Reply("552 5.3.4 message too big")]);
    let mailer = Mailer::new(email_config(&server, Tls::StartTls)).unwrap();
    assert!(matches!(mailer.send(&notice(), "k").await, Err(SendError::Unfit { .. })));
}
