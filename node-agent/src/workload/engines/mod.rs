//! Which programs drive pipelines, and what their command lines tell about them.
//!
//! Pure: bytes of a command line in, names out. Only what a rule asks for leaves this module: the name of a script, a module, a jar or a main
//! class, a pipeline's file, a task's target. All else of a command line is dropped, and what is kept is cut, escaped and
//! freed of what looks like a secret. Engines and interpreters are known by the rules file; the files here hold what is peculiar
//! to one engine.

pub mod argv;
pub mod batch;
mod interpreters;
pub mod nextflow;
pub mod program;
pub mod script;
pub mod slurm;
pub mod snakemake;

pub use argv::Argv;
pub use program::{Program, Runs};

use std::sync::Arc;
use workload_rules::{Engine as Rule, NamePattern, Rules};

/// Highest version of an interpreter that a pattern stands for, behind the point.
const MAX_MINOR: u32 = 30;

/// An engine that was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its name on the wire.
    pub name: String,
    /// The pipeline's name; empty if the command line does not tell it.
    pub pipeline: String,
}

/// What the rules say about engines and interpreters.
#[derive(Clone, Debug)]
pub struct Engines(Arc<Rules>);

impl From<Arc<Rules>> for Engines {
    fn from(rules: Arc<Rules>) -> Self {
        Self(rules)
    }
}

impl Default for Engines {
    fn default() -> Self {
        Self(workload_rules::built_in())
    }
}

impl Engines {
    /// The engine that this program is, with what its command line tells; `None` for all other programs.
    #[must_use]
    pub fn recognise(&self, program: &Program, argv: &Argv) -> Option<Engine> {
        let rule = self.0.engines.iter().find(|rule| is(rule, program, argv))?;
        let pipeline = pipeline(rule, program, argv).unwrap_or_default();
        Some(Engine { name: rule.name.clone(), pipeline })
    }

    /// The name that the command line of one of its processes gives to a task.
    #[must_use]
    pub fn task_name(&self, engine: &str, program: &Program, argv: &Argv) -> Option<String> {
        let rule = self.0.engines.iter().find(|rule| rule.name == engine);
        let by_option = rule.and_then(|rule| argv.values(&rule.task_options)).map(|name| argv::text(&name));
        by_option.or_else(|| match engine {
            nextflow::NAME => nextflow::task_name(program),
            snakemake::NAME => snakemake::task_name(program),
            _ => None,
        })
    }

    /// Whether the engine started this program for itself.
    #[must_use]
    pub fn is_helper(&self, engine: &str, program: &str) -> bool {
        self.0.engines.iter().any(|rule| rule.name == engine && rule.helpers.iter().any(|helper| helper == program))
    }

    /// Executables that are worth examining at their start because they are engines.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.0.engines.iter().flat_map(|rule| &rule.programs).map(String::as_str)
    }

    /// What a process with this executable name and command line runs.
    #[must_use]
    pub fn program(&self, comm: &str, argv: &Argv) -> Program {
        program::of(&self.0.tools, comm, argv)
    }

    /// Names of interpreters, and whether `-c` makes them run what nobody names. A rule's `python3*` stands for the versions
    /// that there are.
    pub fn interpreters(&self) -> impl Iterator<Item = (String, bool)> {
        self.0.tools.interpreters.iter().flat_map(|one| {
            let has_inline = one.inline.iter().any(|option| option == "-c");
            one.names.iter().flat_map(names).map(move |name| (name, has_inline))
        })
    }
}

/// The names that a pattern stands for: itself, or its beginning with and without a version.
fn names(pattern: &NamePattern) -> Vec<String> {
    let Some(start) = pattern.as_str().strip_suffix('*') else { return vec![pattern.as_str().to_owned()] };
    let versions = (0..=MAX_MINOR).flat_map(|minor| [format!("{start}.{minor}"), format!("{start}{minor}")]);
    [start.to_owned()].into_iter().chain(versions).filter(|name| pattern.fits(name)).collect()
}

fn is(rule: &Rule, program: &Program, argv: &Argv) -> bool {
    let is_named = match &program.runs {
        Runs::Itself => rule.programs.contains(&program.name),
        Runs::Script(path) => rule.programs.iter().any(|name| name.as_bytes() == argv::base(path)),
        Runs::Module(module) => rule.modules.iter().any(|name| name.as_bytes() == module),
        Runs::Class(class) => rule.classes.iter().any(|name| name.as_bytes() == class),
        Runs::Jar(path) => rule.jars.iter().any(|start| argv::base(path).starts_with(start.as_bytes())),
        Runs::Inline | Runs::Nothing => false,
    };
    let has = |words: &[String]| {
        argv.from(program.arguments).any(|word| words.iter().any(|wanted| wanted.as_bytes() == word))
    };
    let mut pairs = rule.unless.iter().filter_map(|pair| pair.split_once(' '));
    let has_pair = pairs.any(|(option, value)| argv.value(option).is_some_and(|found| found == value.as_bytes()));
    is_named && (rule.subcommands.is_empty() || has(&rule.subcommands)) && !has(&rule.unless) && !has_pair
}

fn pipeline(rule: &Rule, program: &Program, argv: &Argv) -> Option<String> {
    if let Some(value) = argv.values(&rule.pipeline_options) {
        return Some(pipeline_name(&value));
    }
    if rule.flags.is_empty() && rule.pipeline_endings.is_empty() {
        return None;
    }
    let mut words = argv.from(program.arguments).peekable();
    if !rule.subcommands.is_empty() {
        words.find(|word| rule.subcommands.iter().any(|wanted| wanted.as_bytes() == *word))?;
    }
    while let Some(word) = words.next() {
        if word.starts_with(b"-") {
            let takes_value = !word.contains(&b'=') && !rule.flags.iter().any(|flag| flag.as_bytes() == word);
            if rule.pipeline_endings.is_empty() && takes_value {
                words.next_if(|next| !next.starts_with(b"-"));
            }
            continue;
        }
        let file = word.split(|byte| *byte == b'#').next().unwrap_or(word);
        if rule.pipeline_endings.is_empty() || rule.pipeline_endings.iter().any(|end| file.ends_with(end.as_bytes())) {
            return Some(pipeline_name(file));
        }
    }
    None
}

/// A file by which every pipeline of its kind goes is named by its folder, and an address by its last two parts.
fn pipeline_name(value: &[u8]) -> String {
    const EVERYONES: [&[u8]; 3] = [b"Snakefile", b"main.nf", b"main.cwl"];
    let is_address = value.windows(3).any(|part| part == b"://");
    let mut parts: Vec<&[u8]> = value.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    if is_address {
        // Behind the scheme and the host; the host may hold a name and a password.
        let path = parts.get(2..).unwrap_or_default();
        let path = &path[path.len().saturating_sub(2)..];
        let end = |part: &[u8]| part.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(part.len());
        let path: Vec<&[u8]> = path.iter().map(|part| &part[..end(part)]).collect();
        return argv::text(&path.join(&b'/'));
    }
    let is_path = value.first() == Some(&b'/') || value.first() == Some(&b'.');
    if let Some(last) = parts.last().copied()
        && EVERYONES.contains(&last)
        && parts.len() > 1
    {
        parts.pop();
        while parts.len() > 1 && parts.last().is_some_and(|part| matches!(*part, b"workflow" | b"." | b"..")) {
            parts.pop();
        }
        let folder = parts.last().copied().unwrap_or(last);
        return argv::text(if matches!(folder, b"." | b".." | b"workflow") { last } else { folder });
    }
    // `nf-core/rnaseq` is a name in itself.
    if !is_path && parts.len() == 2 && !parts.iter().any(|part| part.contains(&b'.')) {
        return argv::text(&parts.join(&b'/'));
    }
    argv::text(parts.last().copied().unwrap_or_default())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
