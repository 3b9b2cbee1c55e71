//! `[[attribution]]`: which cgroup paths name a workload, of what kind, and by which part of the path.

use crate::{PathPattern, RulesError, read::Section};
use serde::Serialize;

/// Most patterns, the built-in ones included: each is tried at each segment of a path, once in a path's life.
pub const MAX_PATTERNS: usize = 256;

/// What a pattern speaks of. The innermost container names a workload, else the job, else the innermost unit or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A batch system's job; of nested ones, the outermost counts.
    Job,
    /// A container or pod.
    Container,
    /// A unit or a login session.
    Unit,
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attribution {
    /// What a workload of this kind is called: `docker`, `slurm`.
    pub kind: String,
    /// What the pattern speaks of.
    pub level: Level,
    /// Where in a path it is.
    pub path: PathPattern,
    /// The id: text, and `{name}` for what the pattern's captures took.
    id: String,
}

impl Attribution {
    /// The id of a match, given what the captures took. A UUID that systemd's slices write with `_` is written with `-`.
    #[must_use]
    pub fn id(&self, captures: &[(&str, &str)]) -> String {
        let mut id = String::new();
        let mut rest = self.id.as_str();
        while let Some((text, (name, after))) =
            rest.split_once('{').and_then(|(text, wild)| Some((text, wild.split_once('}')?)))
        {
            id.push_str(text);
            if let Some((_, value)) = captures.iter().find(|(captured, _)| *captured == name) {
                if is_escaped_uuid(value) { id.push_str(&value.replace('_', "-")) } else { id.push_str(value) }
            }
            rest = after;
        }
        id + rest
    }
}

fn is_escaped_uuid(value: &str) -> bool {
    value.len() == 36 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
}

pub(crate) fn read(sections: &[Section<'_>]) -> Result<Vec<Attribution>, RulesError> {
    sections.iter().map(one).collect()
}

fn one(section: &Section<'_>) -> Result<Attribution, RulesError> {
    section.only(&["kind", "level", "path", "id"])?;
    let kind = section.required_text("kind", "name it, for example kind = \"docker\"")?;
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if kind.value.len() > 32 || !kind.value.bytes().all(is_word) {
        let what = format!("{} is no kind of workload", kind.shown());
        return Err(kind.refuse(&what, "write at most 32 small letters, digits and -"));
    }
    let level = section.required_text("level", "write level = \"container\", \"job\" or \"unit\"")?;
    let level = match level.value {
        "job" => Level::Job,
        "container" => Level::Container,
        "unit" => Level::Unit,
        _ => return Err(level.refuse(&format!("there is no level {}", level.shown()), "write container, job or unit")),
    };
    let path = section.required_text("path", "write the segments, for example path = \"docker/{id:hex}\"")?;
    let path = PathPattern::read(&path)?;
    let id = section.required_text("id", "write what names the workload, for example id = \"{id}\"")?;
    let mut rest = id.value;
    while let Some((text, wild)) = rest.split_once('{') {
        let (name, after) = wild.split_once('}').unwrap_or((wild, ""));
        if text.contains('}') || !path.captures().any(|capture| capture == name) {
            let names = path.captures().collect::<Vec<_>>().join(", ");
            let what = format!("{} names what the path does not capture", id.shown());
            return Err(id.refuse(&what, &format!("use only its captures: {names}")));
        }
        rest = after;
    }
    Ok(Attribution { kind: kind.value.to_owned(), level, path, id: id.value.to_owned() })
}
