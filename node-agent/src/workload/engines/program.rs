//! What a process runs: its executable, or what an interpreter was told to run.

use super::{Argv, argv, interpreters, snakemake};
use workload_rules::Tools;

/// A process's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name, for people: `align.py`, `picard.jar`, `samtools`.
    pub name: String,
    /// What an interpreter runs.
    pub runs: Runs,
    /// Where the program's own arguments begin among the words.
    pub arguments: usize,
}

/// What an interpreter runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// It is no interpreter.
    Itself,
    /// A file.
    Script(Vec<u8>),
    /// A module of Python.
    Module(Vec<u8>),
    /// A jar of Java.
    Jar(Vec<u8>),
    /// A main class of Java.
    Class(Vec<u8>),
    /// Text on the command line, which stays there.
    Inline,
    /// What a person or a pipe tells it.
    Nothing,
}

/// Classes that are named like every other: the part before says more.
const EVERYONES_CLASSES: [&str; 7] = ["Main", "Launcher", "App", "Application", "Cli", "Runner", "Driver"];

/// The program of a process with this executable name and command line.
pub(super) fn of(tools: &Tools, comm: &str, argv: &Argv) -> Program {
    let first = argv.get(0).unwrap_or_default();
    let first = first.strip_prefix(b"-").unwrap_or(first);
    let Some((runs, arguments)) = interpreters::runs(tools, argv::base(first), argv) else {
        return Program { name: comm.to_owned(), runs: Runs::Itself, arguments: 1 };
    };
    let name = match &runs {
        Runs::Script(path) => argv::text(snakemake::own_name(path).unwrap_or_else(|| argv::base(path))),
        Runs::Jar(path) => argv::text(argv::base(path)),
        Runs::Module(module) => argv::text(module.strip_suffix(b".__main__").unwrap_or(module)),
        Runs::Class(class) => class_name(&argv::text(class)),
        Runs::Itself | Runs::Inline | Runs::Nothing => comm.to_owned(),
    };
    Program { name, runs, arguments }
}

fn class_name(class: &str) -> String {
    let mut parts = class.rsplit('.');
    let last = parts.next().unwrap_or(class);
    match parts.next() {
        Some(before) if EVERYONES_CLASSES.contains(&last) => format!("{before}.{last}"),
        _ => last.to_owned(),
    }
}
