//! An offer file of AWS's, in its own form: all products first, with all their attributes, then all terms on demand, then all reserved ones.

use model::{HourlyRate, Provider};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{BufWriter, Write},
};
use sweeper::pricing::PriceKey;

/// The first one is in the file whatever its size.
pub(crate) const REGIONS: [&str; 8] = [
    "eu-central-1",
    "us-east-1",
    "us-east-2",
    "us-west-2",
    "eu-west-1",
    "ap-southeast-1",
    "ap-northeast-1",
    "sa-east-1",
];
/// So many types a region has.
pub(crate) const TYPES: u64 = 900;
const SYSTEMS: [&str; 5] = ["Linux", "Windows", "RHEL", "SUSE", "Ubuntu Pro"];
const TENANCIES: [&str; 3] = ["Shared", "Dedicated", "Host"];
const SOFTWARE: [&str; 4] = ["NA", "SQL Web", "SQL Std", "SQL Ent"];
const STATUSES: [&str; 3] = ["Used", "AllocatedCapacityReservation", "UnusedCapacityReservation"];
/// A GiB and month of gp3 in the first region.
pub(crate) const GP3: &str = "0.0952";

/// What was written.
pub(crate) struct Made {
    pub(crate) products: u64,
    pub(crate) bytes: u64,
}

/// The key of a product.
pub(crate) fn key(number: u64) -> PriceKey {
    let mut left = number / TYPES;
    let mut one_of = |words: &[&'static str]| {
        let count = words.len() as u64;
        let word = words[usize::try_from(left % count).expect("few")];
        left /= count;
        word.to_owned()
    };
    let operating_system = one_of(&SYSTEMS);
    let tenancy = one_of(&TENANCIES);
    let preinstalled_software = one_of(&SOFTWARE);
    let capacity_status = one_of(&STATUSES);
    let region = one_of(&REGIONS);
    // Whatever is beyond all that is of another generation.
    let instance_type = format!("m{left}.{}xlarge", number % TYPES);
    PriceKey {
        provider: Provider::Aws,
        region,
        instance_type,
        operating_system,
        tenancy,
        license_model: "No License required".to_owned(),
        preinstalled_software,
        capacity_status,
    }
}

/// The number of a product of the first list, by its key.
pub(crate) fn number(key: &PriceKey) -> u64 {
    let size = key.instance_type.strip_prefix("m0.").and_then(|size| size.strip_suffix("xlarge"));
    size.and_then(|size| size.parse().ok()).expect("a type of the first generation")
}

/// What it costs: each something else.
pub(crate) fn price(number: u64) -> HourlyRate {
    HourlyRate::from_micros(i64::try_from(10_000 + number).expect("a price"))
}

fn sku(number: u64) -> String {
    format!("SKU{number:013}")
}

/// Writes some so many bytes, with so many reserved terms for each product.
pub(crate) fn write(file: &File, bytes: u64, offers: u32) -> Made {
    let one = [product(0), on_demand(0), reserved(0, offers)]
        .iter()
        .map(|part| part.to_string().len() as u64 + 20)
        .sum::<u64>();
    let products = (bytes / one).max(1);
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut put = |text: &str| out.write_all(text.as_bytes()).expect("the file can be written");
    put(
        r#"{"formatVersion":"v1.0","disclaimer":"made up","offerCode":"AmazonEC2","version":"20260720134430","publicationDate":"2026-07-20T13:44:30Z","#,
    );
    put(&format!(r#""products":{{"VOLUME":{}"#, volume()));
    let each = |put: &mut dyn FnMut(&str), part: &dyn Fn(u64) -> Value| {
        (0..products).for_each(|number| put(&format!(",\"{}\":{}", sku(number), part(number))));
    };
    each(&mut put, &product);
    put(&format!(r#"}},"terms":{{"OnDemand":{{"VOLUME":{}"#, term("VOLUME", ON_DEMAND, "GB-Mo", GP3)));
    each(&mut put, &on_demand);
    put(r#"},"Reserved":{"NONE":{}"#);
    each(&mut put, &|number| reserved(number, offers));
    put(r#"}},"attributesList":{}}"#);
    out.flush().expect("the file can be written");
    Made { products, bytes: file.metadata().expect("a file").len() }
}

fn product(number: u64) -> Value {
    let key = key(number);
    json!({"sku": sku(number), "productFamily": "Compute Instance", "attributes": {
        "servicecode": "AmazonEC2", "location": "a place", "locationType": "AWS Region", "instanceType": key.instance_type, "currentGeneration": "Yes",
        "instanceFamily": "General purpose", "vcpu": "2", "physicalProcessor": "Intel Xeon Platinum 8175 (Skylake)", "clockSpeed": "3.1 GHz", "memory": "8 GiB",
        "storage": "EBS only", "networkPerformance": "Up to 10 Gigabit", "processorArchitecture": "64-bit", "tenancy": key.tenancy,
        "operatingSystem": key.operating_system, "licenseModel": key.license_model, "usagetype": "BoxUsage", "operation": "RunInstances",
        "availabilityzone": "NA", "capacitystatus": key.capacity_status, "classicnetworkingsupport": "false", "dedicatedEbsThroughput": "Up to 2120 Mbps",
        "ecu": "10", "enhancedNetworkingSupported": "Yes", "gpuMemory": "NA", "intelAvxAvailable": "Yes", "intelAvx2Available": "Yes",
        "intelTurboAvailable": "Yes", "marketoption": "OnDemand", "normalizationSizeFactor": "4", "preInstalledSw": key.preinstalled_software,
        "processorFeatures": "Intel AVX; Intel AVX2; Intel AVX512; Intel Turbo", "regionCode": key.region, "servicename": "Amazon Elastic Compute Cloud",
        "vpcnetworkingsupport": "true",
    }})
}

fn volume() -> Value {
    json!({"sku": "VOLUME", "productFamily": "Storage", "attributes": {
        "servicecode": "AmazonEC2", "location": "EU (Frankfurt)", "locationType": "AWS Region", "storageMedia": "SSD-backed", "volumeType": "General Purpose",
        "usagetype": "EUC1-EBS:VolumeUsage.gp3", "operation": "", "regionCode": REGIONS[0], "volumeApiName": "gp3",
    }})
}

const ON_DEMAND: &str = "JRTCKXETXF";

fn on_demand(number: u64) -> Value {
    let micros = price(number).per_hour().micros();
    term(&sku(number), ON_DEMAND, "Hrs", &format!("{}.{:06}0000", micros / 1_000_000, micros % 1_000_000))
}

fn reserved(number: u64, offers: u32) -> Value {
    let of = sku(number);
    let mut all = serde_json::Map::new();
    for offer in 0..offers {
        if let Value::Object(one) = term(&of, &format!("RESERVED{offer:02}"), "Quantity", "294") {
            all.extend(one);
        }
    }
    all.into()
}

fn term(sku: &str, offer: &str, unit: &str, usd: &str) -> Value {
    let code = format!("{sku}.{offer}");
    let rate = format!("{code}.6YS6EN2CT7");
    json!({code: {
        "offerTermCode": offer, "sku": sku, "effectiveDate": "2026-07-01T00:00:00Z",
        "priceDimensions": {rate.clone(): {
            "rateCode": rate, "description": "so many dollars for an hour of this", "beginRange": "0", "endRange": "Inf", "unit": unit,
            "pricePerUnit": {"USD": usd}, "appliesTo": [],
        }},
        "termAttributes": {"LeaseContractLength": "1yr", "OfferingClass": "standard", "PurchaseOption": "No Upfront"},
    }})
}
