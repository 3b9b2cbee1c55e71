//! A digest as an email: headers, plain text, and HTML with its bars as inline pictures. Pure.
//!
//! The HTML is laid out as that of findings is. Pictures come with the mail (`multipart/related`), so that nothing is fetched when it is read; whoever sees none misses nothing, since each
//! amount stands beside its bar. The only link, where there is one, leads to the page that stops the digests of this list to this address: following it changes nothing. Up to 30 kB, and 4 kB of pictures.

use super::message::{RenderError, message_id, raw};
use crate::{
    charts::{self, Column, Length},
    digest::{self, Digest, DigestView},
    text::{clean, fit},
};
use askama::Template;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lettre::message::{Attachment, Mailbox, Message, MultiPart, SinglePart, header::ContentType};
use std::{collections::BTreeMap, time::SystemTime};
use url::Url;

const SUBJECT_LIMIT: usize = 180;
/// Longest name of a list in its id.
const LIST_LIMIT: usize = 63;

#[derive(Template)]
#[template(path = "digest.html")]
struct Html<'a> {
    view: &'a DigestView,
    days: Option<String>,
    bars: Vec<(&'a digest::ClassBar, Option<String>)>,
    unsubscribe: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "digest.txt", escape = "none")]
struct Text<'a> {
    view: &'a DigestView,
    unsubscribe: Option<&'a str>,
}

/// A picture of a mail.
struct Picture {
    /// What names it in this mail: `days`, `bar-50`.
    name: String,
    png: Vec<u8>,
}

/// Subject, plain text and HTML.
pub(super) struct Content {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
    pictures: Vec<Picture>,
}

/// What is written; `source` says how the HTML names a picture.
fn content(
    digest: &Digest,
    unsubscribe: Option<&str>,
    source: impl Fn(&Picture) -> String,
) -> Result<Content, RenderError> {
    let view = digest::view_of(digest);
    let mut pictures = Vec::new();
    let mut days = None;
    if view.days.iter().any(|day| day.column != Column::Known(Length::of(0, 0))) {
        let columns: Vec<Column> = view.days.iter().map(|day| day.column).collect();
        let picture = Picture { name: "days".to_owned(), png: charts::columns(&columns)? };
        days = Some(source(&picture));
        pictures.push(picture);
    }
    let lengths = view.classes.iter().filter_map(|class| class.length).filter(|length| length.percent() > 0);
    let mut sources = BTreeMap::new();
    for length in lengths {
        if let std::collections::btree_map::Entry::Vacant(new) = sources.entry(length) {
            let picture = Picture { name: format!("bar-{}", length.percent()), png: charts::bar(length)? };
            new.insert(source(&picture));
            pictures.push(picture);
        }
    }
    let bar = |class: &digest::ClassBar| class.length.and_then(|length| sources.get(&length).cloned());
    let bars = view.classes.iter().map(|class| (class, bar(class))).collect();
    Ok(Content {
        subject: fit(&clean(&format!("[Cloud Sweeper] {}", view.subject)), SUBJECT_LIMIT),
        text: Text { view: &view, unsubscribe }.render()?,
        html: Html { view: &view, days, bars, unsubscribe }.render()?,
        pictures,
    })
}

/// Plain text and HTML for a screen, whose pictures are part of the HTML itself.
pub(super) fn preview(digest: &Digest) -> Result<(String, String), RenderError> {
    let source = |picture: &Picture| format!("data:image/png;base64,{}", STANDARD.encode(&picture.png));
    let content = content(digest, None, source)?;
    Ok((format!("{}\n\n{}", content.subject, content.text), content.html))
}

/// To whom a digest goes, and where its reader can stop it.
pub(super) struct Addressed<'a> {
    pub(super) from: &'a Mailbox,
    pub(super) to: Mailbox,
    /// Takes a POST without a login (RFC 8058).
    pub(super) unsubscribe: Option<&'a Url>,
    /// The same for each attempt.
    pub(super) idempotency_key: &'a str,
}

/// The whole message, ready for the wire.
pub(super) fn render(digest: &Digest, addressed: &Addressed<'_>, now: SystemTime) -> Result<Message, RenderError> {
    let Addressed { from, to, unsubscribe, idempotency_key } = addressed;
    let id = message_id(idempotency_key, from);
    // A picture's id is as unique as the message's.
    let picture_id = |picture: &Picture| format!("{}.{}", picture.name, id.trim_matches(['<', '>']));
    let content = content(digest, unsubscribe.map(Url::as_str), |picture| format!("cid:{}", picture_id(picture)))?;
    let list = list_id(&digest.list, from);
    let mut builder = Message::builder()
        .from((*from).clone())
        .subject(content.subject)
        .date(now)
        .message_id(Some(id.clone()))
        // RFC 3834: no out-of-office replies, please.
        .raw_header(raw("Auto-Submitted", "auto-generated"))
        .raw_header(raw("List-Id", &list));
    if let Some(url) = unsubscribe {
        // RFC 8058: a mail program POSTs to it where its reader wants no more of these; nothing else does.
        builder = builder
            .raw_header(raw("List-Unsubscribe", &format!("<{url}>")))
            .raw_header(raw("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"));
    }
    let inline = |picture: &Picture| {
        let name = format!("{}.png", picture.name);
        Attachment::new_inline_with_name(picture_id(picture), name).body(picture.png.clone(), png())
    };
    let related = MultiPart::related().singlepart(SinglePart::html(content.html));
    let related = content.pictures.iter().fold(related, |parts, picture| parts.singlepart(inline(picture)));
    let parts = MultiPart::alternative().singlepart(SinglePart::plain(content.text)).multipart(related);
    Ok(builder.to(to.clone()).multipart(parts)?)
}

fn png() -> ContentType {
    // A constant that is one.
    ContentType::parse("image/png").unwrap_or(ContentType::TEXT_PLAIN)
}

/// `Cloud Sweeper digest <everyone.digest.example.org>` (RFC 2919): by it mail programs sort.
fn list_id(list: &str, from: &Mailbox) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = list.chars().take(LIST_LIMIT).map(plain).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "list" } else { name };
    format!("Cloud Sweeper digest <{name}.digest.{}>", from.email.domain())
}
