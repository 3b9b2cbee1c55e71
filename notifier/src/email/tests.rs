//! What a mail server is given: golden texts, and headers that untrusted text cannot reach.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use secrecy::SecretString;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::{
    EmailConfig, Login, Mailer, Tls,
    message::{Addresses, Key, content, render},
};
use crate::{bundle::Notice, message::FindingNotice, samples};

fn wire(notice: &FindingNotice, key: &str) -> String {
    wire_of(&Notice::One(notice), key)
}

fn wire_of(notice: &Notice<'_>, key: &str) -> String {
    let addresses = Addresses {
        from: "Cloud Sweeper <sweeper@example.org>".parse().unwrap(),
        to: vec!["ops@example.org".parse().unwrap(), "Ann <ann@example.org>".parse().unwrap()],
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_419_830);
    String::from_utf8(
        render(notice, &Key { idempotency_key: key, answers: None }, &addresses, now).unwrap().formatted(),
    )
    .unwrap()
}

/// Unfolded header lines.
fn headers(wire: &str) -> Vec<String> {
    let (head, _) = wire.split_once("\r\n\r\n").unwrap();
    head.replace("\r\n ", " ").split("\r\n").map(str::to_owned).collect()
}

#[test]
fn an_idle_instance() {
    let content = content(&Notice::One(&samples::idle())).unwrap();
    insta::assert_snapshot!("idle_subject", content.subject);
    insta::assert_snapshot!("idle_text", content.text);
    insta::assert_snapshot!("idle_html", content.html);
}

#[test]
fn a_blind_spot_without_a_price() {
    let content = content(&Notice::One(&samples::blind())).unwrap();
    insta::assert_snapshot!("blind_text", content.text);
}

#[test]
fn a_bundle_of_three() {
    let content = content(&Notice::Several(&samples::bundle())).unwrap();
    insta::assert_snapshot!("bundle_subject", content.subject);
    insta::assert_snapshot!("bundle_text", content.text);
    insta::assert_snapshot!("bundle_html", content.html);
}

#[test]
fn plans_for_a_bundle() {
    let content = content(&Notice::Several(&samples::plans())).unwrap();
    insta::assert_snapshot!("plans_text", format!("{}\n\n{}", content.subject, content.text));
}

#[test]
fn what_was_done_and_what_was_not() {
    for (name, notice) in [("stopped", samples::stopped()), ("not_stopped", samples::not_stopped())] {
        let content = content(&Notice::One(&notice)).unwrap();
        insta::assert_snapshot!(format!("{name}_text"), format!("{}\n\n{}", content.subject, content.text));
        assert!(
            content.html.contains("What came of it") && !content.html.contains("Why we say so"),
            "{}",
            content.html
        );
    }
}

#[test]
fn headers_are_these_and_no_others() {
    let names = |notice: &FindingNotice| -> Vec<String> {
        let name = |line: String| line.split_once(':').unwrap().0.to_owned();
        headers(&wire(notice, "F-1/email")).into_iter().map(name).collect()
    };
    assert_eq!(
        names(&samples::idle()),
        [
            "From",
            "Subject",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "X-Cloud-Sweeper-Finding",
            "To",
            "MIME-Version",
            "Content-Type",
        ]
    );
    assert_eq!(names(&samples::hostile()), names(&samples::idle()));
    let bundle = headers(&wire_of(&Notice::Several(&samples::hostile_bundle()), "b-1/email"));
    assert!(bundle.len() == 9 && bundle.contains(&"X-Cloud-Sweeper-Findings: 3".to_owned()), "{bundle:?}");
}

#[test]
fn the_same_key_gives_the_same_message_id() {
    let id = |key: &str| {
        let headers = headers(&wire(&samples::idle(), key));
        headers.into_iter().find(|line| line.starts_with("Message-ID: ")).unwrap()
    };
    assert_eq!(id("F-1/email"), id("F-1/email"));
    assert_ne!(id("F-1/email"), id("F-2/email"));
    let odd = id("F-1/email>\r\nBcc: evil@example.org");
    assert!(odd.ends_with(".cloud-sweeper@example.org>") && !odd.contains("Bcc"), "{odd}");
}

#[test]
fn untrusted_text_is_only_ever_text() {
    let (one, several) = (samples::hostile(), samples::hostile_bundle());
    for notice in [Notice::One(&one), Notice::Several(&several)] {
        let content = content(&notice).unwrap();
        assert!(!content.html.contains("<script"));
        assert!(!content.html.contains("javascript:") && !content.html.contains("href"));
        assert!(!content.text.lines().any(|line| line.starts_with("Bcc:")));
        assert!(!content.text.contains('\u{202E}') && !content.html.contains('\u{202E}'));
    }
}

#[test]
fn a_mailer_refuses_what_cannot_work_and_shows_no_password() {
    let good = || {
        let mut config = EmailConfig::new("mail.example.org", "a@example.org", vec!["b@example.org".into()]);
        config.login = Some(Login { username: "sweeper".into(), password: SecretString::from("hunter2") });
        config
    };
    let refusal = |change: &dyn Fn(&mut EmailConfig)| {
        let mut config = good();
        change(&mut config);
        Mailer::new(config).map_err(|error| error.to_string()).unwrap_err()
    };
    assert!(refusal(&|c| c.host.clear()).contains("host"));
    assert!(refusal(&|c| c.to.clear()).contains("recipient"));
    assert!(refusal(&|c| c.from = "nobody".into()).contains("nobody"));
    assert!(refusal(&|c| c.to = vec!["b@example.org\r\nBcc: c@example.org".into()]).contains("Bcc"));
    assert!(refusal(&|c| c.tls = Tls::None).contains("without TLS"));
    assert!(refusal(&|c| c.ca_file = Some("/nonexistent.pem".into())).contains("/nonexistent.pem"));
    let shown = format!("{:?} {:?}", good(), Mailer::new(good()).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn no_tls_is_for_this_very_host() {
    for host in ["localhost", "127.0.0.1", "::1"] {
        let mut config = EmailConfig::new(host, "a@example.org", vec!["b@example.org".into()]);
        config.tls = Tls::None;
        assert!(Mailer::new(config).is_ok(), "{host}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_stops_a_message(notice in samples::any_notice(), key in any::<String>()) {
        let wire = wire(&notice, &key);
        prop_assert_eq!(headers(&wire).len(), 9);
        prop_assert!(wire.len() < 200_000);
        prop_assert!(wire.split("\r\n").all(|line| line.len() <= 998));
    }

    #[test]
    fn no_bundle_stops_a_message(bundle in samples::any_bundle(), key in any::<String>()) {
        let wire = wire_of(&Notice::Several(&bundle), &key);
        prop_assert_eq!(headers(&wire).len(), 9);
        prop_assert!(wire.len() < 200_000);
    }
}
