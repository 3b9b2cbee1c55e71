//! What is billed though nobody uses it: what outlives machines, and machines that are stopped.

use super::{Coverage, SnapshotPart, coverage};
use crate::{
    inventory::{Address, Instance, Inventory, Snapshot, UsedBy, Volume, owner, tags},
    pricing::Cost,
};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A resource that nobody uses, or of which that was found once.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// Its key.
    pub id: ResourceKey,
    /// What detectors decide from.
    pub inputs: LeftoverInputs,
    /// What its provider says of it; none if it does not list it.
    pub thing: Option<Thing>,
    /// What it costs.
    pub cost: Cost,
}

/// Everything that a detection on what nobody uses depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverInputs {
    /// As of when.
    pub at: Timestamp,
    /// What uses it, as its provider lists it; none if it does not list it.
    pub used_by: Option<UsedBy>,
    /// Whether its provider would list it.
    pub coverage: Coverage,
    /// Since when every list has shown it unused; none if this one is the first, or shows otherwise.
    pub since: Option<Timestamp>,
    /// It is left over once that has been so for so long, in seconds.
    pub after_s: u64,
    /// Nor is it before this time, whatever lists show: a snapshot is kept for a while on purpose.
    #[serde(default = "always", skip_serializing_if = "is_always")]
    pub not_before: Timestamp,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

fn always() -> Timestamp {
    Timestamp::MIN
}

fn is_always(time: &Timestamp) -> bool {
    *time == Timestamp::MIN
}

impl LeftoverInputs {
    /// Whether its provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.coverage != Coverage::NotAsked
    }
}

/// What a provider said of a resource that nobody uses, as far as people want to read it in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    /// What people call it.
    pub name: Option<String>,
    /// What it is: `100 GiB gp3`, `203.0.113.8`.
    pub what: Option<String>,
    /// Who owns it, by its tags.
    pub owner: Option<String>,
    /// When it was made, as far as its provider tells.
    pub created_at: Option<Timestamp>,
}

impl Thing {
    pub(super) fn of(what: Option<String>, tags: &BTreeMap<String, String>, created_at: Option<Timestamp>) -> Self {
        Self { name: tags::name(tags), what, owner: owner(tags), created_at }
    }
}

/// A resource that is billed whether or not it is used.
#[derive(Clone, Copy, Debug)]
pub enum Billed<'a> {
    /// A disk.
    Volume(&'a Volume),
    /// A public address.
    Address(&'a Address),
    /// A copy of a disk.
    Snapshot(&'a Snapshot),
    /// A machine.
    Instance(&'a Instance),
}

impl<'a> Billed<'a> {
    /// Everything of an inventory that is.
    pub fn all(inventory: &'a Inventory) -> impl Iterator<Item = Self> {
        let volumes = inventory.volumes.iter().map(Self::Volume);
        volumes
            .chain(inventory.addresses.iter().map(Self::Address))
            .chain(inventory.snapshots.iter().map(Self::Snapshot))
            .chain(inventory.instances.iter().map(Self::Instance))
    }

    /// Its key.
    #[must_use]
    pub fn id(self) -> &'a ResourceKey {
        match self {
            Self::Volume(volume) => &volume.id,
            Self::Address(address) => &address.id,
            Self::Snapshot(snapshot) => &snapshot.id,
            Self::Instance(instance) => &instance.id,
        }
    }

    /// What uses it, as its provider lists it.
    #[must_use]
    pub fn used_by(self) -> UsedBy {
        match self {
            Self::Volume(volume) => volume.used_by(),
            Self::Address(address) => address.used_by(),
            Self::Snapshot(snapshot) => snapshot.used_by(),
            Self::Instance(instance) => instance.used_by(),
        }
    }

    /// Since when its provider itself says that nobody uses it.
    fn unused_since(self) -> Option<Timestamp> {
        match self {
            Self::Volume(volume) => volume.google.as_ref().and_then(|google| match google.last_attached_at {
                // It was never attached.
                None => volume.created_at,
                Some(_) => google.last_detached_at,
            }),
            // Google says when one was reserved, and not since when nobody uses it; EC2 when a snapshot was made, and not when its volume went.
            Self::Address(_) | Self::Snapshot(_) => None,
            Self::Instance(instance) => {
                instance.google.as_ref().and_then(|google| google.stopped_at.max(google.suspended_at))
            }
        }
    }

    fn thing(self) -> Thing {
        match self {
            Self::Volume(volume) => {
                let described = volume.size_gib.zip(volume.volume_type.as_deref());
                let described = described.map(|(size, volume_type)| format!("{size} GiB {volume_type}"));
                Thing::of(described, &volume.tags, volume.created_at)
            }
            Self::Address(address) => {
                let created_at = address.google.as_ref().and_then(|google| google.created_at);
                Thing::of(address.public_ipv4.clone(), &address.tags, created_at)
            }
            Self::Snapshot(snapshot) => {
                let copy = |volume: &String| match snapshot.volume_size_gib {
                    Some(size) => format!("copy of {volume}, {size} GiB"),
                    None => format!("copy of {volume}"),
                };
                Thing::of(snapshot.volume_id.as_ref().map(copy), &snapshot.tags, snapshot.started_at)
            }
            Self::Instance(instance) => Thing {
                name: instance.name.clone(),
                what: instance.instance_type.clone(),
                owner: owner(&instance.tags),
                created_at: instance.google.as_ref().and_then(|google| google.created_at),
            },
        }
    }
}

/// How long something must have been unused to be left over.
#[derive(Clone, Copy, Debug)]
pub struct LeftoverPolicy {
    /// A volume or an address, in seconds.
    pub unused_after_s: u64,
    /// An instance that is stopped, in seconds.
    pub stopped_after_s: u64,
    /// A snapshot must be so old, in seconds.
    pub snapshot_after_s: u64,
}

impl LeftoverPolicy {
    fn after_s(self, kind: ResourceKind) -> u64 {
        if kind == ResourceKind::Instance { self.stopped_after_s } else { self.unused_after_s }
    }

    /// When it may be left over at the earliest. Of a snapshot whose age EC2 does not tell nobody knows.
    fn not_before(self, billed: Option<Billed<'_>>) -> Timestamp {
        let Some(Billed::Snapshot(snapshot)) = billed else { return always() };
        let after = i64::try_from(self.snapshot_after_s).map_or(SignedDuration::MAX, SignedDuration::from_secs);
        snapshot.started_at.and_then(|started_at| started_at.checked_add(after).ok()).unwrap_or(Timestamp::MAX)
    }
}

/// What nobody uses, and what open findings name, in the order of their keys. `since` tells since when every list has shown a resource so. What they cost
/// is not known yet.
#[must_use]
pub fn leftovers<'a>(
    inventory: &Inventory,
    named: impl IntoIterator<Item = &'a ResourceKey>,
    since: impl Fn(&ResourceKey) -> Option<Timestamp>,
    at: Timestamp,
    policy: LeftoverPolicy,
) -> Vec<Leftover> {
    let named: BTreeSet<&ResourceKey> = named.into_iter().collect();
    let is_one = |billed: &Billed<'_>| named.contains(billed.id()) || billed.used_by() == UsedBy::Nothing;
    let listed = Billed::all(inventory).filter(is_one);
    let mut all: BTreeMap<&ResourceKey, Option<Billed<'_>>> = named.iter().map(|key| (*key, None)).collect();
    all.extend(listed.map(|billed| (billed.id(), Some(billed))));
    let leftover = |(key, billed): (&ResourceKey, Option<Billed<'_>>)| {
        let used_by = billed.map(Billed::used_by);
        let told = billed.and_then(Billed::unused_since);
        let coverage = coverage(inventory, key);
        let inputs = LeftoverInputs {
            at,
            since: if used_by == Some(UsedBy::Nothing) { told.or_else(|| since(key)) } else { None },
            used_by,
            coverage,
            after_s: policy.after_s(key.kind),
            not_before: policy.not_before(billed),
            failed: if coverage == Coverage::Failed { vec![SnapshotPart::Inventory] } else { Vec::new() },
        };
        let cost = Cost::Unknown { why: "not looked up".to_owned() };
        Leftover { id: key.clone(), inputs, thing: billed.map(Billed::thing), cost }
    };
    all.into_iter().map(leftover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{GoogleDisk, sample};

    const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
    const POLICY: LeftoverPolicy =
        LeftoverPolicy { unused_after_s: 3_600, stopped_after_s: 7 * 86_400, snapshot_after_s: 30 * 86_400 };

    fn of(inventory: &Inventory, named: &[ResourceKey]) -> Vec<Leftover> {
        leftovers(inventory, named, |_| Some(Timestamp::UNIX_EPOCH), NOW, POLICY)
    }

    #[test]
    fn what_is_used_is_none_unless_a_finding_names_it() {
        let mut used = sample::volume();
        used.state = Some(crate::inventory::VolumeState::InUse);
        used.attachments = serde_json::from_str(
            r#"[{"instance_id": "i-1", "device": null, "state": null, "delete_on_termination": null, "attached_at": null}]"#,
        )
        .expect("attachments");
        let inventory =
            Inventory { volumes: vec![used.clone()], addresses: vec![sample::address()], ..Inventory::default() };
        let ids = |found: &[Leftover]| found.iter().map(|left| left.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&of(&inventory, &[])), [sample::address().id]);
        let gone: ResourceKey = "aws:123456789012:eu-central-1:vol-gone".parse().expect("a key");
        let found = of(&inventory, &[used.id.clone(), gone.clone()]);
        let mut expected = [sample::address().id, used.id.clone(), gone.clone()];
        expected.sort();
        assert_eq!(ids(&found), expected);
        let used_by =
            |id: &ResourceKey| found.iter().find(|left| left.id == *id).map(|left| left.inputs.used_by.clone());
        assert_eq!(used_by(&used.id), Some(Some(UsedBy::Something { what: "i-1".into() })));
        assert_eq!(used_by(&gone), Some(None), "it is listed no more");
        let since = |id: &ResourceKey| found.iter().find(|left| left.id == *id).and_then(|left| left.inputs.since);
        assert_eq!((since(&used.id), since(&gone)), (None, None));
        assert_eq!(since(&sample::address().id), Some(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn a_machine_that_is_stopped_waits_for_longer_and_one_that_runs_is_none() {
        let stopped = Instance { state: crate::inventory::InstanceState::Stopped, ..sample::instance() };
        let inventory = |instance| Inventory { instances: vec![instance], ..Inventory::default() };
        assert_eq!(of(&inventory(sample::instance()), &[]).len(), 0);
        let found = of(&inventory(stopped), &[]);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.inputs.after_s, one.inputs.since), (7 * 86_400, Some(Timestamp::UNIX_EPOCH)));
        assert_eq!(one.thing.as_ref().and_then(|thing| thing.what.as_deref()), Some("m5.large"));
    }

    #[test]
    fn a_snapshot_is_none_before_it_has_the_policys_age() {
        let of = |started_at| {
            let snapshot = Snapshot { started_at, ..sample::snapshot() };
            of(&Inventory { snapshots: vec![snapshot], ..Inventory::default() }, &[])[0].inputs.not_before
        };
        assert_eq!(of(Some(NOW)), NOW + SignedDuration::from_hours(30 * 24));
        assert_eq!(of(None), Timestamp::MAX, "nobody knows how old it is");
        assert_eq!(of(Some(Timestamp::MAX)), Timestamp::MAX);
    }

    #[test]
    fn what_google_says_of_a_disk_itself_comes_before_what_lists_showed() {
        let ago = |hours| NOW - SignedDuration::from_hours(hours);
        let since = |attached, detached| {
            let google = GoogleDisk { last_attached_at: attached, last_detached_at: detached, ..GoogleDisk::default() };
            let volume = Volume { google: Some(Box::new(google)), created_at: Some(ago(9)), ..sample::volume() };
            of(&Inventory { volumes: vec![volume], ..Inventory::default() }, &[])[0].inputs.since
        };
        assert_eq!(since(None, None), Some(ago(9)), "it was never attached");
        assert_eq!(since(Some(ago(8)), Some(ago(5))), Some(ago(5)));
    }
}
