//! Hand-computed prices, and every trap of the catalogue's descriptions.

use serde_json::{Value, json};

use super::{Filter as SkuFilter, list::described, *};
use crate::{
    inventory::{Accelerators, Billed, GoogleInstance, Instance, Lifecycle, MachineShape, Tenancy, gcp::Sku, sample},
    pricing::{PriceKey, Unpriced},
};

const HERE: &str = "europe-west3";

/// A SKU as the catalogue has it, at so many billionths of a dollar.
fn sku(id: &str, description: &str, (unit, nanos): (&str, u64)) -> Value {
    // A month of 730 hours, which is easy to divide by.
    let factor: u64 = if unit == "GiBy.mo" { (730 * 3_600) << 30 } else { 3_600 };
    let usage = if description.contains("Spot Preemptible") { "Preemptible" } else { "OnDemand" };
    json!({
        "name": format!("services/6F81-5844-456A/skus/{id}"), "skuId": id, "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute", "resourceGroup": "CPU", "usageType": usage},
        "serviceRegions": [HERE], "serviceProviderName": "Google",
        "geoTaxonomy": {"type": "REGIONAL", "regions": [HERE]},
        "pricingInfo": [{"summary": "", "currencyConversionRate": 1, "effectiveTime": "2026-11-01T00:00:00Z", "pricingExpression": {
            "usageUnit": unit, "displayQuantity": 1, "baseUnitConversionFactor": factor,
            "tieredRates": [{"startUsageAmount": 0, "unitPrice": {
                "currencyCode": "USD", "units": (nanos / 1_000_000_000).to_string(), "nanos": nanos % 1_000_000_000}}]}}],
    })
}

fn of(skus: &[Value]) -> SkuList {
    let filter = SkuFilter::default();
    let read = |sku: &Value| serde_json::from_value::<Sku>(sku.clone()).expect("a SKU");
    skus.iter().filter_map(|sku| filter.keep(read(sku))).collect()
}

/// Prices that are easy to add up, and each of a digit of its own.
fn skus() -> Vec<Value> {
    let of =
        |n: usize, (description, unit, nanos): (&str, &str, u64)| sku(&format!("{n:04}"), description, (unit, nanos));
    let all = [
        ("N2 Instance Core running in Frankfurt", "h", 40_000_000),
        ("N2 Instance Ram running in Frankfurt", "GiBy.h", 5_000_000),
        ("Spot Preemptible N2 Instance Core running in Frankfurt", "h", 10_000_000),
        ("Spot Preemptible N2 Instance Ram running in Frankfurt", "GiBy.h", 1_000_000),
        ("N2 Custom Instance Core running in Frankfurt", "h", 42_000_000),
        ("N2 Custom Instance Ram running in Frankfurt", "GiBy.h", 6_000_000),
        ("N2 Custom Extended Instance Ram running in Frankfurt", "GiBy.h", 9_000_000),
        ("N1 Predefined Instance Core running in Frankfurt", "h", 31_000_000),
        ("N1 Predefined Instance Ram running in Frankfurt", "GiBy.h", 4_000_000),
        ("Custom Instance Core running in Frankfurt", "h", 33_000_000),
        ("Custom Instance Ram running in Frankfurt", "GiBy.h", 4_400_000),
        ("E2 Instance Core running in Frankfurt", "h", 20_000_001),
        ("E2 Instance Ram running in Frankfurt", "GiBy.h", 3_000_000),
        ("Custom E2 Instance Core running in Frankfurt", "h", 24_000_000),
        ("Custom E2 Instance Ram running in Frankfurt", "GiBy.h", 3_200_000),
        ("Compute optimized Core running in Frankfurt", "h", 50_000_000),
        ("Compute optimized Instance Ram running in Frankfurt", "GiBy.h", 7_000_000),
        ("Memory-optimized Instance Core running in Frankfurt", "h", 45_000_000),
        ("Memory-optimized Instance Ram running in Frankfurt", "GiBy.h", 6_500_000),
        ("G2 Instance Core running in Frankfurt", "h", 25_000_000),
        ("G2 Instance Ram running in Frankfurt", "GiBy.h", 3_000_000),
        ("Nvidia L4 GPU running in Frankfurt", "h", 600_000_000),
        ("Nvidia Tesla T4 GPU running in Frankfurt", "h", 400_000_000),
        ("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Frankfurt", "h", 130_000_000),
        ("SSD backed Local Storage in Frankfurt", "GiBy.mo", 73_000_000),
        ("SSD backed Local Storage attached to Spot Preemptible VMs in Frankfurt", "GiBy.mo", 36_500_000),
        ("C4 Instance Core running in Frankfurt", "h", 38_000_000),
        ("C4 Instance Ram running in Frankfurt", "GiBy.h", 4_500_000),
        ("C4 Instance Local SSD running in Frankfurt", "GiBy.mo", 146_000_000),
        ("Micro Instance with burstable CPU running in Frankfurt", "h", 9_100_000),
        ("Small Instance with 1 VCPU running in Frankfurt", "h", 30_000_000),
    ];
    all.into_iter().enumerate().map(|(n, one)| of(n, one)).collect()
}

/// What is not the price of a machine of one's own, and would change one if it were taken for it.
const TRAPS: [&str; 18] = [
    "Commitment v1: N2 Cpu in Frankfurt for 1 Year",
    "N2 Sole Tenancy Instance Core running in Frankfurt",
    "Sole Tenancy Premium for N2 Sole Tenancy Instance Core running in Frankfurt",
    "Memory Optimized Upgrade Premium for Memory-optimized Instance Core running in Frankfurt",
    "Reserved N2 Instance Core running in Frankfurt",
    "N2 Instance Core running in Frankfurt for 1 Year",
    "N2 Instance Core running in Frankfurt (DWS Defined Duration)",
    "DWS Defined Duration N2 Instance Core running in Frankfurt",
    "DWS Calendar Mode N2 Instance Core in Frankfurt",
    "N2 Instance Core",
    "N2 Instance Core hours running in Frankfurt",
    "N2 Instance Core running in ",
    "N2D AMD Instance Core running in Frankfurt",
    "Overcommit Premium for N2 Instance Core running in Frankfurt",
    "Licensing Fee for Windows Server 2022 Datacenter Edition (CPU cost)",
    "Spot Preemptible Spot Preemptible N2 Instance Core running in Frankfurt",
    "Spot Preemptible SSD backed Local Storage attached to Spot Preemptible VMs in Frankfurt",
    "n2 instance core running in Frankfurt",
];

/// A running machine of a type with so many cores and MiB.
fn machine(machine_type: &str, (vcpus, memory_mib): (u32, u32)) -> Instance {
    let shape = MachineShape {
        vcpus: Some(vcpus),
        memory_mib: Some(memory_mib),
        shared_cpu: Some(false),
        ..MachineShape::default()
    };
    let billed = Billed {
        licenses: vec!["debian-cloud/debian-12-bookworm".to_owned()],
        local_ssd_gib: Some(0),
        ..Billed::default()
    };
    let google = GoogleInstance { billed: Some(billed), shape: Some(shape), ..GoogleInstance::default() };
    Instance {
        id: format!("gcp:omics:{HERE}-a:42").parse().expect("a key"),
        instance_type: Some(machine_type.to_owned()),
        availability_zone: Some(format!("{HERE}-a")),
        tenancy: Tenancy::Unknown,
        usage_operation: None,
        google: Some(Box::new(google)),
        ..sample::instance()
    }
}

fn google(instance: &mut Instance) -> &mut GoogleInstance {
    instance.google.as_deref_mut().expect("of Google's")
}

fn micros(skus: &[Value], instance: &Instance) -> Result<i64, Unpriced> {
    bill(instance).and_then(|bill| of(skus).price(&bill)).map(|priced| priced.per_hour.per_hour().micros())
}

#[test]
fn a_machine_costs_its_cores_and_its_memory() {
    let cases = [
        ("n2-standard-8", (8, 32_768), 8 * 40_000 + 32 * 5_000),
        ("n1-standard-1", (1, 3_840), 31_000 + 15_000),
        ("c2-standard-4", (4, 16_384), 4 * 50_000 + 16 * 7_000),
        ("m1-megamem-96", (96, 1_468_006), 96 * 45_000 + 9_318_397),
        ("n1-megamem-96", (96, 1_468_006), 96 * 45_000 + 9_318_397),
        ("n2-custom-4-16384", (4, 16_384), 4 * 42_000 + 16 * 6_000),
        ("n2-custom-2-20480-ext", (2, 20_480), 2 * 42_000 + 16 * 6_000 + 4 * 9_000),
        ("n2-custom-2-8192-ext", (2, 8_192), 2 * 42_000 + 8 * 6_000),
        ("custom-6-6656", (6, 6_656), 6 * 33_000 + 28_600),
        ("n1-custom-6-6656", (6, 6_656), 6 * 33_000 + 28_600),
        ("e2-custom-2-4096", (2, 4_096), 2 * 24_000 + 4 * 3_200),
        ("e2-custom-small-3072", (2, 3_072), 12_000 + 3 * 3_200),
        // 20,000,001 billionths of a core are rounded once, with the memory: 5,000,000.25 + 3,000,000 → $0.008.
        ("e2-micro", (2, 1_024), 8_000),
        ("e2-small", (2, 2_048), 16_000),
        ("e2-medium", (2, 4_096), 32_000),
        ("f1-micro", (1, 614), 9_100),
        ("g1-small", (1, 1_740), 30_000),
    ];
    for (machine_type, shape, expected) in cases {
        let mut one = machine(machine_type, shape);
        google(&mut one).shape.as_mut().expect("a shape").shared_cpu = Some(machine_type.ends_with("-micro"));
        assert_eq!(micros(&skus(), &one), Ok(expected), "{machine_type}");
    }
}

#[test]
fn what_the_machine_has_besides_is_in_its_price() {
    let mut one = machine("n2-standard-8", (8, 32_768));
    google(&mut one).local_ssds = 2;
    google(&mut one).billed.as_mut().expect("bills").local_ssd_gib = Some(750);
    assert_eq!(micros(&skus(), &one), Ok(480_000 + 75_000), "750 GiB at $0.073 a month of 730 hours");
    let mut longer = skus();
    for sku in &mut longer {
        let expression = &mut sku["pricingInfo"][0]["pricingExpression"];
        if expression["usageUnit"] == "GiBy.mo" {
            expression["baseUnitConversionFactor"] = json!((744_u64 * 3_600) << 30);
        }
    }
    assert_eq!(micros(&longer, &one), Ok(480_000 + 73_589), "and of 744, in months of 31 days");
    one.lifecycle = Lifecycle::Spot;
    assert_eq!(micros(&skus(), &one), Ok(8 * 10_000 + 32 * 1_000 + 37_500));

    let mut one = machine("n1-standard-1", (1, 3_840));
    let gpus = |kind: &str, count| vec![Accelerators { kind: Some(kind.to_owned()), count: Some(count) }];
    google(&mut one).accelerators = gpus("nvidia-tesla-t4", 2);
    assert_eq!(micros(&skus(), &one), Ok(46_000 + 800_000));
    assert_eq!(
        bill(&one).expect("a bill").key.to_string(),
        "n1-standard-1, 2 nvidia-tesla-t4, OnDemand, in europe-west3"
    );
    google(&mut one).accelerators = gpus("nvidia-tesla-t4-vws", 2);
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::NotKnown { what: "accelerator", .. })), "a licence besides");

    let mut one = machine("g2-standard-4", (4, 16_384));
    google(&mut one).shape.as_mut().expect("a shape").accelerators = gpus("nvidia-l4", 1);
    let expected = 4 * 25_000 + 16 * 3_000 + 600_000;
    assert_eq!(micros(&skus(), &one), Ok(expected));
    google(&mut one).accelerators = gpus("nvidia-l4", 1);
    assert_eq!(micros(&skus(), &one), Ok(expected), "named by its type and by itself, it is one");
    google(&mut one).accelerators = gpus("nvidia-l4", 2);
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::FactUnknown(_))));

    google(&mut one).shape.as_mut().expect("a shape").accelerators.clear();
    google(&mut one).accelerators.clear();
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::FactUnknown(_))), "what comes with a type is not free");

    let mut one = machine("c4-standard-4-lssd", (4, 15_360));
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::FactUnknown(_))), "nor are disks");
    google(&mut one).shape.as_mut().expect("a shape").local_ssds = Some(1);
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::FactUnknown(_))), "a disk that comes with it is not listed");
    google(&mut one).local_ssds = 1;
    assert!(matches!(micros(&skus(), &one), Err(Unpriced::FactUnknown(_))), "nor its size");
    google(&mut one).billed.as_mut().expect("bills").local_ssd_gib = Some(375);
    assert_eq!(micros(&skus(), &one), Ok(4 * 38_000 + 15 * 4_500 + 75_000), "by the series' own SKU");
}

/// <https://cloud.google.com/compute/gpus-pricing>: $3.673385 and $55.739504 an hour in Iowa.
#[test]
fn real_skus_come_to_the_price_that_google_publishes() {
    let real = [
        sku("2922-40C5-B19F", "A2 Instance Core running in Americas", ("h", 31_611_000)),
        sku("2390-DCAF-DA38", "A2 Instance Ram running in Americas", ("GiBy.h", 4_237_000)),
        sku("039F-D0DA-4055", "Nvidia Tesla A100 GPU running in Americas", ("h", 2_933_908_000)),
    ];
    for (machine_type, cores, gib, gpus, expected) in
        [("a2-highgpu-1g", 12, 85, 1, 3_673_385), ("a2-megagpu-16g", 96, 1_360, 16, 55_739_504)]
    {
        let mut one = machine(machine_type, (cores, gib * 1_024));
        let of_type = Accelerators { kind: Some("nvidia-tesla-a100".to_owned()), count: Some(gpus) };
        google(&mut one).shape.as_mut().expect("a shape").accelerators = vec![of_type];
        assert_eq!(micros(&real, &one), Ok(expected), "{machine_type}");
    }
}

#[test]
fn only_a_description_all_of_which_is_known_is_taken() {
    let untouched = of(&skus());
    let bill = bill(&machine("n2-standard-8", (8, 32_768))).expect("a bill");
    let price = untouched.price(&bill).expect("a price");
    let rows = "0000: 8 × 40000000 billionths of a dollar per h; 0001: 32 × 5000000 billionths of a dollar per GiBy.h; as of 2026-11-01T00:00:00Z";
    assert_eq!(price.source_rows, rows);
    for trap in TRAPS {
        let mut all = skus();
        all.retain(|sku| sku["description"] != "N2 Instance Core running in Frankfurt");
        all.push(sku("trap", trap, ("h", 1)));
        assert!(matches!(of(&all).price(&bill), Err(Unpriced::NoRow(_))), "taken for cores: {trap}");
        let mut all = skus();
        all.push(sku("trap", trap, ("h", 1)));
        assert_eq!(of(&all).price(&bill), Ok(price.clone()), "in the way: {trap}");
    }
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut all = skus();
        change(&mut all[0]);
        of(&all).price(&bill)
    };
    for usage in ["Commit1Yr", "Commit3Yr", "Preemptible", ""] {
        let result = changed(&|sku| sku["category"]["usageType"] = json!(usage));
        assert!(matches!(result, Err(Unpriced::NoRow(_))), "{usage}");
    }
    assert!(matches!(changed(&|sku| sku["serviceRegions"] = json!(["us-east1"])), Err(Unpriced::NoRow(_))));
    let unit = |sku: &mut Value| sku["pricingInfo"][0]["pricingExpression"]["usageUnit"] = json!("GiBy.h");
    assert!(matches!(changed(&unit), Err(Unpriced::Row { .. })), "a core has no GiB");
    let euros = |sku: &mut Value| {
        sku["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = json!("EUR");
    };
    assert!(matches!(changed(&euros), Err(Unpriced::Row { why, .. }) if why.contains("EUR")));
}

#[test]
fn two_skus_for_one_part_are_ambiguous() {
    let bill = bill(&machine("n2-standard-8", (8, 32_768))).expect("a bill");
    let with = |one: Value| of(&[skus(), vec![one]].concat()).price(&bill);
    let mut later = skus()[0].clone();
    later["pricingInfo"][0]["effectiveTime"] = json!("2026-11-01T00:00:01Z");
    assert!(with(skus()[0].clone()).is_ok() && with(later).is_ok(), "the same row twice is one");
    for nanos in [40_000_000, 41_000_000] {
        let again = sku("again", "N2 Instance Core running in Germany", ("h", nanos));
        assert!(matches!(with(again), Err(Unpriced::Ambiguous { rows: 2, .. })));
    }
    let spelt = sku("spelt", "Compute optimized Instance Core running in Frankfurt", ("h", 50_000_000));
    let c2 = super::bill(&machine("c2-standard-4", (4, 16_384))).expect("a bill");
    assert!(matches!(of(&[skus(), vec![spelt]].concat()).price(&c2), Err(Unpriced::Ambiguous { rows: 2, .. })));
}

#[test]
fn descriptions_are_taken_apart() {
    let name = |text| described(text).map(|described| (described.name, described.spot));
    assert_eq!(name("N2 Instance Core running in São Paulo"), Some(("N2 Instance Core", false)));
    assert_eq!(name("Spot Preemptible A2 Instance Ram running in Americas"), Some(("A2 Instance Ram", true)));
    assert_eq!(name("SSD backed Local Storage"), Some(("SSD backed Local Storage", false)));
    assert_eq!(
        name("SSD backed Local Storage attached to Spot Preemptible VMs"),
        Some(("SSD backed Local Storage", true))
    );
    assert_eq!(name("SSD backed PD Capacity in Frankfurt"), None);
    assert_eq!(name("N2 Instance Core running in Frankfurt with something"), None);
    assert_eq!(name("N2 Instance Core running in Frankfurt 2"), None);
}

#[test]
fn what_cannot_be_told_or_is_billed_otherwise_has_no_price() {
    let with = |change: &dyn Fn(&mut Instance)| {
        let mut one = machine("n2-standard-8", (8, 32_768));
        change(&mut one);
        PriceKey::of(&one).expect_err("no key")
    };
    let billed = |change: &dyn Fn(&mut Billed)| with(&|one| change(google(one).billed.as_mut().expect("bills")));
    for license in [
        "rhel-cloud/rhel-9-server",
        "windows-cloud/windows-server-2022-dc",
        "ubuntu-os-pro-cloud/ubuntu-pro-2204-lts",
        "ubuntu-os-cloud/ubuntu-pro-2204-lts",
        "somebody/debian-cloud",
        "debian-cloud",
        "https://elsewhere",
    ] {
        let why = billed(&|billed| billed.licenses.push(license.to_owned()));
        assert_eq!(why, Unpriced::Besides(format!("the licence `{license}`")), "{license}");
    }
    assert!(matches!(billed(&|billed| billed.confidential = true), Unpriced::Besides(_)));
    assert!(matches!(billed(&|billed| billed.network_tier = Some("TIER_1".into())), Unpriced::Besides(_)));
    assert!(matches!(billed(&|billed| billed.local_ssd_gib = None), Unpriced::FactUnknown(_)));
    assert!(matches!(with(&|one| google(one).billed = None), Unpriced::FactUnknown("licences")));
    assert!(matches!(with(&|one| google(one).shape = None), Unpriced::FactUnknown(_)));
    assert_eq!(with(&|one| one.tenancy = Tenancy::Host), Unpriced::DedicatedHost);
    assert_eq!(
        with(&|one| one.lifecycle = Lifecycle::Other("FLEX_START".into())),
        Unpriced::NotOnDemand("FLEX_START".into())
    );
    assert!(matches!(with(&|one| one.availability_zone = None), Unpriced::FactUnknown("zone")));
    assert!(matches!(
        with(&|one| one.availability_zone = Some("here".into())),
        Unpriced::NotKnown { what: "zone", .. }
    ));
    for (machine_type, shape) in [
        ("m2-ultramem-208", (208, 1)),
        ("z3-highmem-88", (88, 1)),
        ("a3-highgpu-8g", (208, 1)),
        ("c3-standard-192-metal", (192, 1)),
        ("m4-ultramem-224", (224, 1)),
        ("ct5lp-hightpu-4t", (112, 1)),
        ("n2-brandnew-8", (8, 1)),
        ("n2-standard-many", (8, 1)),
        ("n2-standard-8-brandnew", (8, 1)),
        ("n2-custom-4-16384", (8, 16_384)),
        ("n2-custom-2-20480", (2, 20_480)),
        ("n2-custom-2-20480-more", (2, 20_480)),
        ("e2-custom-2-20480-ext", (2, 20_480)),
        ("c2-custom-2-4096", (2, 4_096)),
        ("n2", (8, 1)),
        ("", (8, 1)),
    ] {
        let why = bill(&machine(machine_type, shape)).expect_err("no bill");
        assert_eq!(why, Unpriced::NotKnown { what: "machine type", word: machine_type.to_owned() });
    }
    let why = bill(&{
        let mut one = machine("t2d-standard-4", (4, 16_384));
        google(&mut one).local_ssds = 1;
        google(&mut one).billed.as_mut().expect("bills").local_ssd_gib = Some(375);
        one
    });
    assert!(matches!(why, Err(Unpriced::NotKnown { what: "way to bill local SSDs of", .. })), "{why:?}");
}

#[test]
fn no_name_stands_for_two_parts() {
    let names = series::all_names();
    for (n, name) in names.iter().enumerate() {
        assert!(!names[..n].contains(name), "{name}");
    }
}
