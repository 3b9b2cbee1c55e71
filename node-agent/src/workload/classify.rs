//! To which class a process belongs. ◇
//!
//! A process is housekeeping if and only if it is no kernel thread and not this agent, and either of these holds:
//!
//! - Kubelet says that it is in a container whose namespace, DaemonSet and image a rule names together, or Docker that it is in ECS's own agent
//!   (`host/runtime`).
//! - A system user runs it, its cgroup is known and belongs to no person, container or batch system, the file that it executes is the
//!   distribution's own, and one of these holds: that file's name is listed; its unit is listed and is the distribution's, unchanged; its unit is a
//!   scheduler's, and the distribution ships every table of that scheduler; its unit is a container runtime's, and the file is a part of the runtime.
//!
//! The name by which a process goes decides nothing: whoever starts it chooses it. Children do not inherit:
//! what housekeeping starts is judged by itself, and a script by its interpreter. All else is workload.

use heartbeat::wire;
use std::collections::BTreeSet;
use workload_rules::Housekeeping;

/// Whose work a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Work that somebody wants.
    Workload,
    /// Would run on a machine that nobody uses.
    Housekeeping,
    /// A kernel thread.
    Kernel,
    /// This agent.
    Own,
}

impl Class {
    /// As the contract has it.
    #[must_use]
    pub const fn to_wire(self) -> wire::Class {
        match self {
            Self::Workload => wire::Class::Workload,
            Self::Housekeeping => wire::Class::Housekeeping,
            Self::Kernel => wire::Class::Kernel,
            Self::Own => wire::Class::Self_,
        }
    }
}

/// What a process is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits<'a> {
    /// The user.
    pub uid: u32,
    /// The kernel says that it is its own thread.
    pub is_kernel_thread: bool,
    /// A process of this agent.
    pub is_own: bool,
    /// `None` if it is not known: the cgroup is gone, or the kernel does not tell.
    pub cgroup_path: Option<&'a str>,
    /// Its cgroup is that of a container which a rule calls housekeeping, by kubelet's word, or of ECS's own agent.
    pub is_upkeep_container: bool,
}

/// What of a machine its distribution shipped. Each question may cost a read of the disk, so few are asked.
pub trait Origin {
    /// Name of the executable file, if the package database or the rules know it.
    fn file_name(&mut self) -> Option<String>;
    /// Whether that file is the distribution's own.
    fn is_own_file(&mut self) -> bool;
    /// Whether this unit is the distribution's own, unchanged.
    fn is_own_unit(&mut self, unit: &str) -> bool;
    /// Whether it ships every table and job of cron's.
    fn ships_crontabs(&mut self) -> bool;
}

/// The class of a process by these rules.
#[must_use]
pub fn classify(rules: &Housekeeping, process: &Traits<'_>, origin: &mut dyn Origin) -> Class {
    if process.is_kernel_thread {
        return Class::Kernel;
    }
    if process.is_own {
        return Class::Own;
    }
    let Some(path) = process.cgroup_path else { return Class::Workload };
    if process.is_upkeep_container {
        return Class::Housekeeping;
    }
    if process.uid >= rules.first_personal_uid || path.split('/').any(|segment| rules.is_excluded(segment)) {
        return Class::Workload;
    }
    let Some(name) = origin.file_name() else { return Class::Workload };
    let is_listed = rules.names.contains(&name)
        || rules.paths.iter().any(|path| path.rsplit('/').next() == Some(&name))
        || rules.name_prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
        || (rules.runtime_programs.contains(&name) && rules.is_runtime_unit(path));
    let is_upkeep = is_listed
        || unit_of(rules, path).is_some_and(|unit| {
            (is_listed_unit(&rules.units, unit) || (rules.scheduler_units.contains(unit) && origin.ships_crontabs()))
                && origin.is_own_unit(unit)
        });
    if is_upkeep && origin.is_own_file() { Class::Housekeeping } else { Class::Workload }
}

/// The unit that a cgroup is, where units of upkeep lie; none for what lies below a unit.
fn unit_of<'a>(rules: &Housekeeping, path: &'a str) -> Option<&'a str> {
    let units = rules.unit_parents.iter().filter_map(|parent| path.strip_prefix(parent.as_str()));
    let place = units.min_by_key(|unit| unit.len())?;
    let instance = place.split_once('/').filter(|(slice, instance)| is_slice_of(slice, instance));
    let unit = instance.map_or(place, |(_, instance)| instance);
    Some(unit).filter(|unit| !unit.is_empty() && !unit.contains('/'))
}

/// Whether systemd puts this instance of a template there unless the unit says otherwise: `system-getty.slice` has `getty@tty1.service`
/// (systemd.resource-control(5), `Slice=`).
fn is_slice_of(slice: &str, instance: &str) -> bool {
    let template = instance.split_once('@').map(|(template, _)| template.replace('\\', r"\x5c").replace('-', r"\x2d"));
    let of = slice.strip_prefix("system-").and_then(|slice| slice.strip_suffix(".slice"));
    of.is_some() && of == template.as_deref()
}

fn is_listed_unit(units: &BTreeSet<String>, unit: &str) -> bool {
    // An instance of a template is written `name@instance.service`.
    let template = unit.split_once('@').and_then(|(name, rest)| Some(format!("{name}@.{}", rest.rsplit_once('.')?.1)));
    units.contains(unit) || template.is_some_and(|template| units.contains(&template))
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
