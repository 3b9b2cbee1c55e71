//! What starts machines: Auto Scaling groups of AWS and managed instance groups of Google Cloud, which keep them up, and launch templates.

use super::{Coverage, Machine, SnapshotPart, Thing, coverage};
use crate::{
    inventory::{AutoScalingGroup, Instance, Inventory, Launch},
    pricing::Cost,
    verdict::Decision,
};
use jiff::Timestamp;
use model::{HourlyRate, Provider, ResourceKey, ResourceKind, Usd, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A group that keeps machines up, a launch template of which machines have ended, or what waste was found of once.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its key.
    pub id: ResourceKey,
    /// What detectors decide from.
    pub inputs: GroupInputs,
    /// What its provider says of it; none if it does not list it.
    pub thing: Option<Thing>,
    /// What it costs.
    pub cost: Cost,
}

/// Everything that a detection on it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInputs {
    /// As of when.
    pub at: Timestamp,
    /// Whether its provider would list it.
    pub coverage: Coverage,
    /// As it is listed; none if it is not.
    pub state: Option<GroupState>,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

impl GroupInputs {
    /// Whether its provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.coverage != Coverage::NotAsked
    }
}

/// What is listed of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupState {
    /// So many machines it keeps up; none if its provider did not say.
    pub desired: Option<u32>,
    /// It never keeps more; none if its provider did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Its machines; none if it is not known which they are.
    pub members: Option<Members>,
    /// Its machines that were idle until they ended, within the last week; none if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relaunches: Option<Relaunches>,
}

/// Machines of a group that were idle until they ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relaunches {
    /// So many.
    pub machines: u32,
    /// Since when the first of them was idle.
    pub since: Timestamp,
    /// Until when the last of them was seen to be idle.
    pub last: Timestamp,
    /// So long they were idle, together, in seconds.
    pub idle_s: u64,
    /// What that cost; none if one of them had no known price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Usd>,
}

/// A machine that was found idle, and has ended since without any work in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedIdle {
    /// Its group, or the launch template that it was started from.
    pub group: ResourceKey,
    /// Which.
    pub machine: ResourceKey,
    /// Since when it was idle.
    pub since: Timestamp,
    /// Until when it was seen to be.
    pub until: Timestamp,
    /// What it cost an hour; none if that is not known.
    pub rate: Option<HourlyRate>,
}

impl Relaunches {
    /// Each machine counts once: of one that was started again, its last time.
    fn of<'a>(ended: impl IntoIterator<Item = &'a EndedIdle>) -> Option<Self> {
        let each: BTreeMap<&ResourceKey, &EndedIdle> = ended.into_iter().map(|one| (&one.machine, one)).collect();
        let spans = || each.values().map(|one| one.until.duration_since(one.since));
        let spent = each.values().zip(spans()).try_fold(Usd::from_micros(0), |sum, (one, span)| {
            Some(Usd::from_micros(sum.micros().checked_add(one.rate?.over(span).micros())?))
        });
        Some(Self {
            machines: u32::try_from(each.len()).unwrap_or(u32::MAX),
            since: each.values().map(|one| one.since).min()?,
            last: each.values().map(|one| one.until).max()?,
            idle_s: spans().filter_map(|span| u64::try_from(span.as_secs()).ok()).sum(),
            spent,
        })
    }
}

/// The machines of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// So many of them run, or may.
    pub count: u32,
    /// So many are idle by the verdict on each.
    pub idle: u32,
    /// The first one that is active, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    /// AWS Batch started one of them, and ends them by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_batchs: bool,
    /// Since when all idle ones have been idle; none if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// So far the evidence of all idle ones reaches; none if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// One machine of a group.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    id: &'a str,
    /// None where its provider does not list it, or not say what it does.
    runs: Option<bool>,
    verdict: Verdict,
    idle: Option<(Timestamp, Timestamp)>,
    is_batchs: bool,
    /// What it costs; none where its provider does not list it.
    cost: Option<&'a Cost>,
}

impl<'a> Member<'a> {
    fn of(machine: &'a Machine) -> Self {
        let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
        let judgement = &machine.judgement;
        let window = match (judgement.verdict, &judgement.decision) {
            // Batch waits for a job, whatever it does.
            (Verdict::Idle, _) if !machine.inputs.jobs.is_none() => None,
            (Verdict::Idle, Decision::AllQuiet { total, .. }) => {
                judgement.since_unix_ms.and_then(time).zip(time(total.end_unix_ms))
            }
            _ => None,
        };
        Self {
            id: &machine.subject.id.id,
            runs: machine.subject.instance.as_ref().and_then(|instance| instance.state.runs()),
            verdict: judgement.verdict,
            idle: window,
            is_batchs: machine.inputs.worker.is_some(),
            cost: Some(&machine.cost),
        }
    }

    /// One that is stopped, in a warm pool say, costs no machine.
    fn may_run(&self) -> bool {
        self.runs != Some(false)
    }

    /// One that its group names, and no list has: it may have been started between the two lists.
    fn not_listed(id: &'a str) -> Self {
        Self { id, runs: None, verdict: Verdict::Unknown, idle: None, is_batchs: false, cost: None }
    }
}

impl Members {
    fn of<'a>(all: impl IntoIterator<Item = Member<'a>>) -> Self {
        let mut members = Self { count: 0, idle: 0, active: None, are_batchs: false, since: None, until: None };
        for member in all.into_iter().filter(Member::may_run) {
            members.count = members.count.saturating_add(1);
            members.are_batchs |= member.is_batchs;
            if member.verdict == Verdict::Active && members.active.is_none() {
                members.active = Some(member.id.to_owned());
            }
            if let (Some(true), Some((since, until))) = (member.runs, member.idle) {
                members.idle = members.idle.saturating_add(1);
                members.since = members.since.max(Some(since));
                members.until = Some(members.until.map_or(until, |all| all.min(until)));
            }
        }
        members
    }
}

/// Groups that keep machines up, launch templates of which machines have ended, and what open findings name, in the order of their keys.
#[must_use]
pub fn groups<'a>(
    inventory: &'a Inventory,
    machines: &'a [Machine],
    ended: &'a [EndedIdle],
    named: impl IntoIterator<Item = &'a ResourceKey>,
    at: Timestamp,
) -> Vec<Group> {
    let by_id: HashMap<&ResourceKey, &Machine> =
        machines.iter().map(|machine| (&machine.subject.id, machine)).collect();
    // Google's list of groups does not tell their machines, and each machine tells its group.
    let mut by_group: HashMap<ResourceKey, Vec<&Machine>> = HashMap::new();
    for machine in machines {
        if let Some(group) = machine.subject.instance.as_ref().and_then(Instance::group) {
            by_group.entry(group).or_default().push(machine);
        }
    }
    let mut ended_of: HashMap<&ResourceKey, Vec<&EndedIdle>> = HashMap::new();
    let runs = |key: &ResourceKey| by_id.get(key).is_some_and(|machine| Member::of(machine).may_run());
    for one in ended.iter().filter(|one| !runs(&one.machine)) {
        ended_of.entry(&one.group).or_default().push(one);
    }
    let mut all: BTreeMap<&ResourceKey, Option<&AutoScalingGroup>> = named.into_iter().map(|key| (key, None)).collect();
    let templates = ended_of.keys().copied().filter(|id| id.kind == ResourceKind::LaunchTemplate);
    all.extend(templates.map(|id| (id, None)));
    all.extend(inventory.autoscaling_groups.iter().map(|group| (&group.id, Some(group))));
    let group = |(id, listed): (&'a ResourceKey, Option<&'a AutoScalingGroup>)| {
        let member = |instance_id: &'a str| {
            let key = ResourceKey { kind: ResourceKind::Instance, id: instance_id.to_owned(), ..id.clone() };
            by_id.get(&key).map_or_else(|| Member::not_listed(instance_id), |machine| Member::of(machine))
        };
        let members: Option<Vec<Member<'_>>> = listed.and_then(|listed| match &listed.members {
            Some(members) => Some(members.iter().map(|one| member(&one.instance_id)).collect()),
            None => by_tag(listed, &by_group),
        });
        let cost = cost(members.as_deref().unwrap_or_default());
        let relaunches = ended_of.get(id).and_then(|ended| Relaunches::of(ended.iter().copied()));
        let machines_covered = coverage(inventory, &ResourceKey { kind: ResourceKind::Instance, ..id.clone() });
        let (covered, state) = if id.kind == ResourceKind::LaunchTemplate {
            // Templates are not listed: their machines are, and tell from which one they were started.
            (machines_covered, Some(GroupState { desired: None, most: None, members: None, relaunches }))
        } else {
            let state = listed.map(|listed| GroupState {
                desired: listed.desired_capacity,
                most: listed.max_size,
                members: members.map(Members::of),
                relaunches,
            });
            (coverage(inventory, id), state)
        };
        let is_failed = [covered, machines_covered].contains(&Coverage::Failed);
        let failed = if is_failed { vec![SnapshotPart::Inventory] } else { Vec::new() };
        let inputs = GroupInputs { at, coverage: covered, state, failed };
        Group { id: id.clone(), inputs, thing: listed.map(thing), cost }
    };
    all.into_iter().map(group).collect()
}

/// The machines that say of themselves to be of a group of Google's. That stays where the group has let one go: if as many may run as the group keeps up, these are its own.
fn by_tag<'a>(group: &AutoScalingGroup, by_group: &HashMap<ResourceKey, Vec<&'a Machine>>) -> Option<Vec<Member<'a>>> {
    if group.id.provider != Provider::Gcp {
        return None;
    }
    let named = by_group.get(&group.id).into_iter().flatten();
    let members: Vec<_> = named.map(|machine| Member::of(machine)).filter(Member::may_run).collect();
    let is_all = group.desired_capacity.is_some_and(|desired| usize::try_from(desired) == Ok(members.len()));
    is_all.then_some(members)
}

/// Each idle machine of a group is a finding of its own, with its price: what the group adds to that is nothing.
fn cost(members: &[Member<'_>]) -> Cost {
    let mut prices = members.iter().filter(|member| member.may_run()).map(|member| member.cost.and_then(Cost::rate));
    let sum = prices.try_fold(0_i64, |sum, rate| sum.checked_add(rate?.per_hour().micros()));
    let together = sum.filter(|sum| *sum > 0).map(HourlyRate::from_micros);
    let together = together.map(|rate| format!(", together {rate}")).unwrap_or_default();
    Cost::Unknown { why: format!("each of its machines is a finding of its own{together}") }
}

fn thing(group: &AutoScalingGroup) -> Thing {
    let keeps = group.desired_capacity.map(|desired| match desired {
        1 => "keeps 1 machine up".to_owned(),
        many => format!("keeps {many} machines up"),
    });
    let from = group.launch.as_ref().and_then(|launch| match launch {
        Launch::Template(template) => {
            template.name.as_ref().or(template.id.as_ref()).map(|name| format!("from {name}"))
        }
        Launch::Configuration(name) => Some(format!("from {name}")),
    });
    let what = [keeps, from].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let thing = Thing::of((!what.is_empty()).then_some(what), &group.tags, None);
    Thing { name: thing.name.or_else(|| Some(group.id.id.clone())), ..thing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
    }

    fn member(id: &str, runs: Option<bool>, verdict: Verdict) -> Member<'_> {
        let idle = (verdict == Verdict::Idle).then(|| (at(10), at(50)));
        Member { id, runs, verdict, idle, is_batchs: false, cost: None }
    }

    #[test]
    fn a_groups_window_is_that_in_which_all_its_machines_were_idle() {
        let one = member("i-1", Some(true), Verdict::Idle);
        let two = Member { idle: Some((at(20), at(45))), ..member("i-2", Some(true), Verdict::Idle) };
        let members = Members::of([one, two]);
        assert_eq!((members.count, members.idle), (2, 2));
        assert_eq!([members.since, members.until], [Some(at(20)), Some(at(45))]);
        let none = Members::of([]);
        assert_eq!((none.count, none.idle, none.since, none.until), (0, 0, None, None));
    }

    #[test]
    fn machines_that_ended_idle_are_counted_once_each_with_what_they_cost() {
        let key = |id: &str| -> ResourceKey { format!("aws:123456789012:eu-central-1:{id}").parse().expect("a key") };
        let group = ResourceKey { kind: ResourceKind::AutoScalingGroup, id: "g".to_owned(), ..key("i-9") };
        let ended = |id: &str, since, until, micros: Option<i64>| EndedIdle {
            group: group.clone(),
            machine: key(id),
            since: at(since),
            until: at(until),
            rate: micros.map(HourlyRate::from_micros),
        };
        let [one, two, again] =
            [ended("i-1", 0, 60, Some(500)), ended("i-2", 120, 150, Some(1_000)), ended("i-2", 200, 230, Some(1_000))];
        let expected = Relaunches {
            machines: 2,
            since: at(0),
            last: at(230),
            idle_s: 5_400,
            spent: Some(Usd::from_micros(1_000)),
        };
        assert_eq!(Relaunches::of([&one, &two, &again]), Some(expected.clone()));
        let unpriced = ended("i-3", 240, 241, None);
        let with = Relaunches { machines: 3, last: at(241), idle_s: 5_460, spent: None, ..expected };
        assert_eq!(Relaunches::of([&one, &two, &again, &unpriced]), Some(with), "one price is not known");
        assert_eq!(Relaunches::of([]), None);
    }

    #[test]
    fn what_may_run_counts_and_what_is_stopped_does_not() {
        let of = |runs, verdict| {
            let members = Members::of([member("i-1", Some(true), Verdict::Idle), member("i-2", runs, verdict)]);
            (members.count, members.idle, members.active)
        };
        assert_eq!(of(Some(false), Verdict::Idle), (1, 1, None), "a warm pool");
        assert_eq!(of(None, Verdict::Idle), (2, 1, None), "its provider does not say what it does");
        assert_eq!(of(Some(true), Verdict::Waiting), (2, 1, None));
        assert_eq!(of(Some(true), Verdict::Unknown), (2, 1, None));
        assert_eq!(of(Some(true), Verdict::Active), (2, 1, Some("i-2".to_owned())));
        assert_eq!(of(None, Verdict::Active), (2, 1, Some("i-2".to_owned())), "work was seen all the same");
        let unlisted = Members::of([member("i-1", Some(true), Verdict::Idle), Member::not_listed("i-2")]);
        assert_eq!((unlisted.count, unlisted.idle), (2, 1));
    }
}
