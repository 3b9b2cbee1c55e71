//! A command line as the kernel keeps it: words with a closing zero each, of any bytes, cut at a limit.

/// Longest name that leaves this module, in bytes.
pub const MAX_TEXT_BYTES: usize = 128;
/// Between the words of a value.
const SEPARATORS: [char; 9] = [' ', '/', ',', ';', '&', ':', '=', '"', '\''];
/// Most words that are looked at.
const MAX_WORDS: usize = 4_096;

/// The words of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argv(Vec<Vec<u8>>);

impl Argv {
    /// Splits a command line. A last word that was cut is dropped: half a word names nothing.
    #[must_use]
    pub fn parse(bytes: &[u8], is_cut: bool) -> Self {
        let mut words: Vec<Vec<u8>> = bytes.split(|byte| *byte == 0).take(MAX_WORDS).map(<[u8]>::to_vec).collect();
        if is_cut || words.last().is_some_and(Vec::is_empty) {
            words.pop();
        }
        Self(words)
    }

    /// One word.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.0.get(index).map(Vec::as_slice)
    }

    /// The words from this one on.
    pub fn from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        self.0.iter().skip(index).map(Vec::as_slice)
    }

    /// The value of an option, as `--option value` or `--option=value`.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&[u8]> {
        let option = option.as_bytes();
        let at = self.0.iter().skip(1).position(|word| {
            word == option
                || word
                    .strip_prefix(option)
                    .is_some_and(|rest| option.starts_with(b"--") && rest.first() == Some(&b'='))
        })? + 1;
        let word = self.get(at)?;
        if word == option { self.get(at + 1) } else { word.get(option.len() + 1..) }
    }

    /// The value of the first of these options that is there. Values that follow it up to the next option are counted.
    #[must_use]
    pub fn values(&self, options: &[String]) -> Option<Vec<u8>> {
        options.iter().find_map(|option| {
            let first = self.value(option)?;
            let at = self.0.iter().position(|word| word == option.as_bytes());
            let more = at.map_or(0, |at| self.from(at + 2).take_while(|word| !word.starts_with(b"-")).count());
            let mut value = first.to_vec();
            if more > 0 {
                value.extend_from_slice(format!(" +{more}").as_bytes());
            }
            Some(value)
        })
    }
}

/// The last part of a path.
#[must_use]
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Bytes of a stranger's choice as a name: cut, without control characters, without what looks like a secret.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let whole = String::from_utf8_lossy(bytes);
    let mut text = String::new();
    for part in whole.split_inclusive(SEPARATORS) {
        let word = part.strip_suffix(SEPARATORS).unwrap_or(part);
        if is_secret(word) || (text.ends_with('=') && names_secret(&text)) {
            text.push_str("***");
        } else {
            push_escaped(&mut text, word);
        }
        push_escaped(&mut text, &part[word.len()..]);
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}

fn push_escaped(text: &mut String, word: &str) {
    for c in word.chars() {
        // Marks that turn the direction of writing round or join characters can make a name look like another one.
        let is_mark =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || is_mark { text.extend(c.escape_default()) } else { text.push(c) }
    }
}

/// `… password=`: the last word before the sign of equality says what follows.
fn names_secret(text: &str) -> bool {
    let name = text.trim_end_matches('=').rsplit([' ', '/', ',', ';', '&', ':', '"', '\'']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "secret", "token", "credential", "apikey", "api_key", "api-key", "access_key", "private"]
        .iter()
        .any(|word| name.contains(word))
}

/// The shapes of well-known keys, and long words of mixed case and digits as only machines make them.
fn is_secret(word: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "AKIA",
        "ASIA",
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "eyJ",
        "sk-",
        "AIza",
    ];
    if word.contains('@') && word.len() > 1 {
        // `user:password@host`: the colon has split it, and the rest is nobody's business either.
        return true;
    }
    let begins = word.len() >= 12 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
    let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
    let is_random = word.len() >= 24
        && count(char::is_ascii_digit) >= 3
        && count(char::is_ascii_uppercase) >= 3
        && count(char::is_ascii_lowercase) >= 3
        && !word.contains(['.', '_']);
    begins || is_random
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_half_a_word_is_dropped() {
        let argv = Argv::parse(b"a\0--b\0c\0", false);
        assert_eq!(argv.value("--b"), Some(b"c".as_slice()));
        assert_eq!(Argv::parse(b"a\0--b=c\0d\0", false).value("--b"), Some(b"c".as_slice()));
        assert_eq!(Argv::parse(b"a\0bcd", true), Argv::parse(b"a\0", false));
        assert_eq!(Argv::parse(b"", false).get(0), None);
        assert_eq!(Argv::parse(b"a\0\0b\0", false).get(1), Some(b"".as_slice()));
    }

    #[test]
    fn names_can_do_no_harm() {
        for (bytes, expected) in [
            (b"align.py".as_slice(), "align.py"),
            (b"a\x1b[31mred\r\n", "a\\u{1b}[31mred\\r\\n"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            ("gpj.\u{202e}exe".as_bytes(), "gpj.\\u{202e}exe"),
            (b"bwa_map:sample=A", "bwa_map:sample=A"),
        ] {
            assert_eq!(text(bytes), expected);
        }
        assert!(text(&[0x1b; 4_096]).len() <= MAX_TEXT_BYTES);
        assert!(text("ä".repeat(4_096).as_bytes()).len() <= MAX_TEXT_BYTES);
    }

    #[test]
    fn what_looks_like_a_secret_is_struck_out() {
        for (bytes, expected) in [
            ("run:token=hunter2", "run:token=***"),
            ("run:db_password=hunter2,sample=A", "run:db_password=***,sample=A"),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("x/ghp_0123456789abcdef0123456789abcdef0123", "x/***"),
            ("me:hunter2@host/repo", "me:***/repo"),
            ("align:key=wJalrXUtnFEMI7K1MDENG3bPxRfiCYEXAMPLEKEY", "align:key=***"),
            ("8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11", "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11"),
        ] {
            assert_eq!(text(bytes.as_bytes()), expected);
        }
    }
}
