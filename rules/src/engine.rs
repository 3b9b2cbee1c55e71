//! `[[engine]]`: how the engines of pipelines are known, and what of their command lines names pipeline and task.
//!
//! These are the only parts of command lines that an agent takes off a machine; what no rule asks for stays there.

use crate::{
    RulesError,
    read::Section,
    tools::{MAX_OPTIONS, options, telling_options},
};
use serde::Serialize;

/// Most engines, the built-in ones included.
pub const MAX_ENGINES: usize = 64;

/// One engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Its name on the wire.
    pub name: String,
    /// Names of its executables or of its scripts.
    pub programs: Vec<String>,
    /// Names of the modules that `python -m` runs.
    pub modules: Vec<String>,
    /// Main classes that `java` runs.
    pub classes: Vec<String>,
    /// Beginnings of the names of jars that `java -jar` runs.
    pub jars: Vec<String>,
    /// Words of which one must stand among the arguments; none are needed if it is empty.
    pub subcommands: Vec<String>,
    /// Words that must not: with them the program drives nothing, or does a task for another one of its kind. An option
    /// with its value is written as one: `--mode remote`.
    pub unless: Vec<String>,
    /// Options whose value names the pipeline.
    pub pipeline_options: Vec<String>,
    /// Options that take no value, as far as that matters to find the pipeline among the other arguments.
    pub flags: Vec<String>,
    /// Endings by which the pipeline's file is told from other arguments; without any, the first argument is it.
    pub pipeline_endings: Vec<String>,
    /// Options of a task's command line whose value names the task.
    pub task_options: Vec<String>,
    /// Programs that the engine starts for itself: they are no tasks.
    pub helpers: Vec<String>,
}

pub(crate) fn read(sections: &[Section<'_>]) -> Result<Vec<Engine>, RulesError> {
    sections.iter().map(one).collect()
}

fn one(section: &Section<'_>) -> Result<Engine, RulesError> {
    section.only(&[
        "name",
        "programs",
        "modules",
        "classes",
        "jars",
        "subcommands",
        "unless",
        "pipeline_options",
        "flags",
        "pipeline_endings",
        "task_options",
        "helpers",
    ])?;
    let name = section.required_text("name", "name it, for example name = \"nextflow\"")?;
    if name.value.len() > 32 {
        return Err(name.refuse(&format!("{} is too long", name.shown()), "write at most 32 bytes"));
    }
    let engine = Engine {
        name: name.value.to_owned(),
        programs: options(section, "programs")?,
        modules: options(section, "modules")?,
        classes: options(section, "classes")?,
        jars: options(section, "jars")?,
        subcommands: options(section, "subcommands")?,
        unless: options(section, "unless")?,
        pipeline_options: telling_options(section, "pipeline_options")?,
        flags: options(section, "flags")?,
        pipeline_endings: options(section, "pipeline_endings")?,
        task_options: telling_options(section, "task_options")?,
        helpers: options(section, "helpers")?,
    };
    let known_by = [&engine.programs, &engine.modules, &engine.classes, &engine.jars];
    if known_by.iter().all(|list| list.is_empty()) {
        let remedy = format!("give it `programs`, `modules`, `classes` or `jars`, each of at most {MAX_OPTIONS}");
        return Err(section.refuse("nothing says how this engine is known", &remedy));
    }
    Ok(engine)
}
