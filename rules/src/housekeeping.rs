//! `[housekeeping]`: who would run on a machine that nobody uses.

use crate::{
    RulesError,
    floor::{
        MAX_FIRST_PERSONAL_UID, MAX_PROGRAM_BYTES, MIN_PREFIX_BYTES, NEVER_UNITS, Programs, SCHEDULER_WRAPPERS,
        SCHEDULERS,
    },
    read::{MAX_ENTRIES, Section, Text},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// Beginnings are compared with every name, one after the other: so they are few.
const MAX_PREFIXES: usize = 64;
const UNIT_SUFFIXES: [&str; 5] = [".service", ".scope", ".mount", ".swap", ".socket"];

/// Who is housekeeping, and where nobody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Housekeeping {
    /// Executable names, as the kernel cuts them.
    pub names: BTreeSet<String>,
    /// Beginnings of executable names.
    pub name_prefixes: BTreeSet<String>,
    /// Units in which everything is housekeeping.
    pub units: BTreeSet<String>,
    /// Where those units must lie to count.
    pub unit_parents: BTreeSet<String>,
    /// Parents whose own wrapper is part of them.
    pub schedulers: BTreeSet<String>,
    /// Names of such wrappers.
    pub scheduler_wrappers: BTreeSet<String>,
    /// First user id of people; below are the system's own. At 0 nothing is housekeeping.
    pub first_personal_uid: u32,
    /// Segments of cgroup paths that mean people, containers or batch systems.
    pub foreign_segments: BTreeSet<String>,
    /// Beginnings of such segments.
    pub foreign_prefixes: BTreeSet<String>,
}

impl Housekeeping {
    /// Whether a segment of a cgroup path means people, containers or batch systems.
    #[must_use]
    pub fn is_foreign(&self, segment: &str) -> bool {
        self.foreign_segments.contains(segment)
            || self.foreign_prefixes.iter().any(|prefix| segment.starts_with(prefix.as_str()))
    }

    pub(crate) fn read(
        &mut self,
        section: Option<&Section<'_>>,
        floor: &Self,
        programs: &Programs<'_>,
    ) -> Result<(), RulesError> {
        // First of all: what a file leaves out or forgets stays foreign.
        self.foreign_segments.extend(floor.foreign_segments.iter().cloned());
        self.foreign_prefixes.extend(floor.foreign_prefixes.iter().cloned());
        let Some(section) = section else { return Ok(()) };
        section.only(&[
            "names",
            "name_prefixes",
            "units",
            "unit_parents",
            "schedulers",
            "scheduler_wrappers",
            "first_personal_uid",
            "foreign_segments",
            "foreign_prefixes",
        ])?;
        if let Some(uid) = section.number("first_personal_uid", MAX_FIRST_PERSONAL_UID)? {
            self.first_personal_uid = uid;
        }
        for (key, most, known, check) in [
            ("foreign_segments", MAX_ENTRIES, &mut self.foreign_segments, &segment as &dyn Fn(&Text<'_>) -> _),
            ("foreign_prefixes", MAX_ENTRIES, &mut self.foreign_prefixes, &segment_prefix),
            ("names", MAX_ENTRIES, &mut self.names, &|text| name(text, programs)),
            ("name_prefixes", MAX_PREFIXES, &mut self.name_prefixes, &|text| name_prefix(text, programs)),
            ("schedulers", MAX_ENTRIES, &mut self.schedulers, &|text| one_of(text, SCHEDULERS, "scheduler")),
            ("scheduler_wrappers", MAX_ENTRIES, &mut self.scheduler_wrappers, &|text| {
                one_of(text, SCHEDULER_WRAPPERS, "wrapper of schedulers")
            }),
        ] {
            extend(section, key, most, known, check)?;
        }
        // A unit that is foreign would never count: better said than ignored.
        let foreign = Self { foreign_segments: self.foreign_segments.clone(), ..Self::default() };
        let foreign = Self { foreign_prefixes: self.foreign_prefixes.clone(), ..foreign };
        extend(section, "units", MAX_ENTRIES, &mut self.units, &|text| unit(text, &foreign))?;
        extend(section, "unit_parents", MAX_PREFIXES, &mut self.unit_parents, &|text| unit_parent(text, &foreign))
    }
}

fn extend(
    section: &Section<'_>,
    key: &str,
    most: usize,
    known: &mut BTreeSet<String>,
    check: &dyn Fn(&Text<'_>) -> Result<(), RulesError>,
) -> Result<(), RulesError> {
    for text in section.list(key, most)? {
        check(&text)?;
        known.insert(text.value.to_owned());
    }
    Ok(())
}

fn program(text: &Text<'_>) -> Result<(), RulesError> {
    if text.value.len() > MAX_PROGRAM_BYTES {
        let cut = (0..=MAX_PROGRAM_BYTES).rev().find(|end| text.value.is_char_boundary(*end)).unwrap_or(0);
        let what = format!("{} has {} bytes, and the kernel keeps 15 of a name", text.shown(), text.value.len());
        return Err(text.refuse(&what, &format!("write it as the kernel does: `{}`", &text.value[..cut])));
    }
    if text.value.contains(['*', '?', '/']) {
        let what = format!("{} is no name of a program", text.shown());
        return Err(text.refuse(&what, "names are taken as they are; beginnings belong into `name_prefixes`"));
    }
    Ok(())
}

fn name(text: &Text<'_>, programs: &Programs<'_>) -> Result<(), RulesError> {
    program(text)?;
    if programs.include(text.value) {
        let what = format!("{} runs what others wrote and is never housekeeping by its name", text.shown());
        return Err(text.refuse(&what, "take it away; name the unit in `units` if it runs in one of its own"));
    }
    Ok(())
}

fn name_prefix(text: &Text<'_>, programs: &Programs<'_>) -> Result<(), RulesError> {
    program(text)?;
    if text.value.len() < MIN_PREFIX_BYTES {
        let what = format!("{} is too short: it would fit names of all kinds", text.shown());
        return Err(text.refuse(&what, "write a beginning of at least 3 bytes, or whole names in `names`"));
    }
    if programs.may_begin_with(text.value) {
        let what = format!("{} is how the name of a shell, interpreter or engine begins or may begin", text.shown());
        return Err(text.refuse(&what, "write a longer beginning, or whole names in `names`"));
    }
    Ok(())
}

fn one_of(text: &Text<'_>, allowed: &[&str], what: &str) -> Result<(), RulesError> {
    if allowed.contains(&text.value) {
        return Ok(());
    }
    let remedy = format!("only these may be named: {}", allowed.join(", "));
    Err(text.refuse(&format!("{} is no known {what}", text.shown()), &remedy))
}

fn segment(text: &Text<'_>) -> Result<(), RulesError> {
    if text.value.contains('/') {
        let what = format!("{} is more than one segment of a cgroup path", text.shown());
        return Err(text.refuse(&what, "write one segment, without /"));
    }
    Ok(())
}

fn segment_prefix(text: &Text<'_>) -> Result<(), RulesError> {
    segment(text)?;
    if text.value.len() < MIN_PREFIX_BYTES {
        let what = format!("{} is too short: it would fit segments of all kinds", text.shown());
        return Err(text.refuse(&what, "write a beginning of at least 3 bytes"));
    }
    Ok(())
}

fn unit(text: &Text<'_>, foreign: &Housekeeping) -> Result<(), RulesError> {
    segment(text)?;
    let Some(name) = UNIT_SUFFIXES.iter().find_map(|suffix| text.value.strip_suffix(suffix)) else {
        let what = format!("{} is no unit that holds processes", text.shown());
        return Err(text.refuse(&what, &format!("its name ends with one of {}", UNIT_SUFFIXES.join(", "))));
    };
    let base = name.split('@').next().unwrap_or_default();
    if base.is_empty() || text.value.contains('*') {
        let what = format!("{} is no name of one unit", text.shown());
        return Err(text.refuse(&what, "write the unit's name; a template as name@.service"));
    }
    if NEVER_UNITS.contains(&base) || foreign.is_foreign(text.value) {
        let what = format!("{} holds what people, containers or batch systems run", text.shown());
        return Err(text.refuse(&what, "take it away; it never counts as upkeep"));
    }
    Ok(())
}

fn unit_parent(text: &Text<'_>, foreign: &Housekeeping) -> Result<(), RulesError> {
    let parent = text.value;
    let slices =
        parent.strip_prefix('/').and_then(|inner| if inner.is_empty() { Some("") } else { inner.strip_suffix('/') });
    let is_slice = |segment: &str| segment.ends_with(".slice") && segment.len() > ".slice".len();
    let fits = slices.is_some_and(|slices| slices.is_empty() || slices.split('/').all(is_slice));
    if !fits || parent.split('/').any(|segment| foreign.is_foreign(segment)) {
        let what = format!("{} is no slice of the system", text.shown());
        return Err(text.refuse(&what, "write \"/\", or slices as in \"/system.slice/\""));
    }
    Ok(())
}
