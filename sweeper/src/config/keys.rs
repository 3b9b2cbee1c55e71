//! The names of all keys, read off the configuration types themselves, and the one that resembles a misspelt name most.

use super::Config;
use serde_json::Value;

/// One valid key, `section.key` or a key outside any section.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    /// Its default, which also shows its type; `null` is an optional text.
    pub(super) default: Value,
}

impl Key {
    /// The environment variable that overrides this key.
    pub(super) fn variable(&self) -> String {
        format!("{}{}", super::load::PREFIX, self.name.replace('.', "__").to_uppercase())
    }
}

/// Every valid key. Free keys inside a table (`onprem.hourly_usd`) count as that table's value.
pub(super) fn all() -> Vec<Key> {
    let Ok(Value::Object(sections)) = serde_json::to_value(Config::default()) else { return Vec::new() };
    let mut keys = Vec::new();
    for (section, value) in sections {
        match value {
            Value::Object(entries) => keys.extend(
                entries.into_iter().map(|(entry, default)| Key { name: format!("{section}.{entry}"), default }),
            ),
            default => keys.push(Key { name: section, default }),
        }
    }
    keys
}

fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The valid name that resembles `wrong` most. A right name in the wrong section is found too.
pub(super) fn nearest<'a>(wrong: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    let score = |name: &str| {
        let whole = strsim::normalized_damerau_levenshtein(wrong, name);
        let last = strsim::normalized_damerau_levenshtein(leaf(wrong), leaf(name));
        whole.max(last * 0.9)
    };
    valid.into_iter().max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_wrong_sections_lead_to_the_meant_key() {
        let keys = all();
        for (wrong, meant) in [
            ("ingest.clock_skw", "ingest.clock_skew"),
            ("verdict.idleafter", "verdict.idle_after"),
            ("clock_skew", "ingest.clock_skew"),
            ("sweep.idle_after", "verdict.idle_after"),
            ("datadir", "data_dir"),
            ("outbox.discarded_after", "outbox.discard_after"),
        ] {
            assert_eq!(nearest(wrong, keys.iter().map(|key| key.name.as_str())), meant, "{wrong}");
        }
    }
}
