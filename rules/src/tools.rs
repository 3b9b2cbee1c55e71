//! `[tools]`: how programs are shown. Interpreters show what they run: `python align.py` is `align.py`.

use crate::{
    NamePattern, RulesError,
    guardrails::is_secret,
    name,
    read::{MAX_ENTRIES, Section},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Interpreters are looked through for every program that starts.
const MAX_INTERPRETERS: usize = 256;
/// Options of one interpreter or engine.
pub(crate) const MAX_OPTIONS: usize = 256;

/// How programs are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// By name of program, the name to show in its place.
    pub display: BTreeMap<String, String>,
    /// Programs that run what others wrote; the first that fits counts.
    pub interpreters: Vec<Interpreter>,
}

/// What the first argument that is no option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shows {
    /// A file, shown without its folders.
    Script,
    /// A class, shown whole.
    Class,
}

/// A program that runs what others wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interpreter {
    /// Its names.
    pub names: Vec<NamePattern>,
    /// What its first argument that is no option means.
    pub shows: Shows,
    /// Options whose value is what runs: `-m`, `-jar`.
    pub named_by: Vec<String>,
    /// Options whose value is program text: nothing is shown but the interpreter itself, and the text is not looked at.
    pub inline: Vec<String>,
    /// Options that take the argument behind them as their value.
    pub with_value: Vec<String>,
}

impl Tools {
    /// The interpreter of this name.
    #[must_use]
    pub fn interpreter(&self, name: &str) -> Option<&Interpreter> {
        self.interpreters.iter().find(|one| one.names.iter().any(|pattern| pattern.fits(name)))
    }

    /// The name to show for a program.
    #[must_use]
    pub fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.display.get(name).map_or(name, String::as_str)
    }

    pub(crate) fn read(&mut self, section: Option<&Section<'_>>) -> Result<(), RulesError> {
        let Some(section) = section else { return Ok(()) };
        section.only(&["display", "interpreter"])?;
        for (from, to) in section.pairs("display", MAX_ENTRIES)? {
            self.display.insert(from.value.to_owned(), to.value.to_owned());
        }
        let mut own = section.sections("interpreter")?.iter().map(Interpreter::read).collect::<Result<Vec<_>, _>>()?;
        own.append(&mut self.interpreters);
        self.interpreters = own;
        if self.interpreters.len() > MAX_INTERPRETERS {
            return Err(section.refuse("too many interpreters", "keep at most 256, the built-in ones included"));
        }
        Ok(())
    }
}

impl Interpreter {
    fn read(section: &Section<'_>) -> Result<Self, RulesError> {
        section.only(&["names", "shows", "named_by", "inline", "with_value"])?;
        let names = name::list(section, "names", MAX_OPTIONS)?;
        if names.is_empty() {
            return Err(section.refuse("an interpreter without names", "give it names = [\"python3*\"]"));
        }
        let shows = section.required_text("shows", "write shows = \"script\" or \"class\"")?;
        let shows = match shows.value {
            "script" => Shows::Script,
            "class" => Shows::Class,
            _ => {
                return Err(shows.refuse(&format!("{} cannot be shown", shows.shown()), "write script or class"));
            }
        };
        Ok(Self {
            names,
            shows,
            named_by: telling_options(section, "named_by")?,
            inline: options(section, "inline")?,
            with_value: options(section, "with_value")?,
        })
    }
}

/// A list of options whose values leave the machine: none whose name says that it is a secret.
pub(crate) fn telling_options(section: &Section<'_>, key: &str) -> Result<Vec<String>, RulesError> {
    let texts = section.list(key, MAX_OPTIONS)?;
    for text in &texts {
        if is_secret(text.value) {
            let what = format!("the value of {} is a secret by its name, and no rule may ask for it", text.shown());
            return Err(text.refuse(&what, "take it away"));
        }
    }
    Ok(texts.iter().map(|text| text.value.to_owned()).collect())
}

/// A list of options or words of a command line.
pub(crate) fn options(section: &Section<'_>, key: &str) -> Result<Vec<String>, RulesError> {
    Ok(section.list(key, MAX_OPTIONS)?.iter().map(|text| text.value.to_owned()).collect())
}
