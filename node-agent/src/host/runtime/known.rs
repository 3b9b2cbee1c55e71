//! What the sources said, and what follows from it. ◇: time is given.
//!
//! A container's id is made once and names nothing else afterwards, so what is known of it is kept for [`LINGER`] after a source has stopped to name it: the
//! last counters of a container come after its end. A source's word makes housekeeping for [`GRACE`] after its last whole answer, and not longer.

use super::report::{ARCHIVE, Answer, Container, Failure, Source, is_id};
use crate::coverage::Status;
use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};
use workload_rules::{Housekeeping, Owner};

/// Questions come once a minute at least: one may fail.
pub(super) const GRACE: Duration = Duration::from_secs(90);
pub(super) const LINGER: Duration = Duration::from_secs(120);
/// How soon a container that no source knows is asked for again, and twice as late each time after that: a source may tell of a container long after
/// its first process ran (Docker when that was started, kubelet with the pod's next status).
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Most of such that are remembered.
const MAX_UNKNOWN: usize = 4_096;
/// The roots of kubelet's cgroups, with its own driver and with systemd's.
const ROOTS: [&str; 2] = ["kubepods", "kubepods.slice"];
/// What runtimes write in front of a container's id.
const PREFIXES: [&str; 3] = ["cri-containerd-", "crio-", "docker-"];

#[derive(Debug, Default)]
struct Told {
    containers: HashMap<String, (Container, Instant)>,
    answered_at: Option<Instant>,
    failure: Option<Failure>,
}

impl Told {
    fn is_fresh(&self, now: Instant) -> bool {
        self.answered_at.is_some_and(|at| now.saturating_duration_since(at) <= GRACE)
    }
}

/// When to ask for a container again, and how long to wait after that.
#[derive(Debug)]
struct Asked {
    again_at: Instant,
    pause: Duration,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    sources: BTreeMap<Source, Told>,
    /// Ids that no source knows.
    unknown: HashMap<String, Asked>,
    has_unknown: bool,
}

impl Known {
    /// Takes answers that came at this moment.
    pub(super) fn take(&mut self, answers: Vec<Answer>, now: Instant) {
        for Answer { source, outcome } in answers {
            let told = self.sources.entry(source).or_default();
            match outcome {
                Ok(containers) => {
                    told.containers.retain(|_, (_, seen)| now.saturating_duration_since(*seen) <= LINGER);
                    told.containers.extend(containers.into_iter().map(|one| (one.id.clone(), (one, now))));
                    told.answered_at = Some(now);
                    told.failure = None;
                }
                Err(failure) => told.failure = Some(failure),
            }
        }
    }

    /// Whether something was looked up since the last call that nobody knows and that is worth a question.
    pub(super) fn has_unknown(&mut self) -> bool {
        std::mem::take(&mut self.has_unknown)
    }

    /// What is told of the container of this id, kubelet's word first.
    pub(super) fn describe(&mut self, id: &str, now: Instant) -> Option<&Container> {
        if !is_id(id) {
            return None;
        }
        let knows = |told: &Told| told.containers.contains_key(id);
        let Some(source) = self.sources.iter().find(|(_, told)| knows(told)).map(|(source, _)| *source) else {
            self.miss(id, now);
            return None;
        };
        self.sources.get(&source)?.containers.get(id).map(|(container, _)| container)
    }

    fn miss(&mut self, id: &str, now: Instant) {
        if self.unknown.len() >= MAX_UNKNOWN {
            self.unknown.clear();
        }
        let asked = self.unknown.entry(id.to_owned()).or_insert(Asked { again_at: now, pause: FIRST_PAUSE });
        if asked.again_at <= now {
            asked.again_at = now + asked.pause;
            asked.pause = asked.pause.saturating_mul(2);
            self.has_unknown = true;
        }
    }

    /// Whether a cgroup is that of a container which rules call housekeeping, or of one of the system's own.
    pub(super) fn is_upkeep(&mut self, rules: &Housekeeping, path: &str, now: Instant) -> bool {
        self.is_listed(rules, path, now) || self.is_of_archive(rules, path, now)
    }

    /// Whether Docker knows the container and runs it from an archive that root keeps.
    fn is_of_archive(&mut self, rules: &Housekeeping, path: &str, now: Instant) -> bool {
        let Some(id) = docker_id(rules, path) else { return false };
        let Some(docker) = self.sources.get(&Source::Docker).filter(|docker| docker.is_fresh(now)) else {
            return false;
        };
        let Some((container, _)) = docker.containers.get(id) else {
            self.miss(id, now);
            return false;
        };
        container.owner.strip_prefix(ARCHIVE).is_some_and(|path| path.starts_with('/'))
    }

    /// Whether kubelet knows the container by id and pod as one that rules call housekeeping, nobody put it into the pod afterwards, and the runtime, where it
    /// is asked, knows it as a container of the same pod.
    fn is_listed(&mut self, rules: &Housekeeping, path: &str, now: Instant) -> bool {
        let Some(place) = Place::of(rules, path) else { return false };
        let Some(kubelet) = self.sources.get(&Source::Kubelet).filter(|kubelet| kubelet.is_fresh(now)) else {
            return false;
        };
        let Some((container, _)) = kubelet.containers.get(place.id) else {
            self.miss(place.id, now);
            return false;
        };
        let runtime = self.sources.get(&Source::Cri).filter(|cri| cri.is_fresh(now));
        let is_confirmed = runtime.is_none_or(|cri| {
            cri.containers
                .get(place.id)
                .is_some_and(|(same, _)| place.is_of(&same.pod_uid) && same.name == container.name)
        });
        let owner = container.owner.split_once('/').and_then(|(kind, name)| match kind {
            "DaemonSet" => Some(Owner::DaemonSet(name.to_owned())),
            "StaticPod" => Some(Owner::StaticPod(name.to_owned())),
            _ => None,
        });
        is_confirmed
            && !container.is_ephemeral
            && place.is_of(&container.pod_uid)
            && owner.is_some_and(|owner| rules.is_upkeep_container(&container.namespace, &owner, &container.image))
    }

    /// How the capability stands.
    pub(super) fn status(&self) -> (Status, String) {
        let mut worst = (Status::Ok, String::new());
        let mut absent = Vec::new();
        for (source, told) in &self.sources {
            let (status, why) = match &told.failure {
                None => continue,
                Some(Failure::Absent(why)) if told.answered_at.is_none() => {
                    absent.push(format!("{}: {why}", source.name()));
                    continue;
                }
                Some(Failure::Denied(why)) => (Status::Denied, why),
                Some(Failure::Absent(why) | Failure::Broken(why)) => (Status::Broken, why),
            };
            if worst.0 == Status::Ok {
                worst = (status, format!("{}: {why}", source.name()));
            }
        }
        match worst.0 {
            _ if self.sources.is_empty() => (Status::Broken, "the helper has not answered yet".to_owned()),
            Status::Ok if absent.len() == self.sources.len() => (Status::NotApplicable, absent.join("; ")),
            Status::Ok => (Status::Ok, absent.join("; ")),
            _ => worst,
        }
    }
}

/// Where kubelet puts a container.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    /// The pod's uid, 32 hexadecimal digits.
    pod: String,
    id: &'a str,
}

impl<'a> Place<'a> {
    /// What a cgroup path says, if it begins at kubelet's own root: below it only root makes cgroups. What lies deeper inside the container
    /// belongs to it, unless it is a container again.
    fn of(rules: &Housekeeping, path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        ROOTS.contains(&segments.next()?).then_some(())?;
        let pod = segments.find_map(pod)?;
        let scope = segments.next()?;
        let id = scope.strip_suffix(".scope").unwrap_or(scope);
        let id = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix)).unwrap_or(id);
        (is_id(id) && !segments.any(|segment| is_id(segment) || rules.is_excluded(segment))).then_some(Self { pod, id })
    }

    fn is_of(&self, uid: &str) -> bool {
        plain(uid) == self.pod
    }
}

/// The container of a cgroup path where Docker's daemon makes them, with its own driver and with systemd's: there only root makes cgroups. What
/// lies deeper belongs to it, unless it is a container again.
fn docker_id<'a>(rules: &Housekeeping, path: &'a str) -> Option<&'a str> {
    let mut segments = path.strip_prefix('/')?.split('/');
    let id = match segments.next()? {
        "docker" => segments.next()?,
        "system.slice" => segments.next()?.strip_prefix("docker-")?.strip_suffix(".scope")?,
        _ => return None,
    };
    (is_id(id) && !segments.any(|segment| is_id(segment) || rules.is_excluded(segment))).then_some(id)
}

/// The pod of a segment: `podUID`, `kubepods-burstable-podUID.slice`.
fn pod(segment: &str) -> Option<String> {
    let (before, uid) = segment.strip_suffix(".slice").unwrap_or(segment).rsplit_once("pod")?;
    let uid = plain(uid);
    let is_kubelets = before.is_empty() || (before.starts_with("kubepods-") && before.ends_with('-'));
    (is_kubelets && uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(uid)
}

/// A uid as the API writes it has dashes, in a slice's name underscores, and of a static pod none.
fn plain(uid: &str) -> String {
    uid.chars().filter(|c| !matches!(c, '-' | '_')).collect()
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
