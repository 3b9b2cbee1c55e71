//! Findings as an email: headers, plain text and HTML that say the same. Pure.
//!
//! The HTML is one table of at most 600 px with inline styles, which is what mail programs agree
//! on; dark mode through a media query that others ignore; no image, script, font or other fetch.
//! Askama escapes every value. About 8 kB.

use std::time::SystemTime;

use askama::Template;
use lettre::message::{
    Mailbox, Message, MessageBuilder, MultiPart,
    header::{ContentType, HeaderName, HeaderValue},
};
use sha2::{Digest, Sha256};

use crate::{
    bundle::{self, BundleView, Notice},
    message::FindingNotice,
    text::{clean, fit},
    view::{Severity, View, view_of},
};

const SUBJECT_LIMIT: usize = 180;

/// From whom and to whom.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    pub(super) from: Mailbox,
    pub(super) to: Vec<Mailbox>,
}

/// Why no message could be made; with checked addresses this is a fault of this crate.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderError {
    #[error("the email could not be laid out")]
    Template(#[from] askama::Error),
    #[error("the email could not be assembled")]
    Assemble(#[from] lettre::error::Error),
    #[error("a picture of the email could not be drawn")]
    Draw(#[from] png::EncodingError),
}

#[derive(Template)]
#[template(path = "finding.html")]
struct Html<'a> {
    view: &'a View,
    look: Look,
}

#[derive(Template)]
#[template(path = "finding.txt", escape = "none")]
struct Text<'a> {
    view: &'a View,
}

#[derive(Template)]
#[template(path = "bundle.html")]
struct BundleHtml<'a> {
    view: &'a BundleView,
    look: Look,
}

#[derive(Template)]
#[template(path = "bundle.txt", escape = "none")]
struct BundleText<'a> {
    view: &'a BundleView,
}

/// How a severity looks: a word, and a colour that is readable on white and on black.
struct Look {
    word: &'static str,
    colour: &'static str,
}

impl Look {
    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Waste => Self { word: "Waste", colour: "#b45309" },
            Severity::Blind => Self { word: "Blind spot", colour: "#4b5563" },
            Severity::Broken => Self { word: "Stuck", colour: "#b91c1c" },
            Severity::Over => Self { word: "Over", colour: "#15803d" },
            Severity::Done => Self { word: "Done", colour: "#15803d" },
            Severity::Voided => Self { word: "Not done", colour: "#4b5563" },
            Severity::Failed => Self { word: "Failed", colour: "#b91c1c" },
        }
    }
}

/// Subject, plain text and HTML, and a header that says what it is about.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
    about: HeaderValue,
}

/// What is written, without the other headers.
pub(super) fn content(notice: &Notice<'_>) -> Result<Content, askama::Error> {
    match notice {
        Notice::One(notice) => one(notice),
        Notice::Several(bundle) => several(&bundle::view_of(bundle)),
    }
}

fn one(notice: &FindingNotice) -> Result<Content, askama::Error> {
    let view = view_of(notice);
    Ok(Content {
        subject: subject(&view.headline),
        text: Text { view: &view }.render()?,
        html: Html { view: &view, look: Look::of(view.severity) }.render()?,
        about: raw("X-Cloud-Sweeper-Finding", &view.finding_id),
    })
}

fn several(view: &BundleView) -> Result<Content, askama::Error> {
    Ok(Content {
        subject: subject(&view.headline),
        text: BundleText { view }.render()?,
        html: BundleHtml { view, look: Look::of(view.severity) }.render()?,
        about: raw("X-Cloud-Sweeper-Findings", &view.findings.to_string()),
    })
}

fn subject(headline: &str) -> String {
    fit(&format!("[Cloud Sweeper] {headline}"), SUBJECT_LIMIT)
}

/// Which message it is, and which one it answers.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    /// The same for each attempt.
    pub(super) idempotency_key: &'a str,
    /// `Message-ID` of another one.
    pub(super) answers: Option<&'a str>,
}

/// The whole message, ready for the wire.
pub(super) fn render(
    notice: &Notice<'_>,
    key: &Key<'_>,
    addresses: &Addresses,
    now: SystemTime,
) -> Result<Message, RenderError> {
    let content = content(notice)?;
    let mut builder = begun(addresses, &content.subject, key.idempotency_key, now).raw_header(content.about);
    // Only what is an id of ours goes into a header.
    if let Some(answered) = key.answers.filter(|id| id.starts_with('<') && id.ends_with('>') && id.len() <= 320) {
        let id = clean(answered);
        builder = builder.in_reply_to(id.clone()).references(id);
    }
    let parts = MultiPart::alternative_plain_html(content.text, content.html);
    Ok(to_all(builder, addresses).multipart(parts)?)
}

/// A mail that says that it is a test.
pub(super) fn test(idempotency_key: &str, addresses: &Addresses, now: SystemTime) -> Result<Message, RenderError> {
    let text = "This is a test of Cloud Sweeper (`sweeper doctor --send-test`): alerts will come to this address. Nothing needs doing.\n";
    let builder = begun(addresses, &subject("a test"), idempotency_key, now);
    Ok(to_all(builder, addresses).header(ContentType::TEXT_PLAIN).body(text.to_owned())?)
}

/// What all have in common but their recipients.
fn begun(addresses: &Addresses, subject: &str, idempotency_key: &str, now: SystemTime) -> MessageBuilder {
    Message::builder()
        .from(addresses.from.clone())
        .subject(subject)
        .date(now)
        .message_id(Some(message_id(idempotency_key, &addresses.from)))
        // RFC 3834: no out-of-office replies, please.
        .raw_header(raw("Auto-Submitted", "auto-generated"))
}

fn to_all(builder: MessageBuilder, addresses: &Addresses) -> MessageBuilder {
    addresses.to.iter().fold(builder, |builder, to| builder.to(to.clone()))
}

/// The same for each attempt at the same (event, channel), so that mail programs and people can
/// tell a repetition: `<` + 40 hex digits of the key's SHA-256 + `.cloud-sweeper@DOMAIN>`.
pub(super) fn message_id(idempotency_key: &str, from: &Mailbox) -> String {
    let digest = hex::encode(Sha256::digest(idempotency_key.as_bytes()));
    let id = digest.get(..40).unwrap_or(&digest);
    format!("<{id}.cloud-sweeper@{}>", from.email.domain())
}

pub(super) fn raw(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), clean(value))
}
