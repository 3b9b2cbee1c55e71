//! Makes untrusted text safe to show: names and tags come from whoever may create a machine.
//!
//! Removed: control characters, bidirectional overrides (they can make `moc.live` read as
//! `evil.com`), and characters that have no width. Any white space, line breaks included, becomes
//! one space, so one value can never pretend to be two lines. Cost: one pass, one allocation.

/// The text on one line, without anything that a reader cannot see.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = true;
        } else if !is_invisible(c) {
            if gap && !out.is_empty() {
                out.push(' ');
            }
            gap = false;
            out.push(c);
        }
    }
    out
}

/// Controls, format characters and tags that change what a reader sees without being seen.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The text, cut to at most `limit` UTF-16 units, an ellipsis included. UTF-16 because no server
/// counts more than that for one character: what fits so, fits for code points, too.
pub(crate) fn fit(text: &str, limit: usize) -> String {
    fit_with(text, limit, |c, out| out.push(c))
}

/// Escaped for Slack's mrkdwn (`&`, `<`, `>`), then cut to `limit`; never cuts an escape in two.
/// <https://docs.slack.dev/messaging/formatting-message-text#escaping>
pub(crate) fn mrkdwn(text: &str, limit: usize) -> String {
    fit_with(text, limit, |c, out| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    })
}

fn fit_with(text: &str, limit: usize, write: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    let mut used = 0;
    // The longest prefix that still leaves room for the ellipsis.
    let mut safe = 0;
    for c in text.chars() {
        let before = out.len();
        write(c, &mut out);
        used += out.get(before..).map_or(0, |s| s.encode_utf16().count());
        if used > limit {
            out.truncate(safe);
            if limit > 0 {
                out.push('…');
            }
            return out;
        }
        if used < limit {
            safe = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{clean, fit, mrkdwn};

    #[test]
    fn one_line_and_nothing_hidden() {
        assert_eq!(clean("  web\r\n\t01  "), "web 01");
        assert_eq!(clean("a\u{202E}evil\u{2066}b\u{200B}c\u{0007}\u{9b}"), "aevilbc");
        assert_eq!(clean("Größe 機械 🖥"), "Größe 機械 🖥");
    }

    #[test]
    fn cuts_between_characters_and_says_so() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(fit("🖥🖥🖥", 4), "🖥…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(mrkdwn("a<b", 5), "a…");
        assert_eq!(mrkdwn("a<b", 6), "a&lt;b");
    }

    proptest! {
        #[test]
        fn fits(text in any::<String>(), limit in 0_usize..200) {
            prop_assert!(fit(&text, limit).encode_utf16().count() <= limit);
            let escaped = mrkdwn(&text, limit);
            prop_assert!(escaped.encode_utf16().count() <= limit);
            let unescaped_amp = escaped.match_indices('&').any(|(at, _)| {
                let rest = &escaped[at..];
                !["&amp;", "&lt;", "&gt;"].iter().any(|e| rest.starts_with(e))
            });
            prop_assert!(!escaped.contains(['<', '>']) && !unescaped_amp);
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in any::<String>()) {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once.clone());
            prop_assert!(!once.contains(char::is_control));
        }
    }
}
