//! Which workload a cgroup is: kind and name, from its path alone.
//!
//! The innermost container names a workload, else the outermost batch job, else the innermost unit or login session; of a
//! container inside a job both stay known. The same on cgroup v1, v2 and hybrid hosts: only the path counts. A path is
//! looked at once in its life, in its first 64 segments; names in it are strangers' choice, so an id is cut at 256 bytes and has no
//! characters that act on a screen or hide.

use std::collections::BTreeMap;
use workload_rules::{Attribution, Level, Rules};

/// Deeper nesting than this names nothing: Kubernetes inside Docker inside a Slurm job has 12.
const MAX_SEGMENTS: usize = 64;
/// Longest id, in bytes: a pod's and a container's together have 101.
const MAX_ID_BYTES: usize = 256;

/// What a workload is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// `docker`, `kubernetes`, `slurm`: see `[[attribution]]` in the rules.
    pub kind: String,
    /// Its id there.
    pub id: String,
}

/// What a cgroup's path says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributed {
    /// The workload; `None` where the path says no more than itself.
    pub name: Option<Name>,
    /// The batch job that it belongs to, also if a container inside names it.
    pub job: Option<Name>,
}

/// What the paths of the rows say. As many are kept as there are rows: 508 at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<String, Attributed>);

impl Names {
    /// Knows these keys and no others; what was known already is not looked at again.
    pub fn refresh<'a>(&mut self, rules: &Rules, keys: impl Iterator<Item = &'a str>) {
        let mut known = std::mem::take(&mut self.0);
        self.0 = keys
            .map(|key| known.remove_entry(key).unwrap_or_else(|| (key.to_owned(), attribute(rules, key))))
            .collect();
    }

    /// What the path of a row says.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<&Attributed> {
        self.0.get(key)
    }

    /// The batch job that a cgroup belongs to, also if its path is new.
    #[must_use]
    pub fn job(&self, rules: &Rules, path: &str) -> Option<Name> {
        self.of(path).map_or_else(|| attribute(rules, path).job, |known| known.job.clone())
    }
}

/// What the path of a cgroup says by these rules.
#[must_use]
pub fn attribute(rules: &Rules, path: &str) -> Attributed {
    let segments: Vec<&str> = path.split('/').skip(1).take(MAX_SEGMENTS).collect();
    let (mut job, mut container, mut unit) = (None, None, None);
    for start in 0..segments.len() {
        if job.is_none() {
            job = first(rules, Level::Job, &segments, start).map(|(name, _)| name);
        }
        for (level, innermost) in [(Level::Container, &mut container), (Level::Unit, &mut unit)] {
            let Some((name, end)) = first(rules, level, &segments, start) else { continue };
            // A pattern that began further out may reach as deep, and then it says more.
            if innermost.as_ref().is_none_or(|(_, deepest)| end > *deepest) {
                *innermost = Some((name, end));
            }
        }
    }
    let name = container.map(|(name, _)| name).or_else(|| job.clone()).or_else(|| unit.map(|(name, _)| name));
    Attributed { name, job }
}

/// The first pattern of a level that fits here, and the index behind its last segment.
fn first(rules: &Rules, level: Level, segments: &[&str], start: usize) -> Option<(Name, usize)> {
    let of_level = rules.attribution.iter().filter(|pattern| pattern.level == level);
    of_level.filter_map(|pattern| fit(pattern, segments, start)).next()
}

fn fit(pattern: &Attribution, segments: &[&str], start: usize) -> Option<(Name, usize)> {
    let captures = pattern.path.fits(segments, start)?;
    let name = Name { kind: pattern.kind.clone(), id: harmless(&pattern.id(&captures)) };
    Some((name, start + pattern.path.len()))
}

/// Without control characters and marks that turn or join text, and not too long.
fn harmless(id: &str) -> String {
    let mut text = String::new();
    for c in id.chars() {
        let before = text.len();
        if is_hidden(c) {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
        if text.len() > MAX_ID_BYTES {
            text.truncate(before);
            break;
        }
    }
    text
}

/// What a reader does not see, and what makes the rest look like something else.
fn is_hidden(c: char) -> bool {
    let is_mark = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_mark
}

#[cfg(test)]
#[path = "attribute_tests.rs"]
mod tests;
