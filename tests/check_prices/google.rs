//! Machines of Google Cloud, by the pages of its catalogue that are there.

use jiff::Timestamp;
use model::Usd;
use std::{collections::BTreeMap, fs, path::Path};
use sweeper::{
    inventory::{
        Accelerators, Billed, GoogleInstance, Instance, InstanceState, InstanceStore, Lifecycle, MachineShape,
        RootDevice, Tenancy, gcp::Sku,
    },
    pricing::{SkuFilter, SkuList, google_bill},
};

use super::{Compared, Line, files, is_first_hand, lines};

pub(super) fn compare(folder: &Path) -> Result<Compared, String> {
    let list = skus(folder)?;
    let mut compared = Compared::default();
    for line in lines(&folder.join("gcp.csv"))? {
        if !is_first_hand(&line) {
            compared.not("its price is imputed or corrected");
            continue;
        }
        match machine(&line) {
            Some(machine) => {
                let priced = google_bill(&machine).and_then(|bill| list.price(&bill));
                compared.take(&line, priced.map(|priced| priced.per_hour.per_hour()));
            }
            None => compared.not("the independent catalogue does not say which disks or GPUs its price includes"),
        }
    }
    Ok(compared)
}

fn skus(folder: &Path) -> Result<SkuList, String> {
    let mut pages = Vec::new();
    files(folder, "gcp-skus", &mut pages).map_err(|error| error.to_string())?;
    let (filter, mut kept) = (SkuFilter::default(), Vec::new());
    for page in pages {
        let wrong = |error: String| format!("{}: {error}", page.display());
        let text = fs::read_to_string(&page).map_err(|error| wrong(error.to_string()))?;
        let mut answer: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let skus: Vec<Sku> = serde_json::from_value(answer["skus"].take()).map_err(|error| wrong(error.to_string()))?;
        let all = skus.len();
        let own: Vec<_> = skus.into_iter().filter_map(|sku| filter.keep(sku)).collect();
        println!("gcp: {} has {all} SKUs, of which {} may be parts of a machine's price", page.display(), own.len());
        kept.extend(own);
    }
    Ok(kept.into_iter().collect())
}

/// A machine of that type with nothing besides; none if the type has disks or GPUs that only a list of Google's tells.
fn machine(line: &Line) -> Option<Instance> {
    let words: Vec<&str> = line.machine_type.split('-').collect();
    let gpus = match words.as_slice() {
        ["a2", "highgpu" | "megagpu", count] => Some(count.strip_suffix('g')?.parse().ok()?),
        ["a2" | "a3" | "a4" | "g2" | "g4", ..] | ["z3", ..] => return None,
        // Some catalogues reckon them by N1's prices; Google bills them as M1.
        ["n1", "megamem" | "ultramem", ..] => return None,
        _ => None,
    };
    let gpu = |count| Accelerators { kind: Some("nvidia-tesla-a100".to_owned()), count: Some(count) };
    let google = GoogleInstance {
        billed: Some(Billed { local_ssd_gib: Some(0), ..Billed::default() }),
        shape: Some(MachineShape {
            vcpus: Some(line.vcpu),
            memory_mib: Some(mib(&line.mem_gib)?),
            shared_cpu: Some(line.shared_core == Some(1)),
            accelerators: gpus.map(gpu).into_iter().collect(),
            local_ssds: None,
        }),
        ..GoogleInstance::default()
    };
    let zone = format!("{}-a", line.region);
    Some(Instance {
        id: format!("gcp:independent:{zone}:1").parse().ok()?,
        name: None,
        instance_type: Some(line.machine_type.clone()),
        state: InstanceState::Running,
        launched_at: None::<Timestamp>,
        attached_at: None,
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        availability_zone: Some(zone),
        on_outpost: false,
        platform_details: None,
        usage_operation: None,
        tenancy: Tenancy::Unknown,
        root_device: RootDevice::PersistentDisk,
        instance_store: InstanceStore::Absent,
        volumes: Vec::new(),
        network_interfaces: Vec::new(),
        public_ipv4: Vec::new(),
        tags: BTreeMap::new(),
        autoscaling_group: None,
        launch_template: None,
        operator: None,
        hibernation_configured: None,
        instance_profile: None,
        google: Some(Box::new(google)),
    })
}

/// `3.75` → 3,840; none for what is no whole MiB.
fn mib(gib: &str) -> Option<u32> {
    // Six decimals are enough: a MiB is 0.000977 GiB.
    let millionths = gib.parse::<Usd>().ok()?.micros();
    let times = millionths.checked_mul(1_024)?;
    let mib = times.checked_add(500_000)? / 1_000_000;
    u32::try_from(mib).ok()
}
