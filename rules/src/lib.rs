//! The rules file: who is housekeeping, also in containers, how tools are shown, how cgroup paths name workloads, how engines are known.
//!
//! Pure: text in, data or one error out. Agent and sweeper share this parser, so that both refuse the same files for the
//! same reasons. Rules decide what an idle machine is; so a file may say much, and some things never: see [`guardrails`]. It
//! reads what strangers may have written, and is bounded: 256 KiB a file, 4,096 entries a list, 256 patterns of cgroup
//! paths, no regular expressions. `docs/rules.md` documents the format.

pub mod attribution;
pub mod container;
pub mod engine;
pub mod error;
pub mod guardrails;
pub mod housekeeping;
pub mod name;
pub mod path;
mod read;
pub mod tools;

pub use attribution::{Attribution, Level};
pub use container::{Container, Image, Owner};
pub use engine::Engine;
pub use error::RulesError;
pub use housekeeping::Housekeeping;
pub use name::NamePattern;
pub use path::PathPattern;
pub use tools::{Interpreter, Shows, Tools};

use read::Section;
use serde::Serialize;
use std::sync::{Arc, LazyLock};

/// Largest rules file, in bytes.
pub const MAX_FILE_BYTES: usize = 256 * 1024;
/// Longest version, in bytes.
pub const MAX_VERSION_BYTES: usize = 64;
/// The rules that hold when nobody says otherwise, as a file.
pub const BUILT_IN: &str = include_str!("../default-rules.toml");
/// What a file's `base` says to add to the built-in rules.
const BASE: &str = "built-in";

/// Rules in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// As the file says it; each heartbeat carries it.
    pub version: String,
    /// Who is housekeeping.
    pub housekeeping: Housekeeping,
    /// How tools are shown.
    pub tools: Tools,
    /// How cgroup paths name workloads; the first that fits counts.
    pub attribution: Vec<Attribution>,
    /// How engines of pipelines are known.
    pub engines: Vec<Engine>,
}

static PARSED: LazyLock<Arc<Rules>> =
    LazyLock::new(|| Arc::new(parse_over(BUILT_IN.as_bytes(), &Rules::default()).unwrap_or_default()));

/// The built-in rules. A test holds that they are acceptable; if they were not, nothing would be housekeeping.
#[must_use]
pub fn built_in() -> Arc<Rules> {
    Arc::clone(&PARSED)
}

/// Reads a rules file.
///
/// A file with `base = "built-in"` adds to the built-in rules, any other stands for itself; cgroups that the built-in
/// rules exclude stay excluded either way.
///
/// # Errors
/// For the first fault, in the order of the file's sections; nothing of a refused file may be used.
pub fn parse(file: &[u8]) -> Result<Rules, RulesError> {
    parse_over(file, &PARSED)
}

fn parse_over(file: &[u8], built_in: &Rules) -> Result<Rules, RulesError> {
    let text = read::text(file)?;
    let document = toml::de::DeTable::parse(text).map_err(|error| read::syntax(text, &error))?;
    let top = Section::top(text, &document);
    top.only(&["version", "base", "housekeeping", "tools", "attribution", "engine", "container"])?;
    let version = top.required_text("version", "name it, for example version = \"2026-11-21\"")?;
    if version.value.len() > MAX_VERSION_BYTES || !version.value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(version.refuse(
            "this is no version",
            "use at most 64 letters, digits and signs, without spaces, for example \"2026-11-21\"",
        ));
    }
    let mut rules = match top.text("base")? {
        None => Rules::default(),
        Some(base) if base.value == BASE => built_in.clone(),
        Some(base) => {
            return Err(base.refuse(
                &format!("there is no base {}", base.shown()),
                "write base = \"built-in\", or leave it out for a file that stands for itself",
            ));
        }
    };
    rules.version = version.value.to_owned();
    let housekeeping = top.section("housekeeping")?;
    rules.tools.read(top.section("tools")?.as_ref())?;
    // The file's own come first: the first that fits counts.
    let own = attribution::read(&top.sections("attribution")?)?;
    rules.attribution.splice(0..0, own);
    let own = engine::read(&top.sections("engine")?)?;
    rules.engines.splice(0..0, own);
    if rules.attribution.len() > attribution::MAX_PATTERNS || rules.engines.len() > engine::MAX_ENGINES {
        return Err(top.refuse(
            "the file and the built-in rules together have too many entries",
            "keep at most 256 [[attribution]] and 64 [[engine]] entries",
        ));
    }
    let mut judged = std::mem::take(&mut rules.housekeeping);
    let programs = guardrails::Programs::of([&rules, built_in]);
    judged.containers.extend(container::read(&top.sections("container")?, &programs)?);
    if judged.containers.len() > container::MAX_CONTAINERS {
        let what = "the file and the built-in rules together have too many containers";
        return Err(top.refuse(what, "keep at most 256 [[container]] entries"));
    }
    judged.read(housekeeping.as_ref(), &built_in.housekeeping, &programs)?;
    rules.housekeeping = judged;
    Ok(rules)
}

#[cfg(test)]
mod tests;
