//! A parsed TOML document with the place of each part, and the few kinds of values that a rules file has.

use crate::error::{RulesError, shown};
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Most entries of one list.
pub(crate) const MAX_ENTRIES: usize = 4_096;
/// Longest text, in bytes: the longest name of a file or cgroup.
const MAX_TEXT_BYTES: usize = 255;

/// The file as text, within bounds.
pub(crate) fn text(file: &[u8]) -> Result<&str, RulesError> {
    if file.len() > crate::MAX_FILE_BYTES {
        return Err(RulesError {
            line: 1,
            column: 1,
            what: format!("the file has {} bytes", file.len()),
            remedy: format!("shorten it to {} bytes", crate::MAX_FILE_BYTES),
        });
    }
    std::str::from_utf8(file).map_err(|error| {
        let before = file.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok());
        let before = before.unwrap_or_default();
        let (line, column) = place(before, before.len());
        let remedy = "save the file as UTF-8".to_owned();
        RulesError { line, column, what: "this is not UTF-8".to_owned(), remedy }
    })
}

/// What the TOML parser says.
pub(crate) fn syntax(text: &str, error: &toml::de::Error) -> RulesError {
    let (line, column) = place(text, error.span().map_or(0, |span| span.start));
    let message: String = error.message().chars().take(200).flat_map(crate::error::escaped).collect();
    let message = message.replace("\\n", ", ");
    RulesError { line, column, what: format!("not valid TOML: {message}"), remedy: "correct this line".to_owned() }
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().map_or(1, |last| last.chars().count() + 1))
}

/// A text of the file, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) value: &'a str,
    file: &'a str,
    span: Range<usize>,
}

impl Text<'_> {
    /// Refuses this text.
    pub(crate) fn refuse(&self, what: &str, remedy: &str) -> RulesError {
        let (line, column) = place(self.file, self.span.start);
        RulesError { line, column, what: what.to_owned(), remedy: remedy.to_owned() }
    }

    /// The text as it may be shown.
    pub(crate) fn shown(&self) -> String {
        shown(self.value)
    }
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    file: &'a str,
    name: &'static str,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    pub(crate) fn top(file: &'a str, document: &'a Spanned<DeTable<'a>>) -> Self {
        Self { file, name: "the file", span: 0..0, table: document.get_ref() }
    }

    /// Refuses the section as a whole.
    pub(crate) fn refuse(&self, what: &str, remedy: &str) -> RulesError {
        self.at(&self.span, what.to_owned(), remedy.to_owned())
    }

    fn at(&self, span: &Range<usize>, what: String, remedy: String) -> RulesError {
        let (line, column) = place(self.file, span.start);
        RulesError { line, column, what, remedy }
    }

    /// Refuses the first key, in the file's order, that is none of these.
    pub(crate) fn only(&self, keys: &[&str]) -> Result<(), RulesError> {
        let unknown = self.table.iter().map(|(key, _)| key).filter(|key| !keys.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let near = keys.iter().map(|known| (strsim::jaro_winkler(key.get_ref(), known), *known));
        let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, known)| known);
        let remedy = format!("the nearest key is `{near}`; {} has {}", self.name, keys.join(", "));
        Err(self.at(&key.span(), format!("unknown key {}", shown(key.get_ref())), remedy))
    }

    fn wrong(&self, value: &Spanned<DeValue<'_>>, key: &str, expected: &str) -> RulesError {
        let what = format!("`{key}` is of type {}", value.get_ref().type_str());
        self.at(&value.span(), what, format!("give {expected}"))
    }

    fn as_text(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Result<Text<'a>, RulesError> {
        let DeValue::String(value_text) = value.get_ref() else {
            return Err(self.wrong(value, key, "a text in quotes"));
        };
        let text = Text { value: value_text.as_ref(), file: self.file, span: value.span() };
        if text.value.is_empty() {
            return Err(text.refuse(&format!("an empty text in `{key}`"), "write a name, or take the entry away"));
        }
        if text.value.len() > MAX_TEXT_BYTES {
            let what = format!("a text of {} bytes in `{key}`", text.value.len());
            return Err(text.refuse(&what, "write at most 255 bytes"));
        }
        if text.value.chars().any(char::is_control) {
            return Err(text.refuse(&format!("a control character in `{key}`"), "write printable characters only"));
        }
        Ok(text)
    }

    /// A text, if the key is there.
    pub(crate) fn text(&self, key: &str) -> Result<Option<Text<'a>>, RulesError> {
        self.table.get(key).map(|value| self.as_text(key, value)).transpose()
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self, key: &str, remedy: &str) -> Result<Text<'a>, RulesError> {
        self.text(key)?.ok_or_else(|| self.refuse(&format!("`{key}` is missing in {}", self.name), remedy))
    }

    /// A whole number from 0 to `most`, if the key is there.
    pub(crate) fn number(&self, key: &str, most: u32) -> Result<Option<u32>, RulesError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong(value, key, "a whole number"));
        };
        match u32::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => {
                let what = format!("`{key}` is {}", shown(number.as_str()));
                Err(self.at(&value.span(), what, format!("give a whole number from 0 to {most}")))
            }
        }
    }

    /// A list of texts; empty if the key is not there.
    pub(crate) fn list(&self, key: &str, most: usize) -> Result<Vec<Text<'a>>, RulesError> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(entries) = value.get_ref() else {
            return Err(self.wrong(value, key, "a list of texts: [\"one\", \"two\"]"));
        };
        if entries.len() > most {
            let what = format!("`{key}` has {} entries", entries.len());
            return Err(self.at(&value.span(), what, format!("keep at most {most}")));
        }
        entries.iter().map(|entry| self.as_text(key, entry)).collect()
    }

    /// A table of texts, in the file's order; empty if the key is not there.
    pub(crate) fn pairs(&self, key: &str, most: usize) -> Result<Vec<(Text<'a>, Text<'a>)>, RulesError> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(value, key, "a table of texts: { \"from\" = \"to\" }"));
        };
        if table.len() > most {
            let what = format!("`{key}` has {} entries", table.len());
            return Err(self.at(&value.span(), what, format!("keep at most {most}")));
        }
        let pair = |(from, to): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let from: &'a Spanned<std::borrow::Cow<'a, str>> = from;
            let name = Text { value: from.get_ref().as_ref(), file: self.file, span: from.span() };
            Ok((name, self.as_text(key, to)?))
        };
        let mut pairs = table.iter().map(pair).collect::<Result<Vec<_>, RulesError>>()?;
        pairs.sort_by_key(|(from, _)| from.span.start);
        Ok(pairs)
    }

    /// A table, if the key is there.
    pub(crate) fn section(&self, name: &'static str) -> Result<Option<Section<'a>>, RulesError> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(Section { file: self.file, name, span: value.span(), table })),
            _ => Err(self.wrong(value, name, &format!("a table: [{name}]"))),
        }
    }

    /// The tables of a list; empty if the key is not there.
    pub(crate) fn sections(&self, name: &'static str) -> Result<Vec<Section<'a>>, RulesError> {
        let Some(value) = self.table.get(name) else { return Ok(Vec::new()) };
        let expected = format!("tables, each under [[{name}]]");
        let DeValue::Array(entries) = value.get_ref() else { return Err(self.wrong(value, name, &expected)) };
        if entries.len() > MAX_ENTRIES {
            let what = format!("there are {} [[{name}]] entries", entries.len());
            return Err(self.at(&value.span(), what, format!("keep at most {MAX_ENTRIES}")));
        }
        let section = |entry: &'a Spanned<DeValue<'a>>| match entry.get_ref() {
            DeValue::Table(table) => Ok(Section { file: self.file, name, span: entry.span(), table }),
            _ => Err(self.wrong(entry, name, &expected)),
        };
        entries.iter().map(section).collect()
    }
}
