//! Each command has a manual page that groff takes, and each shell takes its completions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Command as Commands;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Runs a program of the distribution and returns what it printed. `make setup` installs the ones that these tests need.
fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{program} is missing ({error}): run `make setup`"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{program} {arguments:?}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    packaging::write(folder.path()).unwrap();
    folder
}

/// The names of the pages of a command and of all below it that people are told of.
fn pages_of(command: &Commands, before: &str, found: &mut BTreeSet<String>) {
    let name = format!("{before}{}", command.get_name());
    found.insert(format!("{name}.1"));
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.for_each(|below| pages_of(below, &format!("{name}-"), found));
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn each_command_has_a_page_and_no_hidden_one_has() {
    let folder = written();
    for command in packaging::programs() {
        let mut expected = BTreeSet::new();
        pages_of(&command, "", &mut expected);
        assert_eq!(names(&folder.path().join(command.get_name()).join("man")), expected);
    }
    let agent = names(&folder.path().join("node-agent/man"));
    assert!(agent.contains("node-agent-doctor.1") && agent.contains("node-agent-rules-check.1"), "{agent:?}");
    assert!(!agent.iter().any(|page| page.contains("load-programs") || page.contains("runtime-helper")), "{agent:?}");
    let sweeper = names(&folder.path().join("sweeper/man"));
    assert!(sweeper.contains("sweeper-kill-switch.1") && sweeper.contains("sweeper-audit-verify.1"), "{sweeper:?}");
}

#[test]
fn groff_takes_each_page_without_a_warning() {
    let folder = written();
    for command in packaging::programs() {
        let pages = folder.path().join(command.get_name()).join("man");
        for page in names(&pages) {
            let text =
                run("groff", &["-man", "-Kutf8", "-Tutf8", "-P-cbou", "-ww", pages.join(&page).to_str().unwrap()]);
            assert!(text.contains("SYNOPSIS") && text.contains(command.get_name()), "{page}: {text}");
        }
    }
    let page = folder.path().join("node-agent/man/node-agent.1");
    let text = run("groff", &["-man", "-Kutf8", "-Tutf8", "-P-cbou", page.to_str().unwrap()]);
    for line in ["NODE-AGENT(1)", "node-agent once | jq .counters    one heartbeat", "  4  another agent uses the same"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn each_shell_takes_its_completions() {
    let folder = written();
    for name in ["node-agent", "sweeper"] {
        let place = |shell: &str, file: &str| {
            folder.path().join(name).join("completions").join(shell).join(file).display().to_string()
        };
        run("bash", &["-n", &place("bash", &format!("{name}.bash"))]);
        run("zsh", &["-n", &place("zsh", &format!("_{name}"))]);
        run("fish", &["--no-execute", &place("fish", &format!("{name}.fish"))]);
    }
}

#[test]
fn bash_completes_commands_and_their_options() {
    let folder = written();
    for (name, typed, expected) in [
        ("node-agent", "node-agent doc", "doctor"),
        ("node-agent", "node-agent rules ch", "check"),
        ("sweeper", "sweeper kill", "kill-switch"),
        ("sweeper", "sweeper sweep --outp", "--output"),
    ] {
        let file = folder.path().join(name).join(format!("completions/bash/{name}.bash"));
        let last = typed.split(' ').next_back().unwrap();
        let before = typed.split(' ').nth_back(1).unwrap();
        let script = format!(
            "source {}; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _{} {name} {last} {before}; echo ${{COMPREPLY[@]}}",
            file.display(),
            // As clap_complete calls its function.
            name.replace('-', "__")
        );
        assert_eq!(run("bash", &["-c", &script]).trim(), expected, "{typed}");
    }
}
