//! What Spot instances cost in one region. Needs `ec2:DescribeSpotPriceHistory`, where there are any; a call for each hundred types, and for each further thousand changes.

use aws_sdk_ec2::{
    primitives::DateTime,
    types::{Filter, SpotPrice},
};
use jiff::Timestamp;

use super::{Accounts, collect::list};
use crate::inventory::{
    Failure, Scope,
    reader::{Api, Refused},
};

const HISTORY: Api = Api::ec2("ec2:DescribeSpotPriceHistory");
/// Half of what a filter takes, as of types.
const NAMES: usize = 100;
const PAGE: i32 = 1_000;

/// A price from a moment on, as EC2 tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotTold {
    /// `eu-central-1a`
    pub zone: String,
    /// `m5.large`
    pub instance_type: String,
    /// `Linux/UNIX`
    pub product: String,
    /// From when on.
    pub at: Timestamp,
    /// In dollars by the hour: `0.042300`.
    pub price: String,
}

/// The changes of the prices of these types and products since a moment, and the last one before it of each, in all zones of the region. None if the account is not open here.
///
/// # Errors
/// If they cannot be read; half of them are never given.
pub async fn spot_history(
    accounts: &Accounts,
    scope: &Scope,
    (types, products): (&[String], &[String]),
    since: Timestamp,
) -> Result<Vec<SpotTold>, Failure> {
    let Some(place) = accounts.place(scope) else { return Ok(Vec::new()) };
    let mut changes = Vec::new();
    for types in types.chunks(NAMES) {
        let read = place.pages(
            HISTORY,
            |_| (),
            |token| {
                let filter = |name: &str, values: &[String]| {
                    Filter::builder().name(name).set_values(Some(values.to_vec())).build()
                };
                let request = place.ec2().describe_spot_price_history().max_results(PAGE).set_next_token(token);
                let request = request.start_time(DateTime::from_millis(since.as_millisecond()));
                let request = request.filters(filter("instance-type", types));
                let request = request.filters(filter("product-description", products));
                async move {
                    let page = request.send().await?;
                    let told: Result<Vec<_>, _> =
                        list(page.spot_price_history, "Spot prices")?.iter().map(change).collect();
                    Ok((told.map_err(Refused::malformed)?, page.next_token))
                }
            },
        );
        changes.extend(read.await?);
    }
    Ok(changes)
}

fn change(told: &SpotPrice) -> Result<SpotTold, String> {
    let missing = |what: &str| format!("a Spot price has no {what}");
    let at = told.timestamp().ok_or_else(|| missing("time"))?.to_millis().map_err(|error| error.to_string())?;
    Ok(SpotTold {
        zone: told.availability_zone().ok_or_else(|| missing("zone"))?.to_owned(),
        instance_type: told.instance_type().ok_or_else(|| missing("type"))?.as_str().to_owned(),
        product: told.product_description().ok_or_else(|| missing("product"))?.as_str().to_owned(),
        at: Timestamp::from_millisecond(at).map_err(|error| error.to_string())?,
        price: told.spot_price().ok_or_else(|| missing("price"))?.to_owned(),
    })
}
