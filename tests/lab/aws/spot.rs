//! What EC2 is to tell of Spot prices.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::Moto;

/// A price from a moment on.
#[derive(Clone, Debug, Serialize)]
pub struct SpotChange {
    /// `us-east-1a`
    pub zone: String,
    /// `m5.large`
    #[serde(rename = "type")]
    pub instance_type: String,
    /// `Linux/UNIX`
    pub product: String,
    /// From when on.
    pub at: Timestamp,
    /// In dollars by the hour, as EC2 writes them: `0.042300`.
    pub price: String,
}

impl SpotChange {
    /// Of Linux.
    #[must_use]
    pub fn new(zone: &str, instance_type: &str, at: Timestamp, price: &str) -> Self {
        Self {
            zone: zone.to_owned(),
            instance_type: instance_type.to_owned(),
            product: "Linux/UNIX".to_owned(),
            at,
            price: price.to_owned(),
        }
    }
}

impl Moto {
    /// Has EC2 tell these changes of an account's region, beside those of before.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn spot_prices(&self, account: &str, region: &str, changes: &[SpotChange]) {
        self.post("spot", json!({"account": account, "region": region, "changes": changes})).await;
    }
}
