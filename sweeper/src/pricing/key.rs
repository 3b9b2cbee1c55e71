//! What makes two instances cost the same, in the price list's own words.

use model::Provider;
use std::fmt;

use crate::inventory::{Instance, Lifecycle, Tenancy};

use super::{Unpriced, google};

/// The exact key of an on-demand price. All texts are the price list's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PriceKey {
    /// Whose price list.
    pub provider: Provider,
    /// `regionCode`: a region or a local zone.
    pub region: String,
    /// `instanceType`
    pub instance_type: String,
    /// `operatingSystem`
    pub operating_system: String,
    /// `tenancy`
    pub tenancy: String,
    /// `licenseModel`
    pub license_model: String,
    /// `preInstalledSw`
    pub preinstalled_software: String,
    /// `capacitystatus`
    pub capacity_status: String,
}

/// What prices of all types have in common that are billed alike: the exact key without the type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PriceList {
    /// Whose price list.
    pub provider: Provider,
    /// `regionCode`
    pub region: String,
    /// `operatingSystem`
    pub operating_system: String,
    /// `tenancy`
    pub tenancy: String,
    /// `licenseModel`
    pub license_model: String,
    /// `preInstalledSw`
    pub preinstalled_software: String,
    /// `capacitystatus`
    pub capacity_status: String,
}

/// `Linux, Shared, in us-east-1`
impl fmt::Display for PriceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of_type("").fmt_parts(f)
    }
}

impl PriceList {
    /// The key of a type that is billed so.
    #[must_use]
    pub fn of_type(&self, instance_type: &str) -> PriceKey {
        let of = self.clone();
        PriceKey {
            provider: of.provider,
            region: of.region,
            instance_type: instance_type.to_owned(),
            operating_system: of.operating_system,
            tenancy: of.tenancy,
            license_model: of.license_model,
            preinstalled_software: of.preinstalled_software,
            capacity_status: of.capacity_status,
        }
    }
}

/// What a running instance is billed as: not a reservation's unused or allocated capacity.
const USED: &str = "Used";

const NO_LICENSE: &str = "No License required";
const OWN_LICENSE: &str = "Bring your own license";

/// Billed operation → operating system, licence model, preinstalled software.
///
/// From "AMI billing information fields" in the EC2 user guide
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html>), in the price list's words. What is
/// left out there or ambiguous in the price list is left out here, and so unpriced.
const OPERATIONS: [(&str, &str, &str, &str); 18] = [
    ("RunInstances", "Linux", NO_LICENSE, "NA"),
    ("RunInstances:0010", "RHEL", NO_LICENSE, "NA"),
    ("RunInstances:0014", "RHEL", NO_LICENSE, "SQL Std"),
    ("RunInstances:0210", "RHEL", NO_LICENSE, "SQL Web"),
    ("RunInstances:0110", "RHEL", NO_LICENSE, "SQL Ent"),
    ("RunInstances:1010", "Red Hat Enterprise Linux with HA", NO_LICENSE, "NA"),
    ("RunInstances:1014", "Red Hat Enterprise Linux with HA", NO_LICENSE, "SQL Std"),
    ("RunInstances:1110", "Red Hat Enterprise Linux with HA", NO_LICENSE, "SQL Ent"),
    ("RunInstances:000g", "SUSE", NO_LICENSE, "NA"),
    ("RunInstances:0g00", "Ubuntu Pro", NO_LICENSE, "NA"),
    ("RunInstances:0004", "Linux", NO_LICENSE, "SQL Std"),
    ("RunInstances:0200", "Linux", NO_LICENSE, "SQL Web"),
    ("RunInstances:0100", "Linux", NO_LICENSE, "SQL Ent"),
    ("RunInstances:0002", "Windows", NO_LICENSE, "NA"),
    ("RunInstances:0006", "Windows", NO_LICENSE, "SQL Std"),
    ("RunInstances:0202", "Windows", NO_LICENSE, "SQL Web"),
    ("RunInstances:0102", "Windows", NO_LICENSE, "SQL Ent"),
    ("RunInstances:0800", "Windows", OWN_LICENSE, "NA"),
];

impl PriceKey {
    /// What other types that are billed alike have in common with it.
    #[must_use]
    pub fn list(&self) -> PriceList {
        let of = self.clone();
        PriceList {
            provider: of.provider,
            region: of.region,
            operating_system: of.operating_system,
            tenancy: of.tenancy,
            license_model: of.license_model,
            preinstalled_software: of.preinstalled_software,
            capacity_status: of.capacity_status,
        }
    }

    /// All but the type.
    fn fmt_parts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.provider == Provider::Gcp {
            if self.preinstalled_software != "NA" {
                write!(f, "{}, ", self.preinstalled_software)?;
            }
            return write!(f, "{}, in {}", self.capacity_status, self.region);
        }
        f.write_str(&self.operating_system)?;
        if self.preinstalled_software != "NA" {
            write!(f, " with {}", self.preinstalled_software)?;
        }
        if self.license_model != NO_LICENSE {
            write!(f, " ({})", self.license_model)?;
        }
        write!(f, ", {}", self.tenancy)?;
        if self.capacity_status != USED {
            write!(f, ", {}", self.capacity_status)?;
        }
        write!(f, ", in {}", self.region)
    }

    /// The key of what a *running* instance costs; a stopped one costs only what is attached to it.
    ///
    /// # Errors
    /// The reason why there is no on-demand list price for it, or why it cannot be told which.
    pub fn of(instance: &Instance) -> Result<Self, Unpriced> {
        if instance.id.provider == Provider::Gcp {
            return google::bill(instance).map(|bill| bill.key);
        }
        match &instance.lifecycle {
            Lifecycle::OnDemand => {}
            Lifecycle::Spot => return Err(Unpriced::Spot),
            Lifecycle::CapacityBlock => return Err(Unpriced::NotOnDemand("capacity-block".to_owned())),
            Lifecycle::Other(word) => return Err(Unpriced::NotOnDemand(word.clone())),
        }
        if instance.on_outpost {
            return Err(Unpriced::Outpost);
        }
        let operation = instance.usage_operation.as_deref().ok_or(Unpriced::FactUnknown("usage operation"))?;
        let (_, operating_system, license_model, software) = OPERATIONS
            .iter()
            .find(|(code, ..)| *code == operation)
            .ok_or_else(|| Unpriced::NotKnown { what: "usage operation", word: operation.to_owned() })?;
        Ok(Self {
            provider: Provider::Aws,
            region: price_region(&instance.id.location, instance.availability_zone.as_deref())?,
            instance_type: instance.instance_type.clone().ok_or(Unpriced::FactUnknown("instance type"))?,
            operating_system: (*operating_system).to_owned(),
            tenancy: match &instance.tenancy {
                Tenancy::Shared => "Shared".to_owned(),
                Tenancy::Dedicated => "Dedicated".to_owned(),
                Tenancy::Host => return Err(Unpriced::DedicatedHost),
                Tenancy::Other(word) => return Err(Unpriced::NotKnown { what: "tenancy", word: word.clone() }),
                Tenancy::Unknown => return Err(Unpriced::FactUnknown("tenancy")),
            },
            license_model: (*license_model).to_owned(),
            preinstalled_software: (*software).to_owned(),
            capacity_status: USED.to_owned(),
        })
    }
}

/// A zone's name is its region's, or its local zone's, with one letter more: `eu-central-1a`, `us-west-2-lax-1a`. A local
/// zone has prices of its own under its own code.
pub(super) fn price_region(region: &str, zone: Option<&str>) -> Result<String, Unpriced> {
    let zone = zone.ok_or(Unpriced::FactUnknown("availability zone"))?;
    let not_known = || Unpriced::NotKnown { what: "availability zone", word: zone.to_owned() };
    let code = zone.strip_suffix(|letter: char| letter.is_ascii_lowercase()).ok_or_else(not_known)?;
    match code.strip_prefix(region) {
        Some(rest) if (rest.is_empty() || rest.starts_with('-')) && code.ends_with(|c: char| c.is_ascii_digit()) => {
            Ok(code.to_owned())
        }
        _ => Err(not_known()),
    }
}

/// `m5.large, Linux, Shared, in us-east-1`; licence, software and capacity only where they are not the usual ones.
impl fmt::Display for PriceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.instance_type)?;
        self.fmt_parts(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::sample;

    fn key(change: impl FnOnce(&mut Instance)) -> Result<String, Unpriced> {
        let mut instance = sample::instance();
        change(&mut instance);
        PriceKey::of(&instance).map(|key| key.to_string())
    }

    #[test]
    fn the_billed_operation_gives_system_licence_and_software() {
        for (operation, expected) in [
            ("RunInstances", "m5.large, Linux, Shared, in eu-central-1"),
            ("RunInstances:0002", "m5.large, Windows, Shared, in eu-central-1"),
            ("RunInstances:0010", "m5.large, RHEL, Shared, in eu-central-1"),
            ("RunInstances:0102", "m5.large, Windows with SQL Ent, Shared, in eu-central-1"),
            ("RunInstances:0800", "m5.large, Windows (Bring your own license), Shared, in eu-central-1"),
        ] {
            assert_eq!(key(|i| i.usage_operation = Some(operation.into())).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_list_has_all_of_a_key_but_the_type() {
        let mut instance = sample::instance();
        instance.usage_operation = Some("RunInstances:0102".into());
        let key = PriceKey::of(&instance).expect("a key");
        assert_eq!(key.list().to_string(), "Windows with SQL Ent, Shared, in eu-central-1");
        assert_eq!(key.list().of_type("m5.large"), key);
        assert_eq!(key.list().of_type("c5.xlarge").list(), key.list());
    }

    #[test]
    fn no_operation_stands_in_the_table_twice() {
        for (n, (code, ..)) in OPERATIONS.iter().enumerate() {
            assert!(OPERATIONS[..n].iter().all(|(other, ..)| other != code), "{code}");
        }
    }

    #[test]
    fn a_local_zone_has_its_own_prices() {
        let in_zone = |zone: &str| {
            key(|i| {
                i.id = "aws:123456789012:us-west-2:i-1".parse().expect("a node id");
                i.availability_zone = Some(zone.into());
            })
        };
        assert_eq!(in_zone("us-west-2b").as_deref(), Ok("m5.large, Linux, Shared, in us-west-2"));
        assert_eq!(in_zone("us-west-2-lax-1a").as_deref(), Ok("m5.large, Linux, Shared, in us-west-2-lax-1"));
        for zone in ["us-west-2", "us-west-20a", "us-east-1a", "a", "", "us-west-2-lax-a"] {
            assert_eq!(
                in_zone(zone),
                Err(Unpriced::NotKnown { what: "availability zone", word: zone.into() }),
                "{zone}"
            );
        }
    }

    #[test]
    fn what_is_not_bought_on_demand_or_not_known_is_unpriced() {
        assert_eq!(key(|i| i.lifecycle = Lifecycle::Spot), Err(Unpriced::Spot));
        let google = "gcp:omics:europe-west3-a:42".parse().expect("a node id");
        assert_eq!(key(|i| i.id = google), Err(Unpriced::FactUnknown("billed parts")));
        assert_eq!(
            key(|i| i.lifecycle = Lifecycle::CapacityBlock),
            Err(Unpriced::NotOnDemand("capacity-block".into()))
        );
        assert_eq!(key(|i| i.tenancy = Tenancy::Host), Err(Unpriced::DedicatedHost));
        assert_eq!(key(|i| i.tenancy = Tenancy::Unknown), Err(Unpriced::FactUnknown("tenancy")));
        assert_eq!(
            key(|i| i.tenancy = Tenancy::Other("floating".into())),
            Err(Unpriced::NotKnown { what: "tenancy", word: "floating".into() })
        );
        assert_eq!(key(|i| i.usage_operation = None), Err(Unpriced::FactUnknown("usage operation")));
        assert_eq!(key(|i| i.instance_type = None), Err(Unpriced::FactUnknown("instance type")));
        assert_eq!(key(|i| i.availability_zone = None), Err(Unpriced::FactUnknown("availability zone")));
        assert_eq!(key(|i| i.on_outpost = true), Err(Unpriced::Outpost));
        assert_eq!(
            key(|i| i.usage_operation = Some("RunInstances:zzzz".into())),
            Err(Unpriced::NotKnown { what: "usage operation", word: "RunInstances:zzzz".into() })
        );
    }
}
