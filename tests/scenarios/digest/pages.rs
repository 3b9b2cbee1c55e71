//! What a digest looks like: valid HTML, of which no mail program needs what it does not know, and never wider than its reader's screen.

use super::{LISTS, Site, arrived, digests, parsed};
use lab::{
    browser::{self, LaidOut},
    mail, quiet,
    smtp::Smtp,
};
use mail_parser::MimeHeaders as _;
use std::fmt::Write as _;
use tempfile::TempDir;

/// What some mail programs do not know, and what their readers miss by it.
const DISPENSABLE: [(&str, &str); 8] = [
    ("<body> element", "the colour behind the page, which the table around it has, too"),
    ("@media", "the dark page; what is there is readable on white"),
    ("border-radius", "round corners"),
    ("color-scheme CSS property", "the dark page"),
    ("color-scheme meta tag", "the dark page"),
    ("height property", "nothing: the picture has its height as an attribute as well"),
    ("table-layout", "columns of equal width under the days"),
    ("word-break", "a name without a space may be wider than a phone"),
];

/// The HTML of the first digest that arrived, with its pictures in it.
fn page(smtp: &Smtp) -> String {
    let raw = digests(smtp).remove(0);
    let mail = parsed(&raw);
    let mut html = mail.body_html(0).expect("an HTML part").into_owned();
    for part in &mail.parts {
        if let Some(id) = part.content_id() {
            let data = part.contents().iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "%{byte:02x}");
                hex
            });
            html = html.replace(&format!("cid:{id}"), &format!("data:image/png,{data}"));
        }
    }
    assert!(!html.contains("cid:"), "{html}");
    html
}

/// The digest of a real sweeper, as it came.
async fn delivered() -> (String, TempDir) {
    let (smtp, folder) = (Smtp::start().await, tempfile::tempdir().unwrap());
    // It comes at this minute, so that it has this hour in its chart.
    let at = jiff::Timestamp::now().strftime("%H:%M").to_string();
    let lists = format!(r#"[{{ name = "everyone", to = ["ops@example.org"], every = "day", at = "{at}" }}]"#);
    let site = Site::sqlite(folder.path(), &lists, Some(&smtp)).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    site.begun(&["everyone"]).await;
    for number in 1..=12 {
        quiet::report(&sweeper, &format!("a-machine-with-a-rather-long-name-{number}")).await;
    }
    sweeper.sweep().await;
    sweeper.stop().await;
    site.miss(1).await;
    sweeper.start_again().await;
    arrived(&smtp, 1).await;
    sweeper.stop().await;
    (page(&smtp), folder)
}

/// A preview whose every text is as long and as hard to break as it can be.
fn unbreakable(digest: &str) -> String {
    let mut digest: serde_json::Value = serde_json::from_str(digest).unwrap();
    let long = "w".repeat(500);
    let finding = serde_json::json!({
        "finding_id": long, "name": long, "kind": long, "place": long, "owner": long, "lasts": "PT999999H",
        "rate": i64::MAX, "spent": i64::MAX,
    });
    let sum = serde_json::json!({ "known": i64::MAX, "count": 12, "unknown": 7 });
    digest["owner"] = long.clone().into();
    digest["open"] = serde_json::json!({ "first": vec![finding; 12], "count": 12, "sum": sum });
    digest["classes"] = serde_json::json!([{ "name": long, "count": 12, "per_hour": sum }]);
    digest["unread"] = vec![long; 12].into();
    for day in digest["days"].as_array_mut().unwrap() {
        day["cost"] = sum.clone();
    }
    let digest = serde_json::from_value(digest).unwrap();
    notifier::email::preview(&digest).unwrap().html
}

#[tokio::test]
async fn a_digest_is_html_that_mail_programs_know() {
    let (html, folder) = delivered().await;
    let checked = mail::check(&html, folder.path());
    assert_eq!(checked.html, Vec::<String>::new());
    let unknown: Vec<&str> = checked.unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, DISPENSABLE.map(|(feature, _)| feature), "{:#?}", checked.unknown);
    // What the checkers find where there is something to find.
    let broken = "<!DOCTYPE html><html lang=\"en\"><head><title>x</title></head><body><table><tr><td style=\"display:grid\">x</table></body></html>";
    let checked = mail::check(broken, folder.path());
    assert!(!checked.html.is_empty() && checked.unknown.contains_key("display:grid"), "{checked:?}");
}

#[tokio::test]
async fn a_digest_is_as_wide_as_its_readers_screen() {
    let (html, folder) = delivered().await;
    // The chart of the days, and the bar of one class.
    for width in [1_280, 390] {
        let LaidOut { width: content, height, pictures, broken } = browser::lay_out(&html, width, folder.path()).await;
        assert!(content <= width, "{content} px on a screen of {width} px");
        assert_eq!((pictures, broken), (2, 0), "at {width} px");
        assert!(height > 800, "{height} px: something is missing");
    }
    // What the browser says of a page that is wider.
    let wide =
        "<!DOCTYPE html><title>x</title><div style=\"width:500px\">x</div><img src=\"data:image/png,x\" alt=\"x\">";
    let wide = browser::lay_out(wide, 390, folder.path()).await;
    assert!(wide.width > 390 && (wide.pictures, wide.broken) == (0, 1), "{wide:?}");
}

#[tokio::test]
async fn what_cannot_be_broken_is_broken_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::sqlite(folder.path(), LISTS, None).await;
    let mut sweeper = site.serve(folder.path(), "first").await;
    let preview = sweeper.run(&["digest", "--preview", "--output", "json"]).await;
    sweeper.stop().await;
    let html = unbreakable(&String::from_utf8(preview.stdout).unwrap());
    for width in [1_280, 390] {
        let laid_out = browser::lay_out(&html, width, folder.path()).await;
        assert!(laid_out.width <= width && laid_out.broken == 0, "{laid_out:?} on a screen of {width} px");
    }
    assert_eq!(mail::check(&html, folder.path()).html, Vec::<String>::new());
}
