//! What is billed by its amount, in the price list's own words.

use model::{Provider, Quantity};
use std::fmt;

use super::{Unpriced, key::price_region};
use crate::inventory::{Address, Instance, Snapshot, StorageTier, Volume};

/// The exact key of a price per unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitKey {
    /// Whose price list.
    pub provider: Provider,
    /// `regionCode`: a region or a local zone.
    pub region: String,
    /// What is used.
    pub usage: Usage,
}

/// What is used: the `usagetype` of a row, without what stands for its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Usage {
    /// Size of a volume of this type, per GiB and month.
    Gp2,
    /// Likewise.
    Gp3,
    /// Operations a second beyond those that come with the volume, each per month.
    Gp3Iops,
    /// Throughput beyond what comes with the volume, per GiB a second and month.
    Gp3Throughput,
    /// Size.
    Io1,
    /// Operations a second, each per month.
    Io1Iops,
    /// Size.
    Io2,
    /// Operations a second up to 32,000, each per month.
    Io2Iops,
    /// Those beyond, up to 64,000.
    Io2IopsTier2,
    /// Those beyond.
    Io2IopsTier3,
    /// Size.
    St1,
    /// Size.
    Sc1,
    /// Size. Each operation is billed besides; what nothing uses has none.
    Standard,
    /// An hour of a public IPv4 address that is tied to something that runs.
    AddressInUse,
    /// An hour of one that is not.
    AddressIdle,
    /// What a snapshot holds, per GiB and month.
    Snapshot,
    /// The same in the archive.
    SnapshotArchive,
}

/// How the price list speaks of a usage.
#[derive(Debug)]
pub(super) struct Words {
    /// `usagetype`, without what stands for its region.
    pub(super) usage_type: &'static str,
    /// `servicecode`
    pub(super) service: &'static str,
    /// An attribute that all rows have which are asked for together, and its value.
    pub(super) asked_by: (&'static str, &'static str),
    /// What the price is per.
    pub(super) units: &'static [&'static str],
}

const MONTHS_OF_GIB: &[&str] = &["GB-Mo", "GB-month"];

impl Usage {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Gp2,
        Self::Gp3,
        Self::Gp3Iops,
        Self::Gp3Throughput,
        Self::Io1,
        Self::Io1Iops,
        Self::Io2,
        Self::Io2Iops,
        Self::Io2IopsTier2,
        Self::Io2IopsTier3,
        Self::St1,
        Self::Sc1,
        Self::Standard,
        Self::AddressInUse,
        Self::AddressIdle,
        Self::Snapshot,
        Self::SnapshotArchive,
    ];

    pub(super) const fn words(self) -> Words {
        const fn ec2(usage_type: &'static str, volume_type: &'static str, units: &'static [&'static str]) -> Words {
            Words { usage_type, service: "AmazonEC2", asked_by: ("volumeApiName", volume_type), units }
        }
        const fn snapshot(usage_type: &'static str) -> Words {
            let asked_by = ("productFamily", "Storage Snapshot");
            Words { usage_type, service: "AmazonEC2", asked_by, units: MONTHS_OF_GIB }
        }
        const fn address(usage_type: &'static str) -> Words {
            let asked_by = ("group", "VPCPublicIPv4Address");
            Words { usage_type, service: "AmazonVPC", asked_by, units: &["Hrs"] }
        }
        const IOPS: &[&str] = &["IOPS-Mo"];
        match self {
            Self::Gp2 => ec2("EBS:VolumeUsage.gp2", "gp2", MONTHS_OF_GIB),
            Self::Gp3 => ec2("EBS:VolumeUsage.gp3", "gp3", MONTHS_OF_GIB),
            Self::Gp3Iops => ec2("EBS:VolumeP-IOPS.gp3", "gp3", IOPS),
            Self::Gp3Throughput => ec2("EBS:VolumeP-Throughput.gp3", "gp3", &["GiBps-mo"]),
            Self::Io1 => ec2("EBS:VolumeUsage.piops", "io1", MONTHS_OF_GIB),
            Self::Io1Iops => ec2("EBS:VolumeP-IOPS.piops", "io1", IOPS),
            Self::Io2 => ec2("EBS:VolumeUsage.io2", "io2", MONTHS_OF_GIB),
            Self::Io2Iops => ec2("EBS:VolumeP-IOPS.io2", "io2", IOPS),
            Self::Io2IopsTier2 => ec2("EBS:VolumeP-IOPS.io2.tier2", "io2", IOPS),
            Self::Io2IopsTier3 => ec2("EBS:VolumeP-IOPS.io2.tier3", "io2", IOPS),
            Self::St1 => ec2("EBS:VolumeUsage.st1", "st1", MONTHS_OF_GIB),
            Self::Sc1 => ec2("EBS:VolumeUsage.sc1", "sc1", MONTHS_OF_GIB),
            Self::Standard => ec2("EBS:VolumeUsage", "standard", MONTHS_OF_GIB),
            Self::AddressInUse => address("PublicIPv4:InUseAddress"),
            Self::AddressIdle => address("PublicIPv4:IdleAddress"),
            Self::Snapshot => snapshot("EBS:SnapshotUsage"),
            Self::SnapshotArchive => snapshot("EBS:SnapshotArchiveStorage"),
        }
    }

    /// The price list's word for it in any region, which names it in the database.
    #[must_use]
    pub const fn usage_type(self) -> &'static str {
        self.words().usage_type
    }

    /// The usage of that word; none for what this version does not know.
    #[must_use]
    pub fn from_usage_type(usage_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|usage| usage.usage_type() == usage_type)
    }

    /// The usage that a row is about: `EUC1-EBS:VolumeUsage.gp3`, in some regions without the first part.
    pub(super) fn of_row(usage_type: &str) -> Option<Self> {
        let is_region = |part: &str| part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let without = usage_type.split_once('-').filter(|(region, _)| is_region(region)).map(|(_, rest)| rest);
        Self::from_usage_type(without.unwrap_or(usage_type))
    }
}

/// `EBS:VolumeUsage.gp3 in eu-central-1`
impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.usage.usage_type(), self.region)
    }
}

/// A part of what something is billed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// By which price.
    pub key: UnitKey,
    /// How much of it.
    pub quantity: Quantity,
}

/// Operations a second that come with each `gp3` volume.
const GP3_IOPS: u32 = 3_000;
/// Throughput that comes with it, in MiB a second.
const GP3_MIB_PER_S: u32 = 125;
/// Up to so many operations a second of an `io2` volume have the first price.
const IO2_TIER_1: u32 = 32_000;
/// Up to so many have the second.
const IO2_TIER_2: u32 = 64_000;

/// All that a volume is billed for in a month, attached or not.
/// <https://aws.amazon.com/ebs/pricing/>
///
/// # Errors
/// The reason why it cannot be told. No part is left out.
pub fn volume(volume: &Volume) -> Result<Vec<Part>, Unpriced> {
    if volume.id.provider == Provider::Gcp {
        return Err(Unpriced::Google);
    }
    if volume.on_outpost {
        return Err(Unpriced::Outpost);
    }
    let volume_type = volume.volume_type.as_deref().ok_or(Unpriced::FactUnknown("volume type"))?;
    let size = Quantity::whole(volume.size_gib.ok_or(Unpriced::FactUnknown("size"))?.into());
    let region = price_region(&volume.id.location, volume.availability_zone.as_deref())?;
    let iops = || volume.iops.ok_or(Unpriced::FactUnknown("provisioned IOPS"));
    let count = |count: u32| Quantity::whole(count.into());
    let parts = match volume_type {
        "gp2" => vec![(Usage::Gp2, size)],
        "gp3" => {
            let throughput = volume.throughput_mib_per_s.ok_or(Unpriced::FactUnknown("provisioned throughput"))?;
            let beyond = Quantity::of_1024(throughput.saturating_sub(GP3_MIB_PER_S).into());
            vec![
                (Usage::Gp3, size),
                (Usage::Gp3Iops, count(iops()?.saturating_sub(GP3_IOPS))),
                (Usage::Gp3Throughput, beyond),
            ]
        }
        "io1" => vec![(Usage::Io1, size), (Usage::Io1Iops, count(iops()?))],
        "io2" => {
            let iops = iops()?;
            vec![
                (Usage::Io2, size),
                (Usage::Io2Iops, count(iops.min(IO2_TIER_1))),
                (Usage::Io2IopsTier2, count(iops.min(IO2_TIER_2).saturating_sub(IO2_TIER_1))),
                (Usage::Io2IopsTier3, count(iops.saturating_sub(IO2_TIER_2))),
            ]
        }
        "st1" => vec![(Usage::St1, size)],
        "sc1" => vec![(Usage::Sc1, size)],
        "standard" => vec![(Usage::Standard, size)],
        other => return Err(Unpriced::NotKnown { what: "volume type", word: other.to_owned() }),
    };
    let key = |usage| UnitKey { provider: Provider::Aws, region: region.clone(), usage };
    // What there is none of needs no price.
    let parts = parts.into_iter().filter(|(_, quantity)| *quantity != Quantity::whole(0));
    Ok(parts.map(|(usage, quantity)| Part { key: key(usage), quantity }).collect())
}

/// The price of an hour of an elastic address, in use or not.
///
/// # Errors
/// The reason why it cannot be told.
pub fn address(address: &Address, usage: Usage) -> Result<UnitKey, Unpriced> {
    if address.id.provider == Provider::Gcp {
        return Err(Unpriced::Google);
    }
    match address.pool.as_deref() {
        Some("amazon") => {}
        Some(pool) => return Err(Unpriced::OwnAddress(pool.to_owned())),
        None => return Err(Unpriced::FactUnknown("address pool")),
    }
    let region = address.border_group.as_ref().unwrap_or(&address.id.location).clone();
    Ok(UnitKey { provider: Provider::Aws, region, usage })
}

/// The price of an hour of an address that is lent to a running machine, and given back when it stops.
///
/// # Errors
/// The reason why it cannot be told.
pub fn lent_address(instance: &Instance) -> Result<UnitKey, Unpriced> {
    if instance.id.provider == Provider::Gcp {
        return Err(Unpriced::Google);
    }
    let region = price_region(&instance.id.location, instance.availability_zone.as_deref())?;
    Ok(UnitKey { provider: Provider::Aws, region, usage: Usage::AddressInUse })
}

/// The most that a snapshot may be billed for in a month: a full copy. EC2 does not say which blocks it shares with earlier ones.
///
/// # Errors
/// The reason why not even that can be told.
pub fn snapshot_at_most(snapshot: &Snapshot) -> Result<Part, Unpriced> {
    const MIB: u64 = 1 << 20;
    if snapshot.id.provider == Provider::Gcp {
        return Err(Unpriced::Google);
    }
    if snapshot.on_outpost {
        return Err(Unpriced::Outpost);
    }
    let usage = match &snapshot.storage_tier {
        Some(StorageTier::Standard) => Usage::Snapshot,
        Some(StorageTier::Archive) => Usage::SnapshotArchive,
        Some(StorageTier::Other(word)) => return Err(Unpriced::NotKnown { what: "storage tier", word: word.clone() }),
        None => return Err(Unpriced::FactUnknown("storage tier")),
    };
    let full = snapshot.full_size_bytes.map(|bytes| Quantity::of_1024(bytes.div_ceil(MIB)));
    let of_volume = snapshot.volume_size_gib.map(|gib| Quantity::whole(gib.into()));
    let quantity = full.or(of_volume).ok_or(Unpriced::FactUnknown("size"))?;
    let key = UnitKey { provider: Provider::Aws, region: snapshot.id.location.clone(), usage };
    Ok(Part { key, quantity })
}

/// The most that a snapshot of a volume, which is yet to be made, may be billed for: each of the volume's blocks.
///
/// # Errors
/// The reason why not even that can be told.
pub fn snapshot_of_at_most(volume: &Volume) -> Result<Part, Unpriced> {
    if volume.id.provider == Provider::Gcp {
        return Err(Unpriced::Google);
    }
    if volume.on_outpost {
        return Err(Unpriced::Outpost);
    }
    let size = volume.size_gib.ok_or(Unpriced::FactUnknown("size"))?;
    let key = UnitKey { provider: Provider::Aws, region: volume.id.location.clone(), usage: Usage::Snapshot };
    Ok(Part { key, quantity: Quantity::whole(size.into()) })
}

#[cfg(test)]
mod tests;
