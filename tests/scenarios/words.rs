//! Names, help, messages and docs say the field's words: docs/words.md lists the retired ones, with a pattern for each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::binaries;
use regex_lite::{Regex, RegexBuilder};
use std::{fs, path::Path, process::Command, sync::LazyLock};

/// Folders and files that the list applies to: everything that a person writes.
const TREE: [&str; 24] = [
    "Cargo.toml",
    "Makefile",
    "README.md",
    "deny.toml",
    "deploy",
    "docs",
    "fuzz",
    "guards",
    "heartbeat",
    "migrations",
    "model",
    "node-agent",
    "node-agent-ebpf",
    "node-agent-gpu",
    "notifier",
    "packaging",
    "recommender",
    "rules",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "sweeper",
    "terraform",
    "tests",
    ".ci",
];
/// Build outputs, the list itself and its test, evidence that was stored by an older version, and notes that keep the words of their day.
const LEFT_OUT: [&str; 5] =
    ["target", "docs/words.md", "docs/journal", "tests/scenarios/words.rs", "sweeper/tests/verdict/stored"];
/// Names that stored data carry.
static STORED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"\b(alias|rename|column_name) = "[^"]*""#).unwrap());

/// A row of the list.
struct Word {
    retired: String,
    pattern: Regex,
    stems: Vec<String>,
    /// What the pattern must find.
    hit: String,
    /// What is plain English, and cut out before the search.
    plain: Vec<String>,
}

/// What stands in backticks in a cell of a table.
fn codes(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|")).collect()
}

/// The runs of letters that a pattern is made of: what it finds has one of them, and to look for those takes a hundredth of the time.
fn stems(pattern: &str) -> Vec<String> {
    let others = Regex::new(r"\\.|\(\?-?i?:|[A-Za-z]\?").unwrap();
    let letters = others.replace_all(pattern, " ").to_lowercase();
    letters.split(|c: char| !c.is_alphabetic()).filter(|run| run.len() > 3).map(str::to_owned).collect()
}

fn words() -> Vec<Word> {
    let list = fs::read_to_string(binaries::checkout().join("docs/words.md")).unwrap();
    let bar = "\u{0}";
    let rows = list.lines().filter(|line| line.starts_with("| ") && line.contains('`')).map(|line| {
        let line = line.replace("\\|", bar);
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().replace(bar, "\\|")).collect();
        let [_, retired, _, pattern, hit, plain, _] = cells.as_slice() else { panic!("not five cells: {line}") };
        let pattern = codes(pattern).concat();
        Word {
            retired: retired.clone(),
            stems: stems(&pattern),
            pattern: RegexBuilder::new(&pattern).case_insensitive(true).build().unwrap(),
            hit: codes(hit).concat(),
            plain: codes(plain),
        }
    });
    rows.collect()
}

/// `HostCounters` and `MAX_ROWS` as the words that they are made of.
fn taken_apart(line: &str) -> String {
    let mut apart = String::new();
    let mut before = ' ';
    for character in line.chars() {
        if character.is_uppercase() && before.is_lowercase() {
            apart.push(' ');
        }
        apart.push(if character == '_' { ' ' } else { character });
        before = character;
    }
    apart
}

/// What a line says that is retired.
fn retired<'a>(line: &str, words: &'a [Word]) -> Vec<&'a str> {
    let letters = line.to_lowercase();
    let maybe: Vec<&Word> =
        words.iter().filter(|word| word.stems.iter().any(|stem| letters.contains(stem.as_str()))).collect();
    if maybe.is_empty() {
        return Vec::new();
    }
    let line = STORED.replace_all(line, "").into_owned();
    let plain = words.iter().flat_map(|word| &word.plain).fold(line, |line, plain| line.replace(plain, ""));
    let apart = taken_apart(&plain);
    let hits = maybe.into_iter().filter(|word| word.pattern.is_match(&plain) || word.pattern.is_match(&apart));
    hits.map(|word| word.retired.as_str()).collect()
}

/// `PATH:LINE: the retired words: the line` for each hit below `path`, in names of files, too.
fn search(root: &Path, path: &str, words: &[Word], hits: &mut Vec<String>) {
    if LEFT_OUT.iter().any(|left_out| path == *left_out || path.ends_with(&format!("/{left_out}"))) {
        return;
    }
    let name = path.rsplit('/').next().unwrap();
    hits.extend(retired(name, words).into_iter().map(|word| format!("{path}:0: {word}")));
    let whole = root.join(path);
    if whole.is_dir() {
        let mut names: Vec<_> =
            fs::read_dir(whole).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.iter().for_each(|name| search(root, &format!("{path}/{name}"), words, hits));
    } else if let (false, Ok(text)) = (name == "Cargo.lock", String::from_utf8(fs::read(whole).unwrap())) {
        for (number, line) in (1..).zip(text.lines()) {
            let found = retired(line, words);
            hits.extend(found.into_iter().map(|word| format!("{path}:{number}: {word}: {}", line.trim())));
        }
    }
}

fn hits_in(root: &Path, paths: &[&str]) -> Vec<String> {
    let (words, mut hits) = (words(), Vec::new());
    paths.iter().for_each(|path| search(root, path, &words, &mut hits));
    hits
}

#[test]
fn no_retired_word_is_left() {
    let hits = hits_in(binaries::checkout(), &TREE);
    assert!(hits.is_empty(), "{} hits:\n{}", hits.len(), hits.join("\n"));
}

/// The help of a command, and of each command below it.
fn help(program: &Path, of: &[String], all: &mut Vec<(String, String)>) {
    let said = Command::new(program).args(of).arg("--help").output().unwrap();
    assert!(said.status.success(), "{of:?}");
    let text = String::from_utf8(said.stdout).unwrap();
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let below: Vec<String> =
        listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned)).collect();
    all.push((of.join(" "), text));
    for name in below.into_iter().filter(|name| !name.is_empty() && name != "help") {
        help(program, &[of, &[name]].concat(), all);
    }
}

#[test]
fn no_retired_word_is_left_in_the_help() {
    let words = words();
    for (program, some) in [
        (binaries::node_agent(), ["", "run", "once", "watch", "top", "doctor", "rules", "rules check"].as_slice()),
        (binaries::sweeper(), &["", "serve", "sweep", "explain", "replay", "nodes", "nodes revoke"]),
    ] {
        let mut all = Vec::new();
        help(program.as_ref(), &[], &mut all);
        let commands: Vec<&str> = all.iter().map(|(command, _)| command.as_str()).collect();
        assert!(some.iter().all(|command| commands.contains(command)), "{some:?} are not all among {commands:?}");
        for (command, text) in &all {
            for line in text.lines() {
                assert_eq!(retired(line, &words), Vec::<&str>::new(), "{command} --help: {line}");
            }
        }
    }
}

#[test]
fn each_pattern_finds_its_example_and_spares_plain_english() {
    let words = words();
    assert!(words.len() >= 20, "{} words", words.len());
    for (number, word) in words.iter().enumerate() {
        let others = words.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, word)| &word.retired);
        assert!(others.into_iter().all(|other| *other != word.retired), "{} is listed twice", word.retired);
        for plain in &word.plain {
            let sentence = format!("And {plain}, that is all.");
            assert_eq!(retired(&sentence, &words), Vec::<&str>::new(), "{plain}");
        }
        // As it would be found in the checkout.
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("node-agent/src")).unwrap();
        fs::write(root.path().join("node-agent/src/planted.rs"), format!("//! One line.\n// {}\n", word.hit)).unwrap();
        let hits = hits_in(root.path(), &["node-agent"]);
        let expected = format!("node-agent/src/planted.rs:2: {}: // {}", word.retired, word.hit);
        assert!(hits.contains(&expected), "{expected} is not among {hits:?}");
    }
}

#[test]
fn a_file_is_searched_by_its_name_and_not_below_what_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    for path in ["docs/journal/old.md", "node-agent/target/built.rs", "node-agent/src/fine.rs"] {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        let text = if path.ends_with("fine.rs") { "// counters\n" } else { "// the uplink\n" };
        fs::write(root.path().join(path), text).unwrap();
    }
    assert_eq!(hits_in(root.path(), &["docs", "node-agent"]), Vec::<String>::new());
    fs::write(root.path().join("node-agent/src/uplink.rs"), "").unwrap();
    assert_eq!(hits_in(root.path(), &["node-agent"]), ["node-agent/src/uplink.rs:0: uplink"]);
}
