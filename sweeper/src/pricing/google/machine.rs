//! One machine → what Google bills it for, or why that cannot be told. Pure.

use model::Provider;

use super::series::{self, LOCAL_SSD, LocalSsd, Series};
use crate::{
    inventory::{Accelerators, Billed, GoogleInstance, Instance, Lifecycle, MachineShape, Tenancy},
    pricing::{PriceKey, Unpriced},
};

/// What a *running* machine is billed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    /// What makes two machines cost the same.
    pub key: PriceKey,
    /// All of them, or the price is not known.
    pub(super) parts: Vec<Part>,
    /// Whether it is bought from spare capacity.
    pub(super) spot: bool,
}

/// So much of something that is billed by the hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// What it may be called in the catalogue: one of these, exactly once.
    pub(super) names: Vec<String>,
    /// So much of it, a fraction.
    pub(super) amount: (u64, u64),
    /// What its price may be per.
    pub(super) units: &'static [&'static str],
}

const HOURS: &[&str] = &["h"];
const GIB_HOURS: &[&str] = &["GiBy.h"];
const GIB_MONTHS: &[&str] = &["GiBy.mo", "GiBy.h"];

/// How Google calls what is bought on demand and from spare capacity.
pub(super) const ON_DEMAND: &str = "OnDemand";
pub(super) const SPOT: &str = "Preemptible";

/// Whose images have no licence that Google bills, by the project that a licence is of.
/// <https://cloud.google.com/compute/docs/images/os-details>
const FREE: [&str; 11] = [
    "debian-cloud",
    "ubuntu-os-cloud",
    "centos-cloud",
    "rocky-linux-cloud",
    "cos-cloud",
    "fedora-coreos-cloud",
    "fedora-cloud",
    "opensuse-cloud",
    "freebsd-org-cloud-dev",
    "gke-node-images",
    // Nested virtualization, which is switched on by a licence.
    "vm-options",
];

/// What a running machine is billed for.
///
/// # Errors
/// Why it cannot be told.
pub fn bill(instance: &Instance) -> Result<Bill, Unpriced> {
    let google = instance.google.as_deref().ok_or(Unpriced::FactUnknown("billed parts"))?;
    let spot = match &instance.lifecycle {
        Lifecycle::OnDemand => false,
        Lifecycle::Spot => true,
        Lifecycle::CapacityBlock => return Err(Unpriced::NotOnDemand("capacity-block".to_owned())),
        Lifecycle::Other(word) => return Err(Unpriced::NotOnDemand(word.clone())),
    };
    // A machine lies on hardware of one customer if and only if it names what it must lie on.
    if instance.tenancy != Tenancy::Unknown {
        return Err(Unpriced::DedicatedHost);
    }
    let billed = google.billed.as_ref().ok_or(Unpriced::FactUnknown("licences"))?;
    nothing_besides(billed)?;
    let machine_type = instance.instance_type.as_deref().ok_or(Unpriced::FactUnknown("machine type"))?;
    let shape = google.shape.as_ref().ok_or(Unpriced::FactUnknown("cores and memory"))?;
    let local_ssd = local_ssd(google, billed, shape)?;
    let gpus = gpus(google, shape)?;
    comes_with(machine_type, local_ssd, &gpus)?;
    let (mut parts, of_series) = cores_and_memory(machine_type, shape)?;
    parts.extend(ssd_part(machine_type, of_series, local_ssd)?);
    for (kind, count) in &gpus {
        let name = series::gpu(kind).ok_or_else(|| Unpriced::NotKnown { what: "accelerator", word: kind.clone() })?;
        parts.push(Part { names: vec![name.to_owned()], amount: ((*count).into(), 1), units: HOURS });
    }
    let zone = instance.availability_zone.as_deref().ok_or(Unpriced::FactUnknown("zone"))?;
    let region = zone.rsplit_once('-').map(|(region, _)| region).filter(|region| !region.is_empty());
    let region = region.ok_or_else(|| Unpriced::NotKnown { what: "zone", word: zone.to_owned() })?;
    let key = key(region, machine_type, &besides(local_ssd, &gpus), if spot { SPOT } else { ON_DEMAND });
    Ok(Bill { key, parts, spot })
}

/// The words of other providers' lists, as far as they mean something here.
fn key(region: &str, machine_type: &str, besides: &str, usage_type: &str) -> PriceKey {
    PriceKey {
        provider: Provider::Gcp,
        region: region.to_owned(),
        instance_type: machine_type.to_owned(),
        operating_system: "NA".to_owned(),
        tenancy: "Shared".to_owned(),
        license_model: "No License required".to_owned(),
        preinstalled_software: besides.to_owned(),
        capacity_status: usage_type.to_owned(),
    }
}

/// `375 GiB of local SSD, 2 nvidia-tesla-t4`
fn besides(local_ssd_gib: u64, gpus: &[(String, u32)]) -> String {
    let ssd = (local_ssd_gib > 0).then(|| format!("{local_ssd_gib} GiB of local SSD"));
    let gpus = gpus.iter().map(|(kind, count)| format!("{count} {kind}"));
    let all: Vec<String> = ssd.into_iter().chain(gpus).collect();
    if all.is_empty() { "NA".to_owned() } else { all.join(", ") }
}

fn nothing_besides(billed: &Billed) -> Result<(), Unpriced> {
    let is_free = |license: &&String| {
        let is_pro = |name: &str| name.split('-').any(|word| word == "pro");
        license.split_once('/').is_some_and(|(project, name)| FREE.contains(&project) && !is_pro(name))
    };
    if let Some(license) = billed.licenses.iter().find(|license| !is_free(license)) {
        return Err(Unpriced::Besides(format!("the licence `{license}`")));
    }
    if billed.confidential {
        return Err(Unpriced::Besides("Confidential Computing".to_owned()));
    }
    match billed.network_tier.as_deref() {
        None | Some("DEFAULT") => Ok(()),
        Some(tier) => Err(Unpriced::Besides(format!("its network's tier `{tier}`"))),
    }
}

/// How much its disks of the host hold; one that comes with its type must be among its disks.
fn local_ssd(google: &GoogleInstance, billed: &Billed, shape: &MachineShape) -> Result<u64, Unpriced> {
    if shape.local_ssds.is_some_and(|with_type| with_type > google.local_ssds) {
        return Err(Unpriced::FactUnknown("disks of the host, which come with its type"));
    }
    let size = billed.local_ssd_gib.ok_or(Unpriced::FactUnknown("local SSDs' size"))?;
    if google.local_ssds > 0 && size == 0 { Err(Unpriced::FactUnknown("local SSDs' size")) } else { Ok(size) }
}

/// Its accelerators. Of a type that has some, Google may name them a second time at the machine.
fn gpus(google: &GoogleInstance, shape: &MachineShape) -> Result<Vec<(String, u32)>, Unpriced> {
    let known = |all: &[Accelerators]| {
        let one = |one: &Accelerators| Some((one.kind.clone()?, one.count?));
        all.iter().map(one).collect::<Option<Vec<_>>>().ok_or(Unpriced::FactUnknown("accelerators"))
    };
    let (of_type, of_machine) = (known(&shape.accelerators)?, known(&google.accelerators)?);
    if !of_type.is_empty() && !of_machine.is_empty() && of_type != of_machine {
        return Err(Unpriced::FactUnknown(
            "accelerators, of which its type and itself say different things, so their number",
        ));
    }
    Ok(if of_type.is_empty() { of_machine } else { of_type })
}

/// What a type is known to come with must be among what is told of the machine: what is missing is not free.
/// <https://cloud.google.com/compute/docs/accelerator-optimized-machines>
fn comes_with(machine_type: &str, local_ssd_gib: u64, gpus: &[(String, u32)]) -> Result<(), Unpriced> {
    let words: Vec<&str> = machine_type.split('-').collect();
    let has = |word: &str| words.contains(&word);
    if matches!(words.first(), Some(&("a2" | "g2"))) && gpus.iter().all(|(_, count)| *count == 0) {
        return Err(Unpriced::FactUnknown("accelerators, which come with its type, so their number"));
    }
    let with_disks = LOCAL.into_iter().any(has) || words.starts_with(&["a2", "ultragpu"]);
    if with_disks && local_ssd_gib == 0 {
        return Err(Unpriced::FactUnknown("disks of the host, which come with its type"));
    }
    Ok(())
}

fn ssd_part(machine_type: &str, series: Option<&Series>, gib: u64) -> Result<Option<Part>, Unpriced> {
    let name = match series.map(|series| series.local_ssd) {
        _ if gib == 0 => return Ok(None),
        Some(LocalSsd::Shared) => LOCAL_SSD,
        Some(LocalSsd::Own(name)) => name,
        Some(LocalSsd::NotKnown) | None => {
            return Err(Unpriced::NotKnown { what: "way to bill local SSDs of", word: machine_type.to_owned() });
        }
    };
    Ok(Some(Part { names: vec![name.to_owned()], amount: (gib, 1), units: GIB_MONTHS }))
}

fn cores(names: Vec<String>, amount: (u64, u64)) -> Part {
    Part { names, amount, units: HOURS }
}

fn memory(names: Vec<String>, mib: u32) -> Part {
    Part { names, amount: (mib.into(), 1_024), units: GIB_HOURS }
}

/// Kinds of predefined types. What has another word at its end, such as `metal`, is billed in a way of its own.
const KINDS: [&str; 9] =
    ["standard", "highmem", "highcpu", "megamem", "ultramem", "hypermem", "highgpu", "megagpu", "ultragpu"];
const LOCAL: [&str; 3] = ["lssd", "standardlssd", "highlssd"];

/// What Google bills for a type itself, and its series; a type that is billed as a whole has none.
fn cores_and_memory(
    machine_type: &str,
    shape: &MachineShape,
) -> Result<(Vec<Part>, Option<&'static Series>), Unpriced> {
    if let Some(name) = series::whole(machine_type) {
        return Ok((vec![cores(vec![name.to_owned()], (1, 1))], None));
    }
    let not_known = || Unpriced::NotKnown { what: "machine type", word: machine_type.to_owned() };
    let vcpus = shape.vcpus.ok_or(Unpriced::FactUnknown("cores"))?;
    let mib = shape.memory_mib.ok_or(Unpriced::FactUnknown("memory"))?;
    let words: Vec<&str> = machine_type.split('-').collect();
    let words: &[&str] = if words.first() == Some(&"custom") { &[&["n1"], words.as_slice()].concat() } else { &words };
    let of = |name: &str| series::series(name).ok_or_else(not_known);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (parts, series) = match words {
        ["e2", size @ ("micro" | "small" | "medium")] => {
            let series = of("e2")?;
            let part = [cores(series.names("Core"), part_of_core(size)), memory(series.names("Ram"), mib)];
            (part.to_vec(), series)
        }
        ["e2", "custom", size @ ("micro" | "small" | "medium"), _] => {
            let series = of("e2")?;
            let part =
                [cores(series.custom_names("Core"), part_of_core(size)), memory(series.custom_names("Ram"), mib)];
            (part.to_vec(), series)
        }
        [name, "custom", own_vcpus, own_mib, extended @ ..] => {
            let series = of(name)?;
            let says = (own_vcpus.parse() == Ok(vcpus)) && (own_mib.parse() == Ok(mib));
            let extended = match extended {
                [] => false,
                ["ext"] if series.extends => true,
                _ => return Err(not_known()),
            };
            if !says || series.custom.is_empty() {
                return Err(not_known());
            }
            (custom(series, vcpus, mib, extended).ok_or_else(not_known)?, series)
        }
        [name, kind, number, local @ ..] if KINDS.contains(kind) => {
            let is_local = match local {
                [] => true,
                [word] => LOCAL.contains(word),
                _ => false,
            };
            if !is_local || !is_number(number.strip_suffix('g').unwrap_or(number)) {
                return Err(not_known());
            }
            // The first memory-optimized types were called N1, and one type of M4 has a price of its own.
            let series = match (*name, *kind) {
                ("n1", "megamem" | "ultramem") => of("m1")?,
                ("m4", "ultramem") => return Err(not_known()),
                (name, _) => of(name)?,
            };
            if shape.shared_cpu == Some(true) {
                return Err(not_known());
            }
            (vec![cores(series.names("Core"), (vcpus.into(), 1)), memory(series.names("Ram"), mib)], series)
        }
        _ => return Err(not_known()),
    };
    Ok((parts, Some(series)))
}

/// What a machine with shared cores is billed for, of a core.
/// <https://cloud.google.com/compute/docs/general-purpose-machines#e2-shared-core>
fn part_of_core(size: &str) -> (u64, u64) {
    match size {
        "micro" => (1, 4),
        "small" => (2, 4),
        _ => (1, 1),
    }
}

/// None if it has more memory than its name allows.
fn custom(series: &Series, vcpus: u32, mib: u32, extended: bool) -> Option<Vec<Part>> {
    let most = series.mib_per_core.checked_mul(vcpus)?;
    let beyond = mib.saturating_sub(most);
    if beyond > 0 && !extended {
        return None;
    }
    let mut parts =
        vec![cores(series.custom_names("Core"), (vcpus.into(), 1)), memory(series.custom_names("Ram"), mib - beyond)];
    if beyond > 0 {
        parts.push(memory(series.extended_names(), beyond));
    }
    Some(parts)
}
