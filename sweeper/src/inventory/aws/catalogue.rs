//! What a region offers: all types with what each can do, and the zones that offer it.
//!
//! Needs `ec2:DescribeInstanceTypes` and `ec2:DescribeInstanceTypeOfferings`. A call for each hundred types and for each thousand pairs of type and zone: some twenty
//! for a large region. What EC2 does not say of a type is not known; a type of which it does not say vCPUs, memory or architecture is not in the catalogue, nor
//! is one that cannot be had on demand.

use aws_sdk_ec2::types::{
    EbsOptimizedSupport, InstanceTypeInfo, InstanceTypeOffering, LocationType, NetworkCardInfo, UsageClassType,
};
use recommender::catalogue::{Accelerator, Architecture, Burst, Limits, MachineType, Platform};
use std::collections::{BTreeMap, BTreeSet};

use super::{Accounts, collect::list, types::TYPES};
use crate::inventory::{Failure, FailureKind, Offered, OfferedType, Scope, reader::Api};

const OFFERINGS: Api = Api::ec2("ec2:DescribeInstanceTypeOfferings");
/// The most that one call lists: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html>.
const TYPES_PAGE: i32 = 100;
/// Likewise.
const OFFERINGS_PAGE: i32 = 1_000;
/// Bytes a second of one megabit a second.
const MBIT: u64 = 125_000;

/// What a scope offers.
///
/// # Errors
/// If it cannot be read, or the account is not open here; half of it is never given.
pub async fn offered(accounts: &Accounts, scope: &Scope) -> Result<Offered, Failure> {
    let Some(place) = accounts.place(scope) else {
        let message = format!("account {} is not open here", scope.account);
        return Err(Failure { kind: FailureKind::Credentials, message });
    };
    let types = place.pages(
        TYPES,
        |_| (),
        |token| {
            let request = place.ec2().describe_instance_types().max_results(TYPES_PAGE).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.instance_types, "instance types")?, page.next_token))
            }
        },
    );
    let offerings = place.pages(
        OFFERINGS,
        |_| (),
        |token| {
            let request = place.ec2().describe_instance_type_offerings().location_type(LocationType::AvailabilityZone);
            let request = request.max_results(OFFERINGS_PAGE).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.instance_type_offerings, "offers of instance types")?, page.next_token))
            }
        },
    );
    let types: Vec<OfferedType> = types.await?.iter().filter_map(offered_type).collect();
    Ok(Offered { types, zones: zones(&offerings.await?) })
}

fn zones(offerings: &[InstanceTypeOffering]) -> BTreeMap<String, BTreeSet<String>> {
    let mut zones = BTreeMap::<String, BTreeSet<String>>::new();
    for offering in offerings {
        if let (Some(zone), Some(name)) = (offering.location(), offering.instance_type()) {
            zones.entry(zone.to_owned()).or_default().insert(name.as_str().to_owned());
        }
    }
    zones
}

fn offered_type(info: &InstanceTypeInfo) -> Option<OfferedType> {
    let classes = info.supported_usage_classes();
    if !classes.is_empty() && !classes.contains(&UsageClassType::OnDemand) {
        return None;
    }
    let name = info.instance_type()?.as_str().to_owned();
    let family = name.split_once('.')?.0.to_owned();
    let (vcpus, processor) = (info.v_cpu_info()?, info.processor_info()?);
    let machine_type = MachineType {
        family,
        architecture: architecture(processor.supported_architectures().iter().map(|one| one.as_str()))?,
        platform: platform(info),
        vcpus: count(vcpus.default_v_cpus())?,
        threads_per_core: count(vcpus.default_threads_per_core()),
        mhz: processor.sustained_clock_speed_in_ghz().and_then(|ghz| whole(ghz, 1_000)?.try_into().ok()),
        memory_mib: u64::try_from(info.memory_info()?.size_in_mib()?).ok().filter(|mib| *mib > 0)?,
        accelerators: accelerators(info),
        local_disk_gib: local_disk_gib(info),
        // Where the baseline is EC2 does not say.
        burst: if info.burstable_performance_supported() == Some(false) { Burst::Steady } else { Burst::Unknown },
        network: network(info.network_info().map(|network| network.network_cards()).unwrap_or_default()),
        disk: ebs(info, |ebs| [ebs.baseline_bandwidth_in_mbps(), ebs.maximum_bandwidth_in_mbps()], MBIT),
        disk_operations: ebs(info, |ebs| [ebs.baseline_iops(), ebs.maximum_iops()], 1),
        interfaces: info.network_info().and_then(|network| count(network.maximum_network_interfaces())),
        name,
    };
    let modes: BTreeSet<String> = info.supported_boot_modes().iter().map(|mode| mode.as_str().to_owned()).collect();
    Some(OfferedType { machine_type, boot_modes: (!modes.is_empty()).then_some(modes) })
}

/// A number that is there and above zero.
fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

/// So many times that, as a whole number; EC2 writes `3.1` and `0.781`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is looked at before")]
fn whole(number: f64, times: u32) -> Option<u64> {
    let product = (number * f64::from(times)).round();
    (1.0..1e15).contains(&product).then_some(product as u64)
}

/// Old types execute the 32-bit instructions of the same processors, too.
fn architecture<'a>(supported: impl Iterator<Item = &'a str>) -> Option<Architecture> {
    let supported: Vec<&str> = supported.collect();
    if supported.contains(&"x86_64") {
        return Some(Architecture::X86_64);
    }
    match supported.first()? {
        &"arm64" => Some(Architecture::Arm64),
        other => Some(Architecture::Other((*other).to_owned())),
    }
}

fn platform(info: &InstanceTypeInfo) -> Platform {
    match (info.bare_metal(), info.hypervisor()) {
        (Some(true), _) => Platform::BareMetal,
        (Some(false), Some(hypervisor)) => Platform::Hypervisor(hypervisor.as_str().to_owned()),
        _ => Platform::Unknown,
    }
}

/// EC2 names accelerators where there are any. One without a name or a number leaves it unknown which there are.
fn accelerators(info: &InstanceTypeInfo) -> Option<Vec<Accelerator>> {
    let mut found: Vec<(Option<String>, Option<i32>)> = Vec::new();
    let named = |maker: Option<&str>, name: Option<&str>| {
        Some(format!("{}{}", maker.map(|maker| format!("{maker} ")).unwrap_or_default(), name?))
    };
    for one in info.gpu_info().map(|gpus| gpus.gpus()).unwrap_or_default() {
        found.push((named(one.manufacturer(), one.name()), one.count()));
    }
    for one in info.fpga_info().map(|fpgas| fpgas.fpgas()).unwrap_or_default() {
        found.push((named(one.manufacturer(), one.name()), one.count()));
    }
    for one in info.inference_accelerator_info().map(|inference| inference.accelerators()).unwrap_or_default() {
        found.push((named(one.manufacturer(), one.name()), one.count()));
    }
    for one in info.media_accelerator_info().map(|media| media.accelerators()).unwrap_or_default() {
        found.push((named(one.manufacturer(), one.name()), one.count()));
    }
    for one in info.neuron_info().map(|neuron| neuron.neuron_devices()).unwrap_or_default() {
        found.push((named(None, one.name()), one.count()));
    }
    let has_lists = info.gpu_info().is_some()
        || info.fpga_info().is_some()
        || info.inference_accelerator_info().is_some()
        || info.media_accelerator_info().is_some()
        || info.neuron_info().is_some();
    if has_lists && found.is_empty() {
        return None;
    }
    let told = found.into_iter().map(|(model, number)| Some(Accelerator { model: model?, count: count(number)? }));
    let mut told: Vec<Accelerator> = told.collect::<Option<_>>()?;
    told.sort();
    Some(told)
}

/// EC2 counts in gigabytes; rounded up.
fn local_disk_gib(info: &InstanceTypeInfo) -> Option<u64> {
    match (info.instance_storage_supported()?, info.instance_storage_info()) {
        (false, _) => Some(0),
        (true, disks) => {
            let bytes = u64::try_from(disks?.total_size_in_gb()?).ok()?.checked_mul(1_000_000_000)?;
            Some(bytes.div_ceil(1 << 30)).filter(|gib| *gib > 0)
        }
    }
}

/// Of several cards each interface has one: what a machine gets of them is not known.
fn network(cards: &[NetworkCardInfo]) -> Limits {
    let [card] = cards else { return Limits::default() };
    let bytes = |gbit: Option<f64>| whole(gbit?, 1_000)?.checked_mul(MBIT);
    Limits { baseline: bytes(card.baseline_bandwidth_in_gbps()), burst: bytes(card.peak_bandwidth_in_gbps()) }
}

/// Where a path of its own to its volumes is to be asked for, nobody knows what a machine has.
fn ebs(
    info: &InstanceTypeInfo,
    of: fn(&aws_sdk_ec2::types::EbsOptimizedInfo) -> [Option<i32>; 2],
    times: u64,
) -> Limits {
    let ebs = info.ebs_info().filter(|ebs| ebs.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default));
    let Some(told) = ebs.and_then(|ebs| ebs.ebs_optimized_info()) else { return Limits::default() };
    let [baseline, burst] = of(told).map(|number| count(number).map(|number| u64::from(number) * times));
    Limits { baseline, burst }
}

#[cfg(test)]
mod tests;
