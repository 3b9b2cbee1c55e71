//! Whether what outlives machines is used by any.

use super::{Address, Volume, VolumeState};
use serde::{Deserialize, Serialize};

/// What a volume or an address is tied to, as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tie", rename_all = "snake_case")]
pub enum Tie {
    /// Nothing: it is billed, and used by nobody.
    Nothing,
    /// Something, in the provider's words.
    Something {
        /// What.
        what: String,
    },
    /// A service keeps it for itself: only that service may use it or give it up.
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
    pub fn tie(&self) -> Tie {
        match (&self.attachments, &self.state, &self.operator) {
            (Some(attachments), ..) if !attachments.is_empty() => {
                let ids = attachments.iter().map(|attachment| attachment.instance_id.as_deref().unwrap_or("a machine"));
                Tie::Something { what: ids.collect::<Vec<_>>().join(", ") }
            }
            (_, _, Some(by)) => Tie::Managed { by: by.clone() },
            (Some(_), Some(VolumeState::Available), None) => Tie::Nothing,
            _ => Tie::NotTold,
        }
    }
}

impl Address {
    /// What it is tied to.
    #[must_use]
    pub fn tie(&self) -> Tie {
        if let Some(by) = &self.service_managed {
            return Tie::Managed { by: by.clone() };
        }
        if let Some(google) = &self.google {
            return match google.status.as_deref() {
                Some("RESERVED") => Tie::Nothing,
                Some("IN_USE") => Tie::Something { what: google.users.join(", ") },
                _ => Tie::NotTold,
            };
        }
        // EC2 says *to nothing* by leaving these out.
        let tied = self.instance_id.as_ref().or(self.network_interface_id.as_ref()).or(self.association_id.as_ref());
        tied.map_or(Tie::Nothing, |what| Tie::Something { what: what.clone() })
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
            volume.tie()
        };
        assert_eq!(of(|_| {}), Tie::Nothing);
        let tied = of(|volume| volume.attachments = Some(vec![attachment(Some("i-1")), attachment(None)]));
        assert_eq!(tied, Tie::Something { what: "i-1, a machine".into() });
        assert_eq!(of(|volume| volume.attachments = None), Tie::NotTold);
        assert_eq!(of(|volume| volume.state = None), Tie::NotTold);
        for state in [VolumeState::Creating, VolumeState::Deleting, VolumeState::Error, VolumeState::InUse] {
            let volume = Volume { state: Some(state.clone()), ..sample::volume() };
            assert_eq!(volume.tie(), Tie::NotTold, "{state}");
        }
        assert_eq!(of(|volume| volume.operator = Some("eks".into())), Tie::Managed { by: "eks".into() });
    }

    #[test]
    fn an_address_is_tied_to_nothing_only_where_the_provider_says_so() {
        let of = |change: fn(&mut Address)| {
            let mut address = sample::address();
            change(&mut address);
            address.tie()
        };
        assert_eq!(of(|_| {}), Tie::Nothing);
        for tie in [
            of(|address| address.association_id = Some("eni-1".into())),
            of(|address| address.network_interface_id = Some("eni-1".into())),
            of(|address| address.instance_id = Some("eni-1".into())),
        ] {
            assert_eq!(tie, Tie::Something { what: "eni-1".into() });
        }
        assert_eq!(of(|address| address.service_managed = Some("alb".into())), Tie::Managed { by: "alb".into() });
        let google = |status: Option<&str>| {
            let users = vec!["zones/z/instances/a".to_owned()];
            let google = GoogleAddress { status: status.map(str::to_owned), users, ..GoogleAddress::default() };
            Address { google: Some(Box::new(google)), ..sample::address() }.tie()
        };
        assert_eq!(google(Some("RESERVED")), Tie::Nothing);
        assert_eq!(google(Some("IN_USE")), Tie::Something { what: "zones/z/instances/a".into() });
        assert_eq!(google(Some("RESERVING")), Tie::NotTold);
        assert_eq!(google(None), Tie::NotTold);
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
