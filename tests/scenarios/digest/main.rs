//! Digests: summaries by mail, once to each reader, whatever happens in between; by a real mail server, read by a real parser and a real browser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pages;
mod unsubscribe;

use lab::{postgres::Postgres, quiet, smtp::Smtp, sweeper::Sweeper, wait};
use mail_parser::{Message, MessageParser, MimeHeaders as _};
use sea_orm::ConnectionTrait as _;
use std::{path::Path, time::Duration};
use sweeper::store::Store;

/// Longest wait for a mail: a sweeper asks every 15 s what is due.
const TIMEOUT: Duration = Duration::from_secs(90);
/// A day in milliseconds.
const DAY_MS: i64 = 86_400_000;
/// One list about everyone's machines, and one about those of an owner who has none.
const LISTS: &str = r#"[
    { name = "everyone", to = ["ops@example.org", "Ann <ann@example.org>"], every = "day", at = "FAR-OFF", timezone = "Europe/Berlin" },
    { name = "genomics", owner = "ada", to = ["genomics@example.org"], every = "day", at = "FAR-OFF" },
]"#;

/// Half a day from now: no digest comes by itself while a scenario goes on.
fn far_off() -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(12)).strftime("%H:00").to_string()
}

/// The settings of a sweeper over this database; without a mail server if there is none.
fn config(url: &str, lists: &str, smtp: Option<&Smtp>) -> String {
    let email = smtp.map_or_else(String::new, |smtp| {
        format!(
            r#"
            [email]
            host = "{host}"
            port = {port}
            username = "{username}"
            password = "{password}"
            from = "sweeper@example.org"
            to = ["findings@example.org"]
            tls = "starttls"
            ca_file = "{ca_file}"
            "#,
            host = smtp.host(),
            port = smtp.port(),
            username = Smtp::USERNAME,
            password = Smtp::PASSWORD,
            ca_file = smtp.ca_file().display(),
        )
    });
    format!(
        r#"
        [store]
        url = "{url}"
        [api]
        public_url = "https://sweeper.example.org"
        [aws]
        enabled = "no"
        [pricing]
        source = "none"
        [onprem]
        hourly_usd = {{ default = "0.25" }}
        [sweep]
        schedule = "0 0 0 1 1 *"
        {email}
        [digest]
        lists = {lists}
        [outbox]
        base_delay = "200ms"
        max_delay = "1s"
        "#,
        lists = lists.replace("FAR-OFF", &far_off()),
    )
}

/// A database, and how the sweepers over it are set up.
struct Site {
    store: Store,
    config: String,
}

impl Site {
    async fn new(url: String, lists: &str, smtp: Option<&Smtp>) -> Self {
        let store = Store::connect(&url).await.unwrap();
        store.migrate().await.unwrap();
        Self { config: config(&url, lists, smtp), store }
    }

    async fn sqlite(folder: &Path, lists: &str, smtp: Option<&Smtp>) -> Self {
        Self::new(format!("sqlite://{}?mode=rwc", folder.join("site.db").display()), lists, smtp).await
    }

    async fn serve(&self, folder: &Path, name: &str) -> Sweeper {
        let sweeper = Sweeper::start(&folder.join(name), &self.config, &[]).await;
        // It catches up with the tick that nobody served for, once.
        wait::until("the sweep that it begins with", TIMEOUT, || async {
            (!self.store.last_sweeps(1).await.unwrap().is_empty()).then_some(())
        })
        .await;
        sweeper
    }

    async fn execute(&self, statement: &str) -> u64 {
        let done = self.store.connection().execute_unprepared(statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}")).rows_affected()
    }

    /// Waits until a sweeper has begun all lists.
    async fn begun(&self, lists: &[&str]) {
        wait::until("the begin of each list", TIMEOUT, || async {
            for list in lists {
                self.store.digest_told(list).await.unwrap()?;
            }
            Some(())
        })
        .await;
    }

    /// Nobody has served for so many days: as many digests of each list were missed, and what was sent before is past its retention.
    async fn miss(&self, days: i64) {
        // A mail arrives before it is noted as sent: one that is noted behind this would stand for the next one.
        wait::until("what became of each mail", TIMEOUT, || async {
            self.store.next_digest_due().await.unwrap().is_none().then_some(())
        })
        .await;
        self.execute("DELETE FROM digests").await;
        let missed = days * DAY_MS;
        assert!(self.execute(&format!("UPDATE digest_lists SET told_unix_ms = told_unix_ms - {missed}")).await > 0);
    }
}

/// The mails of digests so far, oldest first; those of findings are left out.
fn digests(smtp: &Smtp) -> Vec<Vec<u8>> {
    let mut mails = smtp.delivered();
    mails.retain(|mail| parsed(mail).header("List-Id").is_some());
    mails
}

fn parsed(mail: &[u8]) -> Message<'_> {
    MessageParser::default().parse(mail).expect("a message")
}

fn recipient(mail: &[u8]) -> String {
    parsed(mail).to().and_then(|to| to.first()).and_then(|to| to.address()).expect("a recipient").to_owned()
}

fn raw(mail: &[u8], header: &str) -> String {
    let mail = parsed(mail);
    mail.header_raw(header).unwrap_or_else(|| panic!("no {header}")).replace("\r\n", "").trim().to_owned()
}

/// Waits for so many mails of digests; those to whom they went, in alphabetical order.
async fn arrived(smtp: &Smtp, count: usize) -> Vec<String> {
    wait::until(&format!("{count} digests"), TIMEOUT, || async { (digests(smtp).len() >= count).then_some(()) }).await;
    let mut to: Vec<String> = digests(smtp).iter().map(|mail| recipient(mail)).collect();
    to.sort();
    to
}

const READERS: [&str; 3] = ["ann@example.org", "genomics@example.org", "ops@example.org"];

/// On each database: three digests of each list were missed, and each reader gets one.
async fn each_reader_gets_one(site: &Site, smtp: &Smtp, folder: &Path) {
    let mut sweeper = site.serve(folder, "first").await;
    site.begun(&["everyone", "genomics"]).await;
    quiet::report(&sweeper, "quiet-1").await;
    assert_eq!(sweeper.sweep().await.1["opened"].as_array().map(Vec::len), Some(1));
    assert!(digests(smtp).is_empty(), "a new list begins with its next digest");

    // Something for the audit log.
    assert!(sweeper.run(&["approvers", "add", "ada"]).await.status.success());

    // It is away for three days, and comes back.
    sweeper.stop().await;
    site.miss(3).await;
    sweeper.start_again().await;
    assert_eq!(arrived(smtp, 3).await, READERS);

    let mails = digests(smtp);
    let of = |address: &str| mails.iter().find(|mail| recipient(mail) == address).expect("a mail");
    let (ann, genomics) = (of("ann@example.org"), of("genomics@example.org"));
    assert_eq!(raw(ann, "List-Id"), "Cloud Sweeper digest <everyone.digest.example.org>");
    assert_eq!(raw(ann, "Auto-Submitted"), "auto-generated");
    let ids: std::collections::BTreeSet<String> = mails.iter().map(|mail| raw(mail, "Message-ID")).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let mail = parsed(ann);
    let (text, html) = (mail.body_text(0).expect("a text"), mail.body_html(0).expect("an HTML part"));
    assert_eq!(mail.content_type().and_then(|kind| kind.subtype()), Some("alternative"));
    for part in ["quiet-1", "$0.25/h", "sweeper explain ", "idle node", "Europe/Berlin", "1 finding costs"] {
        assert!(text.contains(part) && html.contains(part), "`{part}`:\n{text}\n{html}");
    }
    // Each picture that the HTML shows is in the mail, and is one.
    let shown: Vec<&str> = html.split("src=\"cid:").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(!shown.is_empty(), "{html}");
    for id in shown {
        let picture = mail.parts.iter().find(|part| part.content_id() == Some(id)).expect("a picture");
        assert_eq!(picture.content_type().and_then(|kind| kind.subtype()), Some("png"));
        assert!(picture.contents().starts_with(b"\x89PNG\r\n"), "{id}");
    }
    // The command in the mail works as it is written.
    let command = text.lines().find(|line| line.trim().starts_with("sweeper explain ")).expect("a command");
    let explained = sweeper.run(&command.split_whitespace().skip(1).collect::<Vec<_>>()).await;
    assert!(explained.status.success(), "{explained:?}");
    // So does the one that proves that the audit log is whole: also once its tail was cut so well that the log itself does not show it.
    let command =
        text.lines().find(|line| line.trim().starts_with("sweeper audit verify ")).expect("a command").to_owned();
    let verify = async |arguments: &[&str]| sweeper.run(arguments).await.status.success();
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert!(verify(&arguments).await, "{command}");
    assert!(site.execute("DELETE FROM audit").await > 0);
    site.execute("UPDATE audit_head SET sequence = 0, hash = ''").await;
    assert!(verify(&["audit", "verify"]).await && !verify(&arguments).await, "{command}");
    // What is of nobody's in this team is not told to it.
    let other = parsed(genomics);
    assert!(!other.body_text(0).expect("a text").contains("quiet-1"), "{other:?}");
    assert_eq!(other.subject().map(|subject| subject.contains("No open finding of ada")), Some(true), "{other:?}");

    // A day later there is one more for each, and with it the proof that there was no other before.
    site.miss(1).await;
    assert_eq!(arrived(smtp, 6).await.len(), 6);
    let states = sweeper.json(&["digest"]).await;
    let sent: Vec<_> = states.as_array().unwrap().iter().flat_map(|list| list["last"].as_array().unwrap()).collect();
    assert_eq!(sent.len(), 3, "{states:#}");
    assert!(sent.iter().all(|mail| mail["state"] == "sent" && mail["attempts"] == 1), "{states:#}");
    sweeper.stop().await;
}

#[tokio::test]
async fn each_reader_gets_what_was_missed_once_over_sqlite() {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let site = Site::sqlite(folder.path(), LISTS, Some(&smtp)).await;
    each_reader_gets_one(&site, &smtp, folder.path()).await;
}

#[tokio::test]
async fn each_reader_gets_what_was_missed_once_over_postgresql() {
    let (smtp, folder, postgres) = (Smtp::start().await, tempfile::tempdir().unwrap(), Postgres::shared().await);
    let site = Site::new(postgres.database().await, LISTS, Some(&smtp)).await;
    each_reader_gets_one(&site, &smtp, folder.path()).await;
}

#[tokio::test]
async fn several_sweepers_send_each_digest_once() {
    let (smtp, folder, postgres) = (Smtp::start().await, tempfile::tempdir().unwrap(), Postgres::shared().await);
    let site = Site::new(postgres.database().await, LISTS, Some(&smtp)).await;
    let mut sweepers = vec![site.serve(folder.path(), "first").await];
    site.begun(&["everyone", "genomics"]).await;
    for name in ["second", "third"] {
        sweepers.push(site.serve(folder.path(), name).await);
    }
    for round in 1..=3 {
        site.miss(1).await;
        let to = arrived(&smtp, 3 * round).await;
        for reader in READERS {
            assert_eq!(to.iter().filter(|one| *one == reader).count(), round, "{to:?}");
        }
    }
    let written = |sweeper: &Sweeper| sweeper.log().matches("digest written").count();
    assert_eq!(sweepers.iter().map(written).sum::<usize>(), 6, "each digest is written by one of them");
    for mut sweeper in sweepers {
        sweeper.stop().await;
    }
    assert_eq!(digests(&smtp).len(), 9);
}

#[tokio::test]
async fn a_mail_server_that_is_away_and_a_crash_lose_nothing() {
    let (mut smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let site = Site::sqlite(folder.path(), LISTS, Some(&smtp)).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    site.begun(&["everyone", "genomics"]).await;
    smtp.stop();
    site.miss(1).await;
    let tried = || async {
        let states = sweeper.json(&["digest"]).await;
        let mails: Vec<_> =
            states.as_array()?.iter().flat_map(|list| list["last"].as_array().unwrap()).cloned().collect();
        let is_tried = |mail: &serde_json::Value| mail["state"] == "pending" && mail["attempts"].as_u64() > Some(0);
        (mails.len() == 3 && mails.iter().all(is_tried)).then_some(mails)
    };
    let mails = wait::until("an attempt at each mail", TIMEOUT, tried).await;
    assert!(
        mails.iter().all(|mail| mail["last_error"].as_str().is_some_and(|why| why.contains("mail server"))),
        "{mails:?}"
    );
    sweeper.kill();
    sweeper.start_again().await;
    smtp.start_again().await;
    assert_eq!(arrived(&smtp, 3).await, READERS);
    // A claim that died with its holder is sent again by another one under the same name: so is what was sent and not noted.
    let before: Vec<String> = digests(&smtp).iter().map(|mail| raw(mail, "Message-ID")).collect();
    let again = "UPDATE digests SET state = 'pending', claimed_until_unix_ms = 1, next_attempt_unix_ms = 0 WHERE address = 'ann@example.org'";
    wait::until("all noted as sent", TIMEOUT, || async {
        let mails = site.store.sent_digests("everyone", 10).await.unwrap();
        mails.iter().all(|mail| mail.sent_at.is_some()).then_some(())
    })
    .await;
    assert_eq!(site.execute(again).await, 1);
    arrived(&smtp, 4).await;
    let last = digests(&smtp).pop().map(|mail| raw(&mail, "Message-ID")).unwrap();
    assert!(before.contains(&last), "{last} is none of {before:?}");
    sweeper.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_for_good_is_told_of_and_not_asked_again() {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let lists = "[{ name = \"everyone\", to = [\"ops@example.org\"], every = \"day\" }]";
    let site = Site::sqlite(folder.path(), lists, Some(&smtp)).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    site.begun(&["everyone"]).await;
    smtp.fail_next(&[lab::smtp::Fault::Reply("451 4.3.0 try again later"), lab::smtp::Fault::Reply("554 5.7.1 no")]);
    site.miss(1).await;
    wait::until("a discarded mail", TIMEOUT, || async {
        let mails = site.store.sent_digests("everyone", 10).await.unwrap();
        mails.first().filter(|mail| mail.attempts == 2 && mail.next_attempt_at.is_none()).map(|_| ())
    })
    .await;
    let shown = sweeper.run(&["digest"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("1 discarded") && shown.contains("554"), "{shown}");
    // The next one is sent as ever.
    site.miss(1).await;
    arrived(&smtp, 1).await;
    assert_eq!(smtp.attempts(), 3);
    sweeper.stop().await;
}

#[tokio::test]
async fn a_preview_shows_what_would_be_sent_and_sends_nothing() {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let site = Site::sqlite(folder.path(), LISTS, Some(&smtp)).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    site.begun(&["everyone", "genomics"]).await;
    quiet::report(&sweeper, "quiet-1").await;
    sweeper.sweep().await;
    sweeper.stop().await;
    let said = async |arguments: &[&str]| {
        let output = sweeper.run(&[&["digest", "--preview"], arguments].concat()).await;
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = said(&[]).await;
    for part in ["[Cloud Sweeper] ", "quiet-1", "$0.25/h", "This digest of the list \"everyone\" comes once a day"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(said(&["--list", "genomics"]).await.contains("No open finding of ada"));
    assert!(said(&["--output", "html"]).await.starts_with("<!DOCTYPE html>"));
    let digest: serde_json::Value = serde_json::from_str(&said(&["--output", "json"]).await).unwrap();
    assert_eq!((&digest["open"]["count"], &digest["open"]["sum"]["known"]), (&1.into(), &250_000.into()), "{digest:#}");
    // The end of the audit log, as the log itself has it.
    let (entries, hash) = site.store.audit_head().await.unwrap();
    assert_eq!((&digest["audit"]["entries"], &digest["audit"]["hash"]), (&entries.into(), &hash.into()));
    let unknown = sweeper.run(&["digest", "--preview", "--list", "other"]).await;
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && why.contains("everyone, genomics"), "{why}");
    assert!(digests(&smtp).is_empty() && site.store.sent_digests("everyone", 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_sweeper_without_a_mail_server_sends_nothing_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::sqlite(folder.path(), LISTS, None).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    assert!(sweeper.log().contains("no mail server to send them by (`email.host`)"), "{}", sweeper.log());
    assert_eq!(site.store.digest_told("everyone").await.unwrap(), None);
    assert!(sweeper.run(&["digest", "--preview"]).await.status.success());
    sweeper.stop().await;
}
