//! One-click unsubscribe (RFC 8058): a POST with a mail's link stops that list for that address, and nothing else does or is.

use super::{Site, TIMEOUT, arrived, digests, raw, recipient};
use lab::{postgres::Postgres, smtp::Smtp, sweeper::Sweeper, wait};
use reqwest::StatusCode;
use std::path::Path;

const LISTS: &str = r#"[
    { name = "everyone", to = ["ops@example.org", "Ann <ann@example.org>"], every = "day", at = "FAR-OFF" },
    { name = "other", to = ["ann@example.org"], every = "day", at = "FAR-OFF" },
]"#;

/// The link of a reader's mail of a list, as this server serves it.
fn link(smtp: &Smtp, sweeper: &Sweeper, list: &str, address: &str) -> String {
    let is_its = |mail: &&Vec<u8>| recipient(mail) == address && raw(mail, "List-Id").contains(&format!("<{list}."));
    let mails = digests(smtp);
    let mail = mails.iter().find(is_its).expect("a mail");
    assert_eq!(raw(mail, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let header = raw(mail, "List-Unsubscribe");
    let url = header.strip_prefix('<').and_then(|url| url.strip_suffix('>')).expect("a link");
    url.replace("https://sweeper.example.org", &sweeper.url())
}

async fn leaves_and_comes_back(site: &Site, smtp: &Smtp, folder: &Path) {
    let mut sweeper = site.serve(folder, "first").await;
    site.begun(&["everyone", "other"]).await;
    site.miss(1).await;
    assert_eq!(arrived(smtp, 3).await, ["ann@example.org", "ann@example.org", "ops@example.org"]);
    let client = reqwest::Client::new();
    let anns = link(smtp, &sweeper, "everyone", "ann@example.org");
    assert_ne!(anns, link(smtp, &sweeper, "other", "ann@example.org"));
    let left = async || {
        let readers = sweeper.json(&["digest", "subscribers"]).await;
        let left = readers.as_array().unwrap().iter().filter(|reader| !reader["left_at"].is_null());
        left.map(|reader| format!("{} {}", reader["list"].as_str().unwrap(), reader["address"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };

    // What a mail scanner does changes nothing.
    for _ in 0..2 {
        let page = client.get(&anns).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK);
        let text = page.text().await.unwrap();
        assert!(text.contains("<form method=\"post\">") && text.contains("Nothing has been changed"), "{text}");
        assert!(client.head(&anns).send().await.unwrap().status().is_success());
    }
    assert_eq!(left().await, Vec::<String>::new());
    // Nor does a link of nobody's, or half of one.
    let of_nobody = format!("{}/v1/digests/unsubscribe?token={}", sweeper.url(), "0".repeat(64));
    for url in [&of_nobody, &anns[..anns.len() - 1], &format!("{}/v1/digests/unsubscribe", sweeper.url())] {
        let answer = client.post(url).body("List-Unsubscribe=One-Click").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{url}");
    }
    assert_eq!(client.delete(&anns).send().await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(left().await, Vec::<String>::new());

    // As RFC 8058 has it, and once more.
    for _ in 0..2 {
        let post = client.post(&anns).header("content-type", "application/x-www-form-urlencoded");
        let answer = post.body("List-Unsubscribe=One-Click").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
    assert_eq!(left().await, ["everyone ann@example.org"]);
    assert!(client.get(&anns).send().await.unwrap().text().await.unwrap().contains("You get no more digests"));

    // One list of one reader, and nothing else.
    site.miss(1).await;
    assert_eq!(
        arrived(smtp, 5).await,
        ["ann@example.org", "ann@example.org", "ann@example.org", "ops@example.org", "ops@example.org"]
    );
    let of_everyone =
        |mail: &Vec<u8>| recipient(mail) == "ann@example.org" && raw(mail, "List-Id").contains("<everyone.");
    assert_eq!(digests(smtp).into_iter().filter(of_everyone).count(), 1);

    // Whoever runs the sweeper sees it, and can undo it.
    let back = sweeper.run(&["digest", "subscribe", "everyone", "ann@example.org"]).await;
    assert!(back.status.success(), "{back:?}");
    assert_eq!(left().await, Vec::<String>::new());
    site.miss(1).await;
    arrived(smtp, 8).await;
    wait::until("a digest of everyone for Ann", TIMEOUT, || async {
        (digests(smtp).into_iter().filter(of_everyone).count() == 2).then_some(())
    })
    .await;
    let gone = sweeper.run(&["digest", "unsubscribe", "everyone", "ops@example.org"]).await;
    assert!(gone.status.success(), "{gone:?}");
    assert_eq!(left().await, ["everyone ops@example.org"]);
    let nobody = sweeper.run(&["digest", "unsubscribe", "everyone", "bob@example.org"]).await;
    assert!(!nobody.status.success(), "{nobody:?}");

    // The token is nobody's but the reader's.
    let token = anns.rsplit('=').next().unwrap();
    assert!(sweeper.log().contains("a reader wants no more digests"), "{}", sweeper.log());
    assert!(!sweeper.log().contains(token), "the log has the token");
    let kept = site.execute(&format!("DELETE FROM digest_readers WHERE token_sha256 = '{token}'")).await;
    assert_eq!(kept, 0, "the database has the token and not its hash");
    sweeper.stop().await;
}

#[tokio::test]
async fn a_reader_leaves_one_list_and_comes_back_over_sqlite() {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let site = Site::sqlite(folder.path(), LISTS, Some(&smtp)).await;
    leaves_and_comes_back(&site, &smtp, folder.path()).await;
}

#[tokio::test]
async fn a_reader_leaves_one_list_and_comes_back_over_postgresql() {
    let (smtp, folder, postgres) = (Smtp::start().await, tempfile::tempdir().unwrap(), Postgres::shared().await);
    let site = Site::new(postgres.database().await, LISTS, Some(&smtp)).await;
    leaves_and_comes_back(&site, &smtp, folder.path()).await;
}

#[tokio::test]
async fn without_a_public_address_there_is_no_link() {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    let mut site = Site::sqlite(folder.path(), LISTS, Some(&smtp)).await;
    site.config = site.config.replace("public_url = \"https://sweeper.example.org\"", "");
    let mut sweeper = site.serve(folder.path(), "first").await;
    site.begun(&["everyone", "other"]).await;
    site.miss(1).await;
    arrived(&smtp, 3).await;
    for mail in digests(&smtp) {
        let text = String::from_utf8_lossy(&mail).into_owned();
        assert!(!text.contains("List-Unsubscribe") && !text.contains("unsubscribe?token"), "{text}");
    }
    sweeper.stop().await;
}
