//! Where the script stands in the command line of an interpreter, by what the rules say of it.

use super::{Argv, Runs};
use workload_rules::{Interpreter, Shows, Tools};

/// What the interpreter of this name runs, and where the arguments of that begin; `None` if it is no interpreter.
pub(super) fn runs(tools: &Tools, name: &[u8], argv: &Argv) -> Option<(Runs, usize)> {
    let interpreter = tools.interpreter(std::str::from_utf8(name).ok()?)?;
    let mut at = 1;
    while let Some(word) = argv.get(at) {
        at += 1;
        match step(interpreter, word) {
            Step::Nothing => {}
            Step::Value => at += 1,
            Step::Named(option, Some(value)) => return Some((what(interpreter, option, value), at)),
            Step::Named(option, None) => {
                let value = argv.get(at);
                return Some((value.map_or(Runs::Nothing, |value| what(interpreter, option, value)), at + 1));
            }
            Step::Inline => return Some((Runs::Inline, at)),
            Step::Stop => return Some((Runs::Nothing, at)),
            Step::Last => {
                let value = argv.get(at);
                return Some((value.map_or(Runs::Nothing, |value| what(interpreter, "", value)), at + 1));
            }
            Step::Argument => return Some((what(interpreter, "", word), at)),
        }
    }
    Some((Runs::Nothing, at))
}

/// What a word means, and what to do with the next one.
enum Step<'a> {
    /// An option.
    Nothing,
    /// An option whose value follows.
    Value,
    /// An option that says what runs, with its value if that is in the same word.
    Named(&'a str, Option<&'a [u8]>),
    /// Program text.
    Inline,
    /// The program comes from a terminal or a pipe.
    Stop,
    /// All options are behind us.
    Last,
    /// No option.
    Argument,
}

fn step<'a>(of: &'a Interpreter, word: &'a [u8]) -> Step<'a> {
    let is_in = |options: &[String]| options.iter().any(|option| option.as_bytes() == word);
    if let Some(option) = of.named_by.iter().find(|option| option.as_bytes() == word) {
        return Step::Named(option, None);
    }
    let long = of.named_by.iter().filter(|option| option.starts_with("--"));
    for option in long {
        if let Some(value) = word.strip_prefix(option.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
            return Step::Named(option, Some(value));
        }
    }
    if is_in(&of.with_value) {
        return Step::Value;
    }
    if is_in(&of.inline) {
        return Step::Inline;
    }
    match word {
        b"-" => Step::Stop,
        b"--" => Step::Last,
        [b'-', b'-', ..] => Step::Nothing,
        [b'-' | b'+', letters @ ..] if of.shows == Shows::Script => bundle(of, word[0], letters),
        [b'-' | b'+' | b'@', ..] => Step::Nothing,
        _ => Step::Argument,
    }
}

/// Options of one letter, written as one word; the first that takes a value takes the rest, or the next word.
fn bundle<'a>(of: &'a Interpreter, sign: u8, letters: &'a [u8]) -> Step<'a> {
    for (at, letter) in letters.iter().enumerate() {
        let has = |options: &'a [String]| options.iter().find(|option| option.as_bytes() == [sign, *letter]);
        let rest = letters.get(at + 1..).filter(|rest| !rest.is_empty());
        if has(&of.inline).is_some() {
            return Step::Inline;
        }
        if let Some(option) = has(&of.named_by) {
            return Step::Named(option, rest);
        }
        if has(&of.with_value).is_some() {
            return if rest.is_some() { Step::Nothing } else { Step::Value };
        }
    }
    Step::Nothing
}

fn what(of: &Interpreter, option: &str, value: &[u8]) -> Runs {
    let value = value.to_vec();
    match (of.shows, option) {
        (Shows::Script, "-m") => Runs::Module(value),
        (Shows::Class, "-jar") => Runs::Jar(value),
        (Shows::Class, _) => Runs::Class(value),
        (Shows::Script, _) => Runs::Script(value),
    }
}
