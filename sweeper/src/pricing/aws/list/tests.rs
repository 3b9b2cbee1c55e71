use model::Provider;
use serde_json::{Value, json};

use super::*;
use crate::pricing::{PriceTable, UnitTable, Unpriced, Usage};

fn attributes(instance_type: &str) -> Value {
    json!({
        "regionCode": "us-east-1", "location": "US East (N. Virginia)", "locationType": "AWS Region",
        "instanceType": instance_type, "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
        "licenseModel": "No License required", "capacitystatus": "Used", "marketoption": "OnDemand",
        "operation": "RunInstances", "vcpu": "2"
    })
}

fn terms(sku: &str, unit: &str, price: &Value) -> Value {
    let code = format!("{sku}.JRTCKXETXF");
    json!({ code.clone(): {
        "offerTermCode": "JRTCKXETXF", "sku": sku, "effectiveDate": "2026-07-01T00:00:00Z", "termAttributes": {},
        "priceDimensions": { format!("{code}.6YS6EN2CT7"): {
            "unit": unit, "beginRange": "0", "endRange": "Inf", "appliesTo": [], "description": "",
            "rateCode": format!("{code}.6YS6EN2CT7"), "pricePerUnit": price
        }}
    }})
}

fn product(sku: &str, price: &str) -> Value {
    json!({
        "product": {"productFamily": "Compute Instance", "sku": sku, "attributes": attributes("m5.large")},
        "serviceCode": "AmazonEC2", "version": "1", "publicationDate": "2026-07-20T13:44:30Z",
        "terms": {
            "OnDemand": terms(sku, "Hrs", &json!({"USD": price})),
            "Reserved": terms(sku, "Quantity", &json!({"USD": "294"}))
        }
    })
}

fn key() -> PriceKey {
    PriceKey {
        provider: Provider::Aws,
        region: "us-east-1".into(),
        instance_type: "m5.large".into(),
        operating_system: "Linux".into(),
        tenancy: "Shared".into(),
        license_model: "No License required".into(),
        preinstalled_software: "NA".into(),
        capacity_status: "Used".into(),
    }
}

fn price(text: &str) -> Result<String, Unpriced> {
    let mut table = PriceTable::default();
    read(text.as_bytes(), &Wanted::ALL).expect("a price list").machines.into_iter().for_each(|row| table.add(row));
    table.on_demand(&key()).map(|rate| rate.to_string())
}

fn at(value: &mut Value, path: &str) -> Value {
    value.pointer_mut(path).expect("the path").take()
}

#[test]
fn one_product_per_line() {
    let other = {
        let mut other = product("B", "0.2");
        other["product"]["attributes"] = attributes("m5.xlarge");
        other
    };
    assert_eq!(price(&format!("{}\n{other}\n", product("A", "0.0960000000"))).as_deref(), Ok("$0.096/h"));
}

#[test]
fn the_whole_answer_of_the_command_line_tool() {
    let answer = json!({"FormatVersion": "aws_v1", "PriceList": [product("A", "0.096").to_string()]});
    assert_eq!(price(&answer.to_string()).as_deref(), Ok("$0.096/h"));
}

#[test]
fn a_regions_offer_file() {
    let offer = json!({
        "formatVersion": "v1.0", "offerCode": "AmazonEC2", "version": "1", "disclaimer": "",
        "products": {
            "A": {"sku": "A", "productFamily": "Compute Instance", "attributes": attributes("m5.large")},
            "S": {"sku": "S", "productFamily": "Storage", "attributes": {"volumeType": "General Purpose"}}
        },
        "terms": {
            "OnDemand": {
                "A": terms("A", "Hrs", &json!({"USD": "0.0960000000"})),
                "S": terms("S", "GB-Mo", &json!({"USD": "0.1"}))
            },
            "Reserved": {"A": terms("A", "Quantity", &json!({"USD": "294"}))}
        },
        "attributesList": {}
    });
    assert_eq!(price(&offer.to_string()).as_deref(), Ok("$0.096/h"));
}

#[test]
fn an_offer_files_terms_may_come_before_its_products() {
    let terms = json!({"OnDemand": {"A": terms("A", "Hrs", &json!({"USD": "0.096"}))}});
    let products =
        json!({"A": {"sku": "A", "productFamily": "Compute Instance", "attributes": attributes("m5.large")}});
    assert_eq!(price(&format!("{{\"terms\":{terms},\"products\":{products}}}")).as_deref(), Ok("$0.096/h"));
    assert_eq!(price(&format!("{{\"products\":{products},\"terms\":{terms}}}")).as_deref(), Ok("$0.096/h"));
    let without = price(&json!({"products": products}).to_string());
    assert!(matches!(without, Err(Unpriced::Row { why, .. }) if why == "it has 0 on-demand terms"));
}

#[test]
fn a_row_that_nobody_asks_for_is_not_kept() {
    let all = format!("{}{}", product("A", "0.096"), gp3());
    let asked = |machines: bool, units: bool| {
        let wanted = Wanted { machines: &|_| machines, units: &|_| units };
        let rows = read(all.as_bytes(), &wanted).expect("a price list");
        (rows.machines.len(), rows.units.len())
    };
    assert_eq!([asked(true, true), asked(true, false), asked(false, true)], [(1, 1), (1, 0), (0, 1)]);
    let offer =
        json!({"products": {"A": product("A", "1")["product"]}, "terms": {"OnDemand": {"A": {"not": "a term"}}}});
    let none = read(offer.to_string().as_bytes(), &Wanted { machines: &|_| false, units: &|_| true });
    assert!(none.is_ok_and(|rows| rows.machines.is_empty()), "what is not asked for is passed over");
    assert!(read(offer.to_string().as_bytes(), &Wanted::ALL).is_err());
}

#[test]
fn rows_of_other_markets_and_families_are_no_rivals() {
    let mut block = product("B", "0.01");
    block["product"]["attributes"]["marketoption"] = json!("CapacityBlock");
    let mut host = product("C", "3");
    host["product"]["productFamily"] = json!("Dedicated Host");
    assert_eq!(price(&format!("{}{block}{host}", product("A", "0.096"))).as_deref(), Ok("$0.096/h"));
}

#[test]
fn a_row_that_differs_in_any_part_of_the_key_is_not_the_row() {
    for part in
        ["regionCode", "instanceType", "operatingSystem", "tenancy", "licenseModel", "preInstalledSw", "capacitystatus"]
    {
        let mut other = product("A", "0.096");
        other["product"]["attributes"][part] = json!("something else");
        assert_eq!(price(&other.to_string()), Err(Unpriced::NoRow(key().to_string())), "{part}");
        at(&mut other, &format!("/product/attributes/{part}"));
        assert_eq!(price(&other.to_string()), Err(Unpriced::NoRow(key().to_string())), "no {part}");
    }
}

#[test]
fn two_different_rows_are_ambiguous_and_the_same_row_twice_is_not() {
    let (one, two) = (product("A", "0.096"), product("B", "0.095"));
    assert_eq!(price(&format!("{one}{one}")).as_deref(), Ok("$0.096/h"));
    assert_eq!(price(&format!("{one}{two}")), Err(Unpriced::Ambiguous { key: key().to_string(), rows: 2 }));
}

#[test]
fn a_row_without_one_hourly_price_in_usd_says_why() {
    let refused = |product: Value| match price(&product.to_string()) {
        Err(Unpriced::Row { sku, why }) if sku == "A" => why,
        other => panic!("{other:?}"),
    };
    let with_terms = |terms: Value| {
        let mut product = product("A", "0");
        product["terms"]["OnDemand"] = terms;
        refused(product)
    };
    assert_eq!(refused(product("A", "0.0000000000")), "its price is zero, so it is billed elsewhere");
    assert!(refused(product("A", "cheap")).contains("`cheap` is not an amount"));
    assert_eq!(with_terms(json!({})), "it has 0 on-demand terms");
    assert_eq!(with_terms(terms("A", "Hrs", &json!({"CNY": "0.7"}))), "its price is in CNY, not in USD");
    assert_eq!(with_terms(terms("A", "Quantity", &json!({"USD": "1"}))), "its price is per `Quantity`, not per hour");
    let mut two = terms("A", "Hrs", &json!({"USD": "1"}));
    two["A.SECOND"] = two["A.JRTCKXETXF"].clone();
    assert_eq!(with_terms(two), "it has 2 on-demand terms");
}

#[test]
fn what_is_not_a_price_list_is_an_error_not_an_empty_list() {
    let twice = r#"{"products": {}, "PriceList": []}"#;
    for text in ["{}", "[]", "nothing", r#"{"product": 1}"#, r#"{"PriceList": ["{}"]}"#, r#"{"products": {"#, twice] {
        assert!(read(text.as_bytes(), &Wanted::ALL).is_err(), "{text}");
    }
    assert!(read(&b""[..], &Wanted::ALL).is_ok_and(|rows| rows.machines.is_empty() && rows.units.is_empty()));
}

/// A row of a usage as the price list has it: its family, its attributes, its unit and its price.
fn usage(usage_type: &str, family: Option<&str>, attributes: &Value, unit: &str, price: &str) -> Value {
    let mut all = json!({
        "regionCode": "eu-central-1", "location": "EU (Frankfurt)", "locationType": "AWS Region",
        "servicecode": "AmazonEC2", "operation": "", "usagetype": usage_type
    });
    let said = attributes.as_object().expect("attributes").clone();
    all.as_object_mut().expect("attributes").extend(said);
    let mut product = json!({"sku": usage_type, "attributes": all});
    if let Some(family) = family {
        product["productFamily"] = json!(family);
    }
    json!({
        "product": product, "serviceCode": all["servicecode"], "version": "1", "publicationDate": "2026-07-20T13:44:30Z",
        "terms": {"OnDemand": terms(usage_type, unit, &json!({"USD": price}))}
    })
}

fn gp3() -> Value {
    let attributes = json!({"volumeApiName": "gp3", "volumeType": "General Purpose", "storageMedia": "SSD-backed"});
    usage("EUC1-EBS:VolumeUsage.gp3", Some("Storage"), &attributes, "GB-Mo", "0.0952000000")
}

fn unit_price(usage: Usage, text: &str) -> Result<String, Unpriced> {
    let mut table = UnitTable::default();
    read(text.as_bytes(), &Wanted::ALL).expect("a price list").units.into_iter().for_each(|row| table.add(row));
    table.on_demand(&unit_key(usage)).map(|price| price.to_string())
}

fn unit_key(usage: Usage) -> UnitKey {
    UnitKey { provider: Provider::Aws, region: "eu-central-1".into(), usage }
}

#[test]
fn prices_per_unit_are_read_as_each_product_states_them() {
    let io2 = json!({"volumeApiName": "io2", "group": "EBS IOPS Tier 2"});
    let address = json!({"servicecode": "AmazonVPC", "group": "VPCPublicIPv4Address"});
    let of_gp3 = json!({"volumeApiName": "gp3"});
    let throughput = Some("Provisioned Throughput");
    let list = [
        gp3(),
        usage("EUC1-EBS:VolumeP-IOPS.io2.tier2", Some("System Operation"), &io2, "IOPS-Mo", "0.0518000000"),
        usage("EUC1-EBS:VolumeP-Throughput.gp3", throughput, &of_gp3, "GiBps-mo", "48.7424000000"),
        usage("EUC1-EBS:SnapshotUsage", Some("Storage Snapshot"), &json!({}), "GB-Mo", "0.0540000000"),
        usage("EUC1-EBS:SnapshotArchiveStorage", Some("Storage Snapshot"), &json!({}), "GB-Mo", "0.0000000001"),
        usage("EUC1-PublicIPv4:IdleAddress", None, &address, "Hrs", "0.0050000000"),
    ];
    let text: String = list.iter().map(Value::to_string).collect();
    for (usage, price) in [
        (Usage::Gp3, "$0.0952"),
        (Usage::Io2IopsTier2, "$0.0518"),
        (Usage::Gp3Throughput, "$48.7424"),
        (Usage::Snapshot, "$0.054"),
        (Usage::SnapshotArchive, "$0.0000000001"),
        (Usage::AddressIdle, "$0.005"),
    ] {
        assert_eq!(unit_price(usage, &text).as_deref(), Ok(price));
    }
    assert_eq!(unit_price(Usage::Gp2, &text), Err(Unpriced::NoRow("EBS:VolumeUsage.gp2 in eu-central-1".into())));
    // They are in a region's offer file, too.
    let terms = terms("G", "GB-Mo", &json!({"USD": "0.1"}));
    let mut offer = json!({"products": {"G": gp3()["product"]}, "terms": {"OnDemand": {"G": terms}}});
    offer["products"]["G"]["sku"] = json!("G");
    assert_eq!(unit_price(Usage::Gp3, &offer.to_string()).as_deref(), Ok("$0.10"));
}

#[test]
fn a_row_that_differs_in_any_part_of_its_key_has_no_price_for_it() {
    for part in ["regionCode", "servicecode", "usagetype", "volumeApiName"] {
        let mut other = gp3();
        other["product"]["attributes"][part] = json!("something else");
        assert!(matches!(unit_price(Usage::Gp3, &other.to_string()), Err(Unpriced::NoRow(_))), "{part}");
        at(&mut other, &format!("/product/attributes/{part}"));
        assert!(matches!(unit_price(Usage::Gp3, &other.to_string()), Err(Unpriced::NoRow(_))), "no {part}");
    }
    let mut outposts = gp3();
    outposts["product"]["attributes"]["locationType"] = json!("AWS Outposts");
    assert!(matches!(unit_price(Usage::Gp3, &outposts.to_string()), Err(Unpriced::NoRow(_))));
    let mut twice = gp3();
    twice["product"]["sku"] = json!("another");
    let both = format!("{}{twice}", gp3());
    assert!(matches!(unit_price(Usage::Gp3, &both), Err(Unpriced::Ambiguous { rows: 2, .. })));
}

#[test]
fn a_row_without_one_price_per_its_unit_says_why() {
    let refused = |unit: &str, price: &str| {
        let attributes = json!({"volumeApiName": "gp3"});
        let row = usage("EUC1-EBS:VolumeUsage.gp3", Some("Storage"), &attributes, unit, price);
        match unit_price(Usage::Gp3, &row.to_string()) {
            Err(Unpriced::Row { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused("GB-Mo", "0.0000000000"), "its price is zero, so it is billed elsewhere");
    assert!(refused("GB-Mo", "0.00000000001").contains("more than ten decimals"));
    assert_eq!(refused("GB-Hrs", "0.1"), "its price is per `GB-Hrs`, not per `GB-Mo` or `GB-month`");
}
