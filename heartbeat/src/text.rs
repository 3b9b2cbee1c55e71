//! Names that a stranger chose, made safe to show: the one escaping for terminals, logs, pages and metrics.
//!
//! A process, a cgroup or a file may be called anything. What a reader cannot see, or what would change how the rest is
//! seen, is shown as `\u{…}`: control characters (and with them every escape sequence of a terminal), line and paragraph
//! separators, characters that reverse the direction of text (`moc.live` must not read as `evil.com`), and characters
//! without any width. Everything else stays as it is, other scripts included. Text that has been made visible stays the
//! same when it is made visible again. Cost: one pass; no allocation where there is nothing to do.

use std::{borrow::Cow, fmt::Write as _};

/// Whether this character would act on a reader's screen, or hide.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The text with everything hidden made visible.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Bytes that should be text, as the kernel gives names: what is no UTF-8 is shown as `\xNN`.
#[must_use]
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a String does not fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// JSON whose hidden characters, most of which JSON itself lets through, are escaped as JSON does it. Line breaks between its
/// parts stay.
#[must_use]
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let harmful = |c: char| c != '\n' && is_hidden(c);
    if !json.contains(harmful) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The beginning of a text, cut between two characters to at most `max_bytes`.
#[must_use]
pub fn cut(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_on_a_screen_is_shown_and_what_people_write_stays() {
        for (text, shown) in [
            ("web-1 ü 機 🖥", "web-1 ü 機 🖥"),
            ("a\u{1b}[2Jb\r\n", "a\\u{1b}[2Jb\\u{d}\\u{a}"),
            ("\u{9b}31mred", "\\u{9b}31mred"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("a\u{200b}b\u{2066}c\u{feff}", "a\\u{200b}b\\u{2066}c\\u{feff}"),
            ("line\u{2028}separator", "line\\u{2028}separator"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_bytes(b"ok\xff\xfe\x1b"), "ok\\xff\\xfe\\u{1b}");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((cut("aä", 2), cut("aä", 3), cut("aä", 99), cut("ä", 0)), ("a", "aä", "aä", ""));
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_the_visible_stays(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let shown = visible(&text).into_owned();
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(visible(&shown).into_owned(), shown.clone());
            prop_assert!(!visible_bytes(&bytes).contains(is_hidden));
            prop_assert_eq!(visible_bytes(text.as_bytes()), shown);
        }

        #[test]
        fn escaped_json_is_the_same_json(text in any::<String>(), tag in "[\u{202e}\u{e0041}\u{7f}\u{1b}a]{0,8}") {
            let json = serde_json::to_string_pretty(&[&text, &tag]).unwrap_or_default();
            let shown = visible_json(&json);
            prop_assert!(!shown.contains(|c: char| c != '\n' && is_hidden(c)));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap_or_default(), [text, tag]);
        }
    }
}
