//! `pricing:GetProducts`: one exact key of a machine at a time, usually one page with one row; all types that are
//! billed alike, some ten pages; or the few prices per unit of a region that one
//! attribute tells.

use std::{collections::HashSet, io::Cursor};

use aws_sdk_pricing::{
    Client,
    types::{Filter, FilterType},
};

use super::list::{self, Rows, Wanted};
use crate::{
    inventory::{
        Failure, FailureKind,
        aws::{Session, failure},
    },
    pricing::{PriceKey, PriceList, UnitKey, Unpriced},
};

const PAGE_SIZE: i32 = 100;
/// Whose products instances are.
const EC2: &str = "AmazonEC2";

/// What is asked about prices per unit: service, region, and the attribute that tells them, with its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::pricing) struct UnitQuestion {
    service: &'static str,
    region: String,
    asked_by: (&'static str, &'static str),
}

impl UnitQuestion {
    /// The question that this key is an answer to.
    pub(in crate::pricing) fn of(key: &UnitKey) -> Self {
        let words = key.usage.words();
        Self { service: words.service, region: key.region.clone(), asked_by: words.asked_by }
    }
}

/// Asks for one product of any kind: whether the list may be read at all.
///
/// # Errors
/// Why not.
pub async fn may_ask(session: &Session, region: &str) -> Result<(), Failure> {
    let request = session.pricing(region).get_products().service_code(EC2).format_version("aws_v1").max_results(1);
    request.send().await.map(drop).map_err(|error| failure::of(&error))
}

/// All rows for a machine's key.
pub(in crate::pricing) async fn machine(client: &Client, key: &PriceKey) -> Result<Rows, Unpriced> {
    let filters: [(&str, &str); 7] = [
        ("regionCode", key.region.as_str()),
        ("instanceType", &key.instance_type),
        ("operatingSystem", &key.operating_system),
        ("tenancy", &key.tenancy),
        ("licenseModel", &key.license_model),
        ("preInstalledSw", &key.preinstalled_software),
        ("capacitystatus", &key.capacity_status),
    ];
    products(client, EC2, &filters).await
}

/// All rows of all types that are billed alike.
pub(in crate::pricing) async fn machines(client: &Client, list: &PriceList) -> Result<Rows, Unpriced> {
    let filters: [(&str, &str); 6] = [
        ("regionCode", list.region.as_str()),
        ("operatingSystem", &list.operating_system),
        ("tenancy", &list.tenancy),
        ("licenseModel", &list.license_model),
        ("preInstalledSw", &list.preinstalled_software),
        ("capacitystatus", &list.capacity_status),
    ];
    products(client, EC2, &filters).await
}

/// All rows for a question.
pub(in crate::pricing) async fn units(client: &Client, question: &UnitQuestion) -> Result<Rows, Unpriced> {
    products(client, question.service, &[("regionCode", question.region.as_str()), question.asked_by]).await
}

/// The rows of all products that these attributes fit, over all pages.
async fn products(client: &Client, service: &str, attributes: &[(&str, &str)]) -> Result<Rows, Unpriced> {
    let filters = filters(attributes)?;
    let mut rows = Rows::default();
    let mut seen = HashSet::new();
    let mut token: Option<String> = None;
    loop {
        let page = client
            .get_products()
            .service_code(service)
            .set_filters(Some(filters.clone()))
            .format_version("aws_v1")
            .max_results(PAGE_SIZE)
            .set_next_token(token)
            .send()
            .await
            .map_err(|error| source(&failure::of(&error)))?;
        for product in page.price_list() {
            let product =
                list::read(Cursor::new(product), &Wanted::ALL).map_err(|error| Unpriced::Source(error.to_string()))?;
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

fn filters(attributes: &[(&str, &str)]) -> Result<Vec<Filter>, Unpriced> {
    let filter = |(field, value): &(&str, &str)| {
        let filter = Filter::builder().r#type(FilterType::TermMatch).field(*field).value(*value);
        filter.build().map_err(|error| Unpriced::Source(error.to_string()))
    };
    attributes.iter().map(filter).collect()
}
