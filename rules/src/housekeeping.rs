//! `[housekeeping]`: who would run on a machine that nobody uses.
//!
//! These lists alone make nobody housekeeping: the agent also asks where an executable and a unit come from, see
//! `node-agent/src/workload/classify.rs`.

use crate::{
    RulesError,
    container::{Container, Owner},
    guardrails::{
        MAX_FIRST_PERSONAL_UID, MIN_PREFIX_BYTES, NEVER_UNITS, Programs, RUNTIME_PROGRAMS, RUNTIME_UNITS,
        SCHEDULER_UNITS,
    },
    read::{MAX_ENTRIES, Section, Text},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// Beginnings are compared with every name, one after the other: so they are few.
const MAX_PREFIXES: usize = 64;
/// Each of them is looked at on disk.
const MAX_PATHS: usize = 256;
const UNIT_SUFFIXES: [&str; 5] = [".service", ".scope", ".mount", ".swap", ".socket"];

/// Who is housekeeping, and where nobody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Housekeeping {
    /// Names of executable files, as they lie on disk.
    pub names: BTreeSet<String>,
    /// Beginnings of such names.
    pub name_prefixes: BTreeSet<String>,
    /// Executables that no package database holds, by their whole path.
    pub paths: BTreeSet<String>,
    /// Units in which everything of the distribution's is housekeeping.
    pub units: BTreeSet<String>,
    /// Where those units must lie to count.
    pub unit_parents: BTreeSet<String>,
    /// Units of schedulers: like `units` as long as the distribution ships every table that they work from.
    pub scheduler_units: BTreeSet<String>,
    /// Units of container runtimes and of kubelet.
    pub runtime_units: BTreeSet<String>,
    /// Programs that are housekeeping in those units and nowhere else.
    pub runtime_programs: BTreeSet<String>,
    /// Containers that are housekeeping: the `[[container]]` entries.
    pub containers: Vec<Container>,
    /// First user id of people; below are the system's own. At 0 nothing is housekeeping.
    pub first_personal_uid: u32,
    /// Segments of cgroup paths that mean people, containers or batch systems: nobody below is housekeeping.
    pub excluded_cgroups: BTreeSet<String>,
    /// Beginnings of such segments.
    pub excluded_cgroup_prefixes: BTreeSet<String>,
}

impl Housekeeping {
    /// Whether a segment of a cgroup path means people, containers or batch systems.
    #[must_use]
    pub fn is_excluded(&self, segment: &str) -> bool {
        self.excluded_cgroups.contains(segment)
            || self.excluded_cgroup_prefixes.iter().any(|prefix| segment.starts_with(prefix.as_str()))
    }

    /// Whether a container of such a pod is housekeeping; all three must come from who cannot be spoofed.
    #[must_use]
    pub fn is_upkeep_container(&self, namespace: &str, owner: &Owner, image: &str) -> bool {
        self.containers.iter().any(|one| one.fits(namespace, owner, image))
    }

    /// Whether a cgroup path is that of a container runtime's or kubelet's own unit, in whichever slice that no rule excludes (EKS has a
    /// `runtime.slice`).
    #[must_use]
    pub fn is_runtime_unit(&self, path: &str) -> bool {
        let Some((slices, unit)) = path.rsplit_once('/') else { return false };
        let is_slice = |segment: &str| segment.ends_with(".slice") && !self.is_excluded(segment);
        self.runtime_units.contains(unit) && slices.split('/').skip(1).all(is_slice)
    }

    pub(crate) fn read(
        &mut self,
        section: Option<&Section<'_>>,
        guardrail: &Self,
        programs: &Programs<'_>,
    ) -> Result<(), RulesError> {
        // First of all: what a file leaves out or forgets stays excluded.
        self.excluded_cgroups.extend(guardrail.excluded_cgroups.iter().cloned());
        self.excluded_cgroup_prefixes.extend(guardrail.excluded_cgroup_prefixes.iter().cloned());
        let Some(section) = section else { return Ok(()) };
        section.only(&[
            "names",
            "name_prefixes",
            "paths",
            "units",
            "unit_parents",
            "scheduler_units",
            "runtime_units",
            "runtime_programs",
            "first_personal_uid",
            "excluded_cgroups",
            "excluded_cgroup_prefixes",
        ])?;
        if let Some(uid) = section.number("first_personal_uid", MAX_FIRST_PERSONAL_UID)? {
            self.first_personal_uid = uid;
        }
        for (key, most, known, check) in [
            ("excluded_cgroups", MAX_ENTRIES, &mut self.excluded_cgroups, &segment as &dyn Fn(&Text<'_>) -> _),
            ("excluded_cgroup_prefixes", MAX_ENTRIES, &mut self.excluded_cgroup_prefixes, &segment_prefix),
            ("names", MAX_ENTRIES, &mut self.names, &|text| name(text, programs)),
            ("name_prefixes", MAX_PREFIXES, &mut self.name_prefixes, &|text| name_prefix(text, programs)),
            ("paths", MAX_PATHS, &mut self.paths, &|text| path(text, programs)),
            ("scheduler_units", MAX_ENTRIES, &mut self.scheduler_units, &|text| {
                one_of(text, SCHEDULER_UNITS, "unit of a scheduler")
            }),
            ("runtime_units", MAX_ENTRIES, &mut self.runtime_units, &|text| {
                one_of(text, RUNTIME_UNITS, "unit of a container runtime")
            }),
            ("runtime_programs", MAX_ENTRIES, &mut self.runtime_programs, &|text| {
                one_of(text, RUNTIME_PROGRAMS, "program of a container runtime")
            }),
        ] {
            extend(section, key, most, known, check)?;
        }
        // A unit in an excluded cgroup would never count: better said than ignored.
        let excluded = Self { excluded_cgroups: self.excluded_cgroups.clone(), ..Self::default() };
        let excluded = Self { excluded_cgroup_prefixes: self.excluded_cgroup_prefixes.clone(), ..excluded };
        extend(section, "units", MAX_ENTRIES, &mut self.units, &|text| unit(text, &excluded))?;
        extend(section, "unit_parents", MAX_PREFIXES, &mut self.unit_parents, &|text| unit_parent(text, &excluded))
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
    if text.value.contains(['*', '?', '/']) {
        let what = format!("{} is no name of an executable file", text.shown());
        return Err(text.refuse(
            &what,
            "names are taken as they are; beginnings belong into `name_prefixes`, whole paths into `paths`",
        ));
    }
    Ok(())
}

fn name(text: &Text<'_>, programs: &Programs<'_>) -> Result<(), RulesError> {
    program(text)?;
    never(text, text.value, programs)
}

fn never(text: &Text<'_>, name: &str, programs: &Programs<'_>) -> Result<(), RulesError> {
    if programs.include(name) {
        let what = format!("{} runs what others wrote and is never housekeeping by its name", text.shown());
        return Err(text.refuse(&what, "take it away; name the unit in `units` if it runs in one of its own"));
    }
    Ok(())
}

fn path(text: &Text<'_>, programs: &Programs<'_>) -> Result<(), RulesError> {
    let parts = text.value.strip_prefix('/').map(|path| path.split('/'));
    let is_whole = parts.is_some_and(|mut parts| parts.all(|part| !matches!(part, "" | "." | "..")));
    if !is_whole || text.value.contains(['*', '?']) {
        let what = format!("{} is no whole path of a file", text.shown());
        return Err(text.refuse(&what, "write it from the root on, as in \"/opt/acme/bin/acme-monitor\""));
    }
    never(text, text.value.rsplit('/').next().unwrap_or_default(), programs)
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

fn unit(text: &Text<'_>, excluded: &Housekeeping) -> Result<(), RulesError> {
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
    if NEVER_UNITS.contains(&base) || excluded.is_excluded(text.value) {
        let what = format!("{} holds what people, containers or batch systems run", text.shown());
        return Err(text.refuse(&what, "take it away; it never counts as upkeep"));
    }
    Ok(())
}

fn unit_parent(text: &Text<'_>, excluded: &Housekeeping) -> Result<(), RulesError> {
    let parent = text.value;
    let slices =
        parent.strip_prefix('/').and_then(|inner| if inner.is_empty() { Some("") } else { inner.strip_suffix('/') });
    let is_slice = |segment: &str| segment.ends_with(".slice") && segment.len() > ".slice".len();
    let fits = slices.is_some_and(|slices| slices.is_empty() || slices.split('/').all(is_slice));
    if !fits || parent.split('/').any(|segment| excluded.is_excluded(segment)) {
        let what = format!("{} is no slice of the system", text.shown());
        return Err(text.refuse(&what, "write \"/\", or slices as in \"/system.slice/\""));
    }
    Ok(())
}
