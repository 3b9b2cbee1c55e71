//! `[[engine]]`: how the engines of pipelines are known, and what of their command lines names pipeline and task.
//!
//! These are the only parts of command lines that an agent takes off a machine; what no rule asks for stays there.

use crate::{NamePattern, RulesError, name, read::Section, tools::MAX_OPTIONS, tools::options};
use serde::Serialize;

/// Most engines, the built-in ones included.
pub const MAX_ENGINES: usize = 64;

/// One engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// What a run of it says as its `engine`.
    pub name: String,
    /// Its own process: names of executables, or of the script, module, class or jar that an interpreter runs.
    pub programs: Vec<NamePattern>,
    /// Words that the command line must have for this to be a run: `run` of `nextflow run`. Any, if there are none.
    pub words: Vec<String>,
    /// Options whose value names the pipeline; before these, the first argument that is no option (behind the word).
    pub pipeline_options: Vec<String>,
    /// The first argument that is no option (behind the word) names the pipeline.
    pub pipeline_argument: bool,
    /// Name of the pipeline where the command line has none: `Snakefile`.
    pub pipeline_default: String,
    /// Options that take the argument behind them as their value, and name nothing.
    pub with_value: Vec<String>,
    /// Programs that begin a task below the engine; if there are none, each child of the engine does.
    pub task_programs: Vec<NamePattern>,
    /// Options of those programs whose value names the task.
    pub task_options: Vec<String>,
    /// Children of the engine that are a part of it and no tasks.
    pub helpers: Vec<NamePattern>,
    /// Kinds of workloads (see `[[attribution]]`) that are a run by themselves: `slurm`.
    pub workloads: Vec<String>,
}

pub(crate) fn read(sections: &[Section<'_>]) -> Result<Vec<Engine>, RulesError> {
    sections.iter().map(one).collect()
}

fn one(section: &Section<'_>) -> Result<Engine, RulesError> {
    section.only(&[
        "name",
        "programs",
        "words",
        "pipeline_options",
        "pipeline_argument",
        "pipeline_default",
        "with_value",
        "task_programs",
        "task_options",
        "helpers",
        "workloads",
    ])?;
    let name = section.required_text("name", "name it, for example name = \"nextflow\"")?;
    if name.value.len() > 32 {
        return Err(name.refuse(&format!("{} is too long", name.shown()), "write at most 32 bytes"));
    }
    let programs = name::list(section, "programs", MAX_OPTIONS)?;
    let workloads = options(section, "workloads")?;
    if programs.is_empty() && workloads.is_empty() {
        return Err(section.refuse("nothing says how this engine is known", "give it `programs` or `workloads`"));
    }
    Ok(Engine {
        name: name.value.to_owned(),
        programs,
        words: options(section, "words")?,
        pipeline_options: options(section, "pipeline_options")?,
        pipeline_argument: section.truth("pipeline_argument")?,
        pipeline_default: section.text("pipeline_default")?.map(|text| text.value.to_owned()).unwrap_or_default(),
        with_value: options(section, "with_value")?,
        task_programs: name::list(section, "task_programs", MAX_OPTIONS)?,
        task_options: options(section, "task_options")?,
        helpers: name::list(section, "helpers", MAX_OPTIONS)?,
        workloads,
    })
}
