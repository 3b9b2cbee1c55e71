//! What Spot instances cost: asked for once an hour, and as it was last read for a day where it cannot be read.

use super::{Context, SweepError, provider_metrics::At};
use crate::{
    config::PricingSource,
    inventory::{Failure, aws},
    pricing::{Cost, SPOT_GOOD_FOR as GOOD_FOR, SpotChange, SpotKey, Unpriced, in_effect},
    store::KnownSpot,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A price is asked for again after so long: EC2 changes one a few times a day.
const ASKED_EACH: SignedDuration = SignedDuration::from_hours(1);

/// The prices of the Spot instances of one work unit.
#[derive(Debug)]
pub(super) struct SpotPrices {
    now: Timestamp,
    known: BTreeMap<SpotKey, KnownSpot>,
    /// Why they could not be read now.
    failed: Option<Unpriced>,
}

/// Reads what is not known yet, or of more than an hour ago.
pub(super) async fn read(
    context: &Context,
    at: Option<At<'_>>,
    now: Timestamp,
    keys: &BTreeSet<SpotKey>,
) -> Result<SpotPrices, SweepError> {
    let mut prices = SpotPrices { now, known: BTreeMap::new(), failed: None };
    if keys.is_empty() {
        return Ok(prices);
    }
    // Whoever prices by a file, or not at all, has said that nobody is to be asked.
    if context.config.pricing.source != PricingSource::Api {
        prices.failed = Some(Unpriced::Spot);
        return Ok(prices);
    }
    let Context { store, .. } = context;
    prices.known = store.spot_prices(keys).await?;
    let stale: BTreeSet<SpotKey> = keys.iter().filter(|key| !prices.is_of_this_hour(key)).cloned().collect();
    let Some(at) = at.filter(|_| !stale.is_empty()) else { return Ok(prices) };
    match ask(at, &stale).await {
        Ok(changes) => {
            store.put_spot_prices(&changes, now).await?;
            // What EC2 was asked for and does not tell, or tells in two ways, is not known any more, whatever was read before.
            prices.known.retain(|key, _| !stale.contains(key));
            prices.known.extend(changes.into_iter().map(|change| {
                let key = change.key.clone();
                (key, KnownSpot { change, read_at: now })
            }));
        }
        Err(why) => {
            tracing::warn!(prices = stale.len(), %why, "Spot prices cannot be read now; those of the last day are used");
            prices.failed = Some(Unpriced::Source(format!("ec2:DescribeSpotPriceHistory: {why}")));
        }
    }
    Ok(prices)
}

/// The prices in effect.
async fn ask(At { accounts, scope, now }: At<'_>, keys: &BTreeSet<SpotKey>) -> Result<Vec<SpotChange>, Failure> {
    let part = |of: fn(&SpotKey) -> &String| -> Vec<String> {
        keys.iter().map(of).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    };
    let (types, products) = (part(|key| &key.instance_type), part(|key| &key.product));
    let told = aws::spot_history(accounts, scope, (&types, &products), now).await?;
    let changes = told.into_iter().map(|told| SpotChange::told(&scope.account, told)).collect::<Result<Vec<_>, _>>()?;
    let asked: Vec<_> = changes.into_iter().filter(|change| keys.contains(&change.key)).collect();
    // By EC2's clock a change may lie a moment ahead of this one's.
    let now = now.checked_add(SignedDuration::from_mins(5)).unwrap_or(now);
    Ok(in_effect(&asked, now).into_values().collect())
}

impl SpotPrices {
    fn is_of_this_hour(&self, key: &SpotKey) -> bool {
        self.known.get(key).is_some_and(|known| self.now.duration_since(known.read_at) < ASKED_EACH)
    }

    pub(super) fn cost(&self, key: &SpotKey) -> Cost {
        let good = self.known.get(key).filter(|known| self.now.duration_since(known.read_at) <= GOOD_FOR);
        match good {
            Some(known) => {
                let as_of = (!self.is_of_this_hour(key)).then_some(known.read_at);
                Cost::Known { per_hour: known.change.per_hour, as_of }
            }
            None => {
                let why = self.failed.clone().unwrap_or_else(|| Unpriced::NoSpotPrice(key.to_string()));
                Cost::Unknown { why: why.to_string() }
            }
        }
    }
}
