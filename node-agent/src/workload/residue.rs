//! CPU time that a cgroup's own counter has and no task's path accounted for. ◇
//!
//! A cgroup's counter and its tasks' own counters grow by the same nanoseconds (`update_curr` adds each stretch of execution to both:
//! <https://github.com/torvalds/linux/blob/v6.12/kernel/sched/fair.c>), so what the counter has beyond them was lost on a task's own path: its end was
//! not shown, or a sample failed. *How much* is missing is read at the root alone, cumulative since the baseline: a task that moves between two cgroups
//! takes nothing from the sum, and neither does one whose cgroup is gone. *Where* it is missing is read from what each cgroup below gained in this
//! interval. Where that is not clear (a task moved meanwhile, the cgroup is gone), the parent gets it, as workload.
//!
//! Nothing is counted twice: counters are read before the tasks, so that whatever runs in between makes the difference smaller, never larger; what was
//! taken up once is never taken up again; and what was lost in an unclear moment stays out rather than in. Without I/O.

use super::Class;
use std::collections::BTreeMap;

/// Less than this is left for a later interval: it stays in the sum.
pub const THRESHOLD_NS: u64 = 1_000_000;
/// A cgroup with less than a twentieth of what is missing is not where it is missing.
const MINOR_PART: u64 = 20;
const ROOT: &str = "/";

/// What a cgroup's files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The kernel's id: later cgroups of a tree have higher ones.
    pub id: u64,
    /// CPU time of all that ran in it and below it, in nanoseconds.
    pub usage_ns: u64,
    /// Whether there are cgroups below it.
    pub has_children: bool,
}

/// Samples by path; those of one moment.
pub type Samples = BTreeMap<String, Sample>;

/// Which cgroup's counter tells the sum of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// The root's own: version 1.
    Root,
    /// The root's counter is sampled by the tick (`/proc/stat`), so those right below it are added up: version 2. Tasks in the root itself have none.
    TopLevel,
}

/// CPU time taken up for one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenUp {
    /// Whose it was, as far as the cgroup tells.
    pub class: Class,
    /// The cgroup's path.
    pub path: String,
    /// In nanoseconds.
    pub cpu_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Node {
    id: Option<u64>,
    /// What the counter had at the baseline; less than 0 where it was first read later.
    base_ns: i128,
    usage_ns: u64,
    /// Of its own tasks and of those below it.
    accounted_ns: u64,
    taken_ns: u64,
    /// Missing by itself at the end of the interval before.
    missing_before_ns: i128,
    /// What its own tasks were, a bit for each class.
    classes: u8,
    /// Now, or at any sample before: what a child that is gone lost is here now.
    has_children: bool,
    /// It was among those to read once already.
    was_asked: bool,
}

impl Node {
    /// A cgroup that is newer than all that were known has its whole counter from this interval.
    fn learn(&mut self, sample: &Sample, known_until: u64) {
        self.usage_ns = sample.usage_ns;
        self.has_children |= sample.has_children;
        if self.id.replace(sample.id).is_none() && sample.id <= known_until {
            self.base_ns = i128::from(sample.usage_ns) - i128::from(self.accounted_ns);
        }
    }

    fn missing_ns(&self) -> i128 {
        i128::from(self.usage_ns) - self.base_ns - i128::from(self.accounted_ns)
    }

    /// What may be missing here by what it gained in this interval, and by all that it ever had.
    fn may_take_ns(&self) -> u64 {
        let gained = self.missing_ns() - self.missing_before_ns;
        let left = self.missing_ns() - i128::from(self.taken_ns);
        u64::try_from(gained.min(left)).unwrap_or(0)
    }
}

/// Compares the counters of one tree with what its tasks accounted for.
#[derive(Clone, Debug)]
pub struct Residue {
    total: Total,
    nodes: BTreeMap<String, Node>,
    newest_id: u64,
    /// Accounted for by tasks that stand in no counter of [`Total::TopLevel`], or in one that is not known.
    elsewhere_ns: u64,
    taken_ns: u64,
    /// Subtracted from what seems to be missing, after a moment that cannot be judged.
    offset_ns: i128,
    /// A cgroup that the total rests on is gone, or began again.
    is_unclear: bool,
}

impl Residue {
    /// Without cgroups; [`Residue::begin`] gives the baseline.
    #[must_use]
    pub fn new(total: Total) -> Self {
        let nodes = BTreeMap::from([(ROOT.to_owned(), Node::default())]);
        Self { total, nodes, newest_id: 0, elsewhere_ns: 0, taken_ns: 0, offset_ns: 0, is_unclear: false }
    }

    /// Everything counts from this moment on. The samples are to be newer than the tasks' baseline.
    pub fn begin(&mut self, samples: &Samples) {
        *self = Self { nodes: std::mem::take(&mut self.nodes), ..Self::new(self.total) };
        for node in self.nodes.values_mut() {
            *node = Node { classes: node.classes, ..Node::default() };
        }
        self.sampled(samples);
        for node in self.nodes.values_mut() {
            node.base_ns = i128::from(node.usage_ns);
            node.missing_before_ns = 0;
        }
    }

    /// The cgroups to read.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Those that were never read.
    pub fn new_paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, node)| node.id.is_none()).map(|(path, _)| path.as_str())
    }

    /// CPU time that tasks in this place accounted for; `None` if their place is not known.
    pub fn account(&mut self, place: Option<&str>, class: Class, cpu_ns: u64) {
        let is_top_level = self.total == Total::TopLevel;
        // The kernel's own threads stand in the root and nowhere else.
        if place.is_none_or(|place| is_top_level && place == ROOT) && (class != Class::Kernel || !is_top_level) {
            self.elsewhere_ns = self.elsewhere_ns.saturating_add(cpu_ns);
        }
        let Some(place) = place else { return };
        for path in up(place) {
            let node = match self.nodes.get_mut(path) {
                Some(node) => node,
                None => self.nodes.entry(path.to_owned()).or_default(),
            };
            node.accounted_ns = node.accounted_ns.saturating_add(cpu_ns);
            if path == place {
                node.classes |= 1 << class as u8;
            }
        }
    }

    /// How much is missing by the last samples, in nanoseconds.
    #[must_use]
    pub fn missing_ns(&self) -> u64 {
        if self.is_unclear {
            return 0;
        }
        u64::try_from(self.all_missing_ns() - self.offset_ns - i128::from(self.taken_ns)).unwrap_or(0)
    }

    /// Takes up what is missing by the last samples. `slack_ns` is the CPU time that this machine can have used between the samples and what was
    /// accounted for last: so much may seem to be missing later of what was not missing now.
    pub fn take_up(&mut self, slack_ns: u64) -> Vec<TakenUp> {
        let missing = self.all_missing_ns() - self.offset_ns - i128::from(self.taken_ns);
        let mut taken = Vec::new();
        if std::mem::take(&mut self.is_unclear) {
            self.offset_ns += missing + i128::from(slack_ns);
        } else if let Ok(missing) = u64::try_from(missing)
            && missing >= THRESHOLD_NS
        {
            self.give(ROOT, missing, &mut taken);
        }
        for what in &taken {
            self.taken_ns = self.taken_ns.saturating_add(what.cpu_ns);
            for path in up(&what.path) {
                if let Some(node) = self.nodes.get_mut(path) {
                    node.taken_ns = node.taken_ns.saturating_add(what.cpu_ns);
                }
            }
        }
        for node in self.nodes.values_mut() {
            node.missing_before_ns = node.missing_ns();
        }
        taken
    }

    /// Learns what the counters say. They are to be older than what was accounted for last.
    pub fn sampled(&mut self, samples: &Samples) {
        let counts = |path: &str| match self.total {
            Total::Root => path == ROOT,
            Total::TopLevel => is_top_level(path),
        };
        // Where a sum rests on it, it is a hole in the sum; elsewhere the cgroup above has its counter.
        let gone = |path: &str, node: &Node| {
            let is_other =
                |sample: &Sample| sample.id != node.id.unwrap_or(sample.id) || sample.usage_ns < node.usage_ns;
            path != ROOT && samples.get(path).map_or(node.id.is_some() || node.was_asked, is_other)
        };
        let all_gone: Vec<String> =
            self.nodes.iter().filter(|(path, node)| gone(path, node)).map(|(path, _)| path.clone()).collect();
        for path in all_gone {
            let gone = self.nodes.remove(&path).unwrap_or_default();
            // Where nothing ever ran nothing is lost.
            self.is_unclear |= counts(&path) && (gone.accounted_ns > 0 || gone.usage_ns > 0);
        }
        let known_until = self.newest_id;
        for (path, sample) in samples {
            self.nodes.entry(path.clone()).or_default().learn(sample, known_until);
            self.newest_id = self.newest_id.max(sample.id);
        }
        for node in self.nodes.values_mut() {
            node.was_asked = true;
        }
    }

    /// Learns of cgroups that were seen for the first time in this interval, where that changes no sum: these samples may be newer than
    /// what was accounted for last.
    pub fn sampled_late(&mut self, samples: &Samples) {
        let is_needed = |path: &str| self.total == Total::TopLevel && is_top_level(path);
        let known_until = self.newest_id;
        for (path, sample) in samples.iter().filter(|(path, _)| !is_needed(path)) {
            if let Some(node) = self.nodes.get_mut(path).filter(|node| node.id.is_none()) {
                node.learn(sample, known_until);
                self.newest_id = self.newest_id.max(sample.id);
            }
        }
    }

    fn all_missing_ns(&self) -> i128 {
        match self.total {
            Total::Root => self.nodes.get(ROOT).map_or(0, Node::missing_ns) - i128::from(self.elsewhere_ns),
            Total::TopLevel => {
                let top = self.nodes.iter().filter(|(path, _)| is_top_level(path));
                top.map(|(_, node)| node.missing_ns()).sum::<i128>() - i128::from(self.elsewhere_ns)
            }
        }
    }

    /// Gives what is missing in a cgroup and below to those of its children that gained it, and what they did not to itself.
    fn give(&self, path: &str, missing_ns: u64, taken: &mut Vec<TakenUp>) {
        let mut parts: Vec<(&str, u64)> = (self.nodes.iter())
            .filter(|(child, _)| parent(child) == Some(path))
            .map(|(child, node)| (child.as_str(), node.may_take_ns()))
            .filter(|(_, part_ns)| *part_ns >= THRESHOLD_NS.max(missing_ns / MINOR_PART))
            .collect();
        parts.sort_by_key(|(_, part_ns)| std::cmp::Reverse(*part_ns));
        let sum_ns: u64 = parts.iter().map(|(_, part_ns)| part_ns).sum();
        // They gained more than is missing: something moved, and nobody knows what. One alone that did is where a task was that ended elsewhere.
        if sum_ns > missing_ns.saturating_add(missing_ns / MINOR_PART) {
            parts.clear();
        }
        let mut left_ns = missing_ns;
        for (child, part_ns) in parts {
            let part_ns = part_ns.min(left_ns);
            left_ns -= part_ns;
            self.give(child, part_ns, taken);
        }
        if left_ns >= THRESHOLD_NS {
            let class = self.nodes.get(path).map_or(Class::Workload, class_of);
            taken.push(TakenUp { class, path: path.to_owned(), cpu_ns: left_ns });
        }
    }
}

/// The class of all that ever ran in a cgroup without children; workload where that is more than one, or none is known.
///
/// Of a lost task nothing is known but its cgroup, so this is an inference, and the only one here. It is drawn since the alternative errs on every host that
/// loses ends by itself: a service's own lost end would be work, and such a machine never idle. What it can hide is a program that nobody saw
/// alive at a sample, in a cgroup in which only housekeeping was ever seen, and it stays in sight: a program whose end is seen, or that is seen alive at a sample, makes
/// the cgroup workload from then on, and housekeeping that uses more than its budget contradicts idleness.
fn class_of(node: &Node) -> Class {
    let classes = [Class::Housekeeping, Class::Kernel, Class::Own];
    let only = classes.into_iter().find(|class| node.classes == 1 << *class as u8);
    only.filter(|_| !node.has_children).unwrap_or(Class::Workload)
}

fn is_top_level(path: &str) -> bool {
    parent(path) == Some(ROOT)
}

fn parent(path: &str) -> Option<&str> {
    let (above, name) = path.rsplit_once('/')?;
    if name.is_empty() { None } else { Some(if above.is_empty() { ROOT } else { above }) }
}

/// A path and all above it, up to the root.
fn up(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| parent(path))
}

#[cfg(test)]
#[path = "residue_tests.rs"]
mod tests;
