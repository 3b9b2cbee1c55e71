//! Manual pages and shell completions of `node-agent` and `sweeper`, from the very definitions that read their command lines.
//!
//! It is a program of its own, so that neither of the two carries what only a package needs.

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_complete::{Generator as _, Shell};
use clap_mangen::Man;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The shells, and the folder of each below `completions`.
pub const SHELLS: [(Shell, &str); 3] = [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")];

/// The command lines of the two programs, as they are called.
#[must_use]
pub fn programs() -> [Command; 2] {
    [node_agent::cli::command(), sweeper::cli::Cli::command()]
}

/// Writes `FOLDER/PROGRAM/man`, a page for each command that is not hidden, and `FOLDER/PROGRAM/completions/SHELL`. What is written depends on nothing but the
/// definitions: twice the same.
///
/// # Errors
///
/// When a folder cannot be made or written to.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    for command in programs() {
        let name = command.get_name().to_owned();
        let of_program = folder.join(&name);
        for (shell, place) in SHELLS {
            let place = made(&of_program.join("completions").join(place))?;
            let file = place.join(shell.file_name(&name));
            fs::write(&file, completions(shell, command.clone(), &name))
                .with_context(|| format!("writing the completions to {}", file.display()))?;
        }
        let version = format!("{name} {}", command.get_version().unwrap_or_default());
        let mut command = command.disable_help_subcommand(true);
        command.build();
        write_pages(&command, &version, &made(&of_program.join("man"))?)?;
    }
    Ok(())
}

fn made(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder.to_owned())
}

fn completions(shell: Shell, mut command: Command, name: &str) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    // clap_complete 4.6 calls a program with a hyphen one thing where it sets what is being completed, and another where it asks that: bash would complete the first word alone.
    let (asked, set) = (name.replace('-', "__subcmd__"), name.replace('-', "__"));
    String::from_utf8_lossy(&text).replace(&asked, &set)
}

/// The page of a command, and those of all below it.
fn write_pages(command: &Command, version: &str, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let file = folder.join(format!("{name}.1"));
    let page = page(command, name, version).with_context(|| format!("making the page of {name}"))?;
    fs::write(&file, page).with_context(|| format!("writing {}", file.display()))?;
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown.into_iter().try_for_each(|below| write_pages(below, version, folder))
}

fn page(command: &Command, name: &str, version: &str) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(version).manual("Cloud Sweeper");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        page.extend(as_it_stands("NOTES", &notes.to_string()).into_bytes());
    }
    Ok(page)
}

/// A section whose lines stay as they are: columns and command lines that a filled paragraph would tear apart.
fn as_it_stands(heading: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("\\&{}\n", escaped(line))).collect();
    format!(".SH {heading}\n.nf\n{lines}.fi\n")
}

/// What is typed must be copied as it is: a hyphen that is one, and a backslash that begins nothing.
fn escaped(line: &str) -> String {
    line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}
