//! Whether what is billed is used by anything.

use super::{Address, Instance, InstanceState, Snapshot, SnapshotState, Volume, VolumeState};
use serde::{Deserialize, Serialize};

/// What uses a resource, as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UsedBy {
    /// Nothing: it is billed, and used by nobody.
    Nothing,
    /// Something, in the provider's words.
    Something {
        /// What.
        what: String,
    },
    /// A service keeps it for itself: only that service may use or release it.
    Managed {
        /// Which.
        by: String,
    },
    /// The provider did not say, or it is being made or going.
    NotTold,
}

impl Volume {
    /// What it is attached to.
    #[must_use]
    pub fn used_by(&self) -> UsedBy {
        match (&self.attachments, &self.state, &self.operator) {
            (Some(attachments), ..) if !attachments.is_empty() => {
                let ids = attachments.iter().map(|attachment| attachment.instance_id.as_deref().unwrap_or("a machine"));
                UsedBy::Something { what: ids.collect::<Vec<_>>().join(", ") }
            }
            (_, _, Some(by)) => UsedBy::Managed { by: by.clone() },
            (Some(_), Some(VolumeState::Available), None) => UsedBy::Nothing,
            _ => UsedBy::NotTold,
        }
    }
}

impl Address {
    /// What it is tied to.
    #[must_use]
    pub fn used_by(&self) -> UsedBy {
        if let Some(by) = &self.service_managed {
            return UsedBy::Managed { by: by.clone() };
        }
        if let Some(google) = &self.google {
            return match google.status.as_deref() {
                Some("RESERVED") => UsedBy::Nothing,
                Some("IN_USE") => UsedBy::Something { what: google.users.join(", ") },
                _ => UsedBy::NotTold,
            };
        }
        self.user().map_or(UsedBy::Nothing, |what| UsedBy::Something { what: what.clone() })
    }

    /// What EC2 has tied it to. It says *to nothing* by leaving all of these out.
    pub(super) fn user(&self) -> Option<&String> {
        self.instance_id.as_ref().or(self.network_interface_id.as_ref()).or(self.association_id.as_ref())
    }
}

/// The volume that EC2 names where a snapshot was copied, in place of the one that it is a copy of.
/// <https://docs.aws.amazon.com/ebs/latest/userguide/ebs-copy-snapshot.html>
const COPIED: &str = "vol-ffffffff";
/// Tags of services that end their snapshots themselves, by rules of their own, and what these are called.
const KEEPERS: [(&str, &str); 2] = [("aws:backup:", "AWS Backup"), ("aws:dlm:", "Data Lifecycle Manager")];

impl Snapshot {
    /// What needs it: an image that is made of it, or the volume that it is a copy of. Of which volume a snapshot is a copy that was copied itself, nobody says.
    #[must_use]
    pub fn used_by(&self) -> UsedBy {
        let keeps = |(prefix, _): &&(&str, &str)| self.tags.keys().any(|tag| tag.starts_with(prefix));
        if let Some((_, by)) = KEEPERS.iter().find(keeps) {
            return UsedBy::Managed { by: (*by).to_owned() };
        }
        match (&self.needed_by, &self.state, self.volume_id.as_deref()) {
            (Some(needed_by), ..) if !needed_by.is_empty() => UsedBy::Something { what: needed_by.join(", ") },
            (Some(_), Some(SnapshotState::Completed), Some(volume)) if volume != COPIED && !self.on_outpost => {
                UsedBy::Nothing
            }
            _ => UsedBy::NotTold,
        }
    }
}

impl Instance {
    /// Who uses it: a machine that runs is used, and one that is stopped is used by nobody, unless something larger keeps it so.
    #[must_use]
    pub fn used_by(&self) -> UsedBy {
        match self.state {
            InstanceState::Stopped | InstanceState::Suspended => {
                let group = self.autoscaling_group.as_ref().map(|group| format!("Auto Scaling group {group}"));
                let made_by = || self.google.as_ref().and_then(|google| google.created_by.clone());
                let by = group.or_else(|| self.operator.clone()).or_else(made_by);
                by.map_or(UsedBy::Nothing, |by| UsedBy::Managed { by })
            }
            InstanceState::Other(_) | InstanceState::Unknown => UsedBy::NotTold,
            InstanceState::Pending
            | InstanceState::Running
            | InstanceState::Stopping
            | InstanceState::Suspending
            | InstanceState::ShuttingDown
            | InstanceState::Terminated => UsedBy::Something { what: self.state.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{GoogleAddress, VolumeAttachment, sample};

    fn attachment(instance: Option<&str>) -> VolumeAttachment {
        VolumeAttachment {
            instance_id: instance.map(str::to_owned),
            device: None,
            state: None,
            delete_on_termination: None,
            attached_at: None,
        }
    }

    #[test]
    fn a_volume_is_attached_to_nothing_only_where_the_provider_says_so() {
        let of = |change: fn(&mut Volume)| {
            let mut volume = sample::volume();
            change(&mut volume);
            volume.used_by()
        };
        assert_eq!(of(|_| {}), UsedBy::Nothing);
        let attached = of(|volume| volume.attachments = Some(vec![attachment(Some("i-1")), attachment(None)]));
        assert_eq!(attached, UsedBy::Something { what: "i-1, a machine".into() });
        assert_eq!(of(|volume| volume.attachments = None), UsedBy::NotTold);
        assert_eq!(of(|volume| volume.state = None), UsedBy::NotTold);
        for state in [VolumeState::Creating, VolumeState::Deleting, VolumeState::Error, VolumeState::InUse] {
            let volume = Volume { state: Some(state.clone()), ..sample::volume() };
            assert_eq!(volume.used_by(), UsedBy::NotTold, "{state}");
        }
        assert_eq!(of(|volume| volume.operator = Some("eks".into())), UsedBy::Managed { by: "eks".into() });
    }

    #[test]
    fn an_address_is_tied_to_nothing_only_where_the_provider_says_so() {
        let of = |change: fn(&mut Address)| {
            let mut address = sample::address();
            change(&mut address);
            address.used_by()
        };
        assert_eq!(of(|_| {}), UsedBy::Nothing);
        for used_by in [
            of(|address| address.association_id = Some("eni-1".into())),
            of(|address| address.network_interface_id = Some("eni-1".into())),
            of(|address| address.instance_id = Some("eni-1".into())),
        ] {
            assert_eq!(used_by, UsedBy::Something { what: "eni-1".into() });
        }
        assert_eq!(of(|address| address.service_managed = Some("alb".into())), UsedBy::Managed { by: "alb".into() });
        let google = |status: Option<&str>| {
            let users = vec!["zones/z/instances/a".to_owned()];
            let google = GoogleAddress { status: status.map(str::to_owned), users, ..GoogleAddress::default() };
            Address { google: Some(Box::new(google)), ..sample::address() }.used_by()
        };
        assert_eq!(google(Some("RESERVED")), UsedBy::Nothing);
        assert_eq!(google(Some("IN_USE")), UsedBy::Something { what: "zones/z/instances/a".into() });
        assert_eq!(google(Some("RESERVING")), UsedBy::NotTold);
        assert_eq!(google(None), UsedBy::NotTold);
    }

    #[test]
    fn a_machine_that_is_stopped_is_used_by_nobody_unless_something_larger_keeps_it() {
        let of = |state, change: fn(&mut Instance)| {
            let mut instance = Instance { state, ..sample::instance() };
            change(&mut instance);
            instance.used_by()
        };
        assert_eq!(of(InstanceState::Stopped, |_| {}), UsedBy::Nothing);
        assert_eq!(of(InstanceState::Suspended, |_| {}), UsedBy::Nothing);
        let warm = of(InstanceState::Stopped, |instance| instance.autoscaling_group = Some("warm".into()));
        assert_eq!(warm, UsedBy::Managed { by: "Auto Scaling group warm".into() });
        let service = of(InstanceState::Stopped, |instance| instance.operator = Some("gke".into()));
        assert_eq!(service, UsedBy::Managed { by: "gke".into() });
        for state in [InstanceState::Running, InstanceState::Stopping, InstanceState::Terminated] {
            assert_eq!(of(state.clone(), |_| {}), UsedBy::Something { what: state.to_string() });
        }
        assert_eq!(of(InstanceState::Unknown, |_| {}), UsedBy::NotTold);
        assert_eq!(of(InstanceState::Other("hibernating".into()), |_| {}), UsedBy::NotTold);
    }

    #[test]
    fn a_snapshot_is_needed_by_nothing_only_where_all_that_may_need_it_is_listed() {
        let of = |change: fn(&mut Snapshot)| {
            let mut snapshot = sample::snapshot();
            change(&mut snapshot);
            snapshot.used_by()
        };
        assert_eq!(of(|_| {}), UsedBy::Nothing);
        let needed = of(|snapshot| snapshot.needed_by = Some(vec!["ami-1".into(), "vol-1".into()]));
        assert_eq!(needed, UsedBy::Something { what: "ami-1, vol-1".into() });
        for not_told in [
            of(|snapshot| snapshot.needed_by = None),
            of(|snapshot| snapshot.state = Some(SnapshotState::Pending)),
            of(|snapshot| snapshot.state = Some(SnapshotState::Recoverable)),
            of(|snapshot| snapshot.state = None),
            of(|snapshot| snapshot.volume_id = None),
            of(|snapshot| snapshot.volume_id = Some(COPIED.into())),
            of(|snapshot| snapshot.on_outpost = true),
        ] {
            assert_eq!(not_told, UsedBy::NotTold);
        }
        let tagged = |tag: &str| {
            let snapshot = Snapshot { tags: [(tag.to_owned(), "1".to_owned())].into(), ..sample::snapshot() };
            snapshot.used_by()
        };
        assert_eq!(tagged("aws:backup:source-resource"), UsedBy::Managed { by: "AWS Backup".into() });
        let lifecycle = UsedBy::Managed { by: "Data Lifecycle Manager".into() };
        assert_eq!(tagged("aws:dlm:lifecycle-policy-id"), lifecycle);
        assert_eq!(tagged("backup"), UsedBy::Nothing, "anybody may set such a tag");
    }

    #[test]
    fn what_the_history_keeps_of_them_reads_back() {
        let (volume, address) = (sample::volume(), sample::address());
        let text = serde_json::to_string(&volume).expect("JSON");
        assert_eq!(serde_json::from_str::<Volume>(&text).expect("a volume"), volume);
        let text = serde_json::to_string(&address).expect("JSON");
        assert_eq!(serde_json::from_str::<Address>(&text).expect("an address"), address);
    }
}
