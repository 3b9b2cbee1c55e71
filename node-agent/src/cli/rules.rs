//! `node-agent rules`: what rules are in force here, and whether a file would be taken.

use super::{Output, SUCCESS, USAGE, terminal};
use crate::{
    config::Config,
    rules::{self, Origin},
};
use anyhow::Context as _;
use std::path::PathBuf;
use workload_rules::{Rules, RulesError};

/// What to do with rules.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Say whether agents would take a file; if not, exit with 2 and say line, column, reason and remedy.
    Check {
        /// The rules file.
        file: PathBuf,
        /// A line for people or JSON for programs.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Print the rules in force on this host; as a file, which can be changed and used, or as JSON with the built-in rules laid in.
    Show {
        /// The built-in rules, whatever is in force.
        #[arg(long)]
        built_in: bool,
        /// The file itself or JSON for programs.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
}

/// Does it.
///
/// # Errors
/// If the file cannot be read or nobody reads the output.
pub(super) fn run(command: &Command, config: &Config) -> anyhow::Result<u8> {
    match command {
        Command::Check { file, output } => {
            let bytes = rules::read(file).with_context(|| format!("{}: cannot be read", file.display()))?;
            check(&file.display().to_string(), &workload_rules::parse(&bytes), *output)
        }
        Command::Show { built_in, output } => show(config, *built_in, *output),
    }
}

fn check(file: &str, parsed: &Result<Rules, RulesError>, output: Output) -> anyhow::Result<u8> {
    let code = if parsed.is_ok() { SUCCESS } else { USAGE };
    if output == Output::Json {
        let report = match parsed {
            Ok(rules) => serde_json::json!({ "file": file, "accepted": true, "version": rules.version }),
            Err(error) => serde_json::json!({
                "file": file,
                "accepted": false,
                "line": error.line,
                "column": error.column,
                "reason": error.what,
                "remedy": error.remedy,
            }),
        };
        terminal::say(&terminal::escaped_json(&serde_json::to_string_pretty(&report)?))?;
        return Ok(code);
    }
    match parsed {
        Ok(rules) => {
            let housekeeping = &rules.housekeeping;
            let line = format!(
                "{file}: accepted; version {}, {} names and {} units are housekeeping, {} patterns name workloads, {} engines are known",
                rules.version,
                housekeeping.names.len() + housekeeping.name_prefixes.len(),
                housekeeping.units.len(),
                rules.attribution.len(),
                rules.engines.len(),
            );
            terminal::say(&terminal::escaped(&line))?;
        }
        Err(error) => terminal::say_error(&terminal::escaped(&format!("{file}: {error}")))?,
    }
    Ok(code)
}

fn show(config: &Config, built_in: bool, output: Output) -> anyhow::Result<u8> {
    let rules_store = config.rules();
    let (rules, origin) = if built_in {
        (workload_rules::built_in(), Origin::BuiltIn)
    } else {
        (rules_store.rules(), rules_store.origin())
    };
    if output == Output::Json {
        let report = serde_json::json!({ "origin": origin.to_string(), "rules": *rules });
        terminal::say(&terminal::escaped_json(&serde_json::to_string_pretty(&report)?))?;
        return Ok(SUCCESS);
    }
    let text = match &origin {
        Origin::BuiltIn => workload_rules::BUILT_IN.to_owned(),
        Origin::Local(path) | Origin::Served(path) => {
            let bytes = rules::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    // The first line is a remark in the file's own language, so that the whole remains a rules file.
    let origin = terminal::escaped(&origin.to_string()).into_owned();
    let lines: Vec<String> = text.lines().map(|line| terminal::escaped(line).into_owned()).collect();
    terminal::say(&format!("# Version {}, {origin}.\n{}", rules.version, lines.join("\n")))?;
    Ok(SUCCESS)
}
