//! `pricing:GetProducts`, one exact key at a time: usually one page with one row.

use std::{collections::HashSet, io::Cursor};

use aws_sdk_pricing::{
    Client,
    types::{Filter, FilterType},
};

use super::list;
use crate::{
    inventory::{Failure, FailureKind, aws::failure},
    pricing::{PriceKey, Unpriced, table::Row},
};

const PAGE_SIZE: i32 = 100;

/// All rows for a key, over all pages.
pub(in crate::pricing) async fn rows(client: &Client, key: &PriceKey) -> Result<Vec<Row>, Unpriced> {
    let filters = filters(key)?;
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    let mut token: Option<String> = None;
    loop {
        let page = client
            .get_products()
            .service_code("AmazonEC2")
            .set_filters(Some(filters.clone()))
            .format_version("aws_v1")
            .max_results(PAGE_SIZE)
            .set_next_token(token)
            .send()
            .await
            .map_err(|error| source(&failure::of(&error)))?;
        for product in page.price_list() {
            let product = list::read(Cursor::new(product)).map_err(|error| Unpriced::Source(error.to_string()))?;
            rows.extend(product);
        }
        match page.next_token.filter(|next| !next.is_empty()) {
            None => return Ok(rows),
            Some(next) if seen.insert(next.clone()) => token = Some(next),
            Some(_) => {
                return Err(source(&Failure {
                    kind: FailureKind::Malformed,
                    message: "a page token came twice".to_owned(),
                }));
            }
        }
    }
}

fn source(why: &Failure) -> Unpriced {
    Unpriced::Source(format!("pricing:GetProducts: {why}"))
}

fn filters(key: &PriceKey) -> Result<Vec<Filter>, Unpriced> {
    [
        ("regionCode", &key.region),
        ("instanceType", &key.instance_type),
        ("operatingSystem", &key.operating_system),
        ("tenancy", &key.tenancy),
        ("licenseModel", &key.license_model),
        ("preInstalledSw", &key.preinstalled_software),
        ("capacitystatus", &key.capacity_status),
    ]
    .into_iter()
    .map(|(field, value)| {
        Filter::builder()
            .r#type(FilterType::TermMatch)
            .field(field)
            .value(value)
            .build()
            .map_err(|error| Unpriced::Source(error.to_string()))
    })
    .collect()
}
