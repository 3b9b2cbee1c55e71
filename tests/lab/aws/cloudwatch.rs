//! What CloudWatch is to have measured.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::{ACCOUNT, Moto};

/// Series of instances that are alike.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Of which instances.
    pub ids: Vec<String>,
    /// Begin of the first period.
    pub from: Timestamp,
    /// Length of each period in seconds.
    pub period_s: u32,
    /// `CPUUtilization` in per cent, `NetworkIn` and `NetworkOut` in bytes; a period without a value has no point.
    pub metrics: BTreeMap<String, Vec<Option<f64>>>,
    /// `Forbidden`, `InternalError`, …: metrics that are not answered as complete.
    pub statuses: BTreeMap<String, String>,
}

impl Series {
    /// So many hours from this moment on, all alike: CPU in per cent, network in bytes an hour in each direction.
    #[must_use]
    pub fn steady(ids: &[String], from: Timestamp, hours: usize, cpu: f64, network: f64) -> Self {
        let metric = |name: &str, value: f64| (name.to_owned(), vec![Some(value); hours]);
        Self {
            ids: ids.to_vec(),
            from,
            period_s: 3_600,
            metrics: [metric("CPUUtilization", cpu), metric("NetworkIn", network), metric("NetworkOut", network)]
                .into(),
            statuses: BTreeMap::new(),
        }
    }
}

impl Moto {
    /// Gives instances of the account these series in the place of those that they had.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn measured(&self, region: &str, series: &[Series]) {
        self.post("metrics", json!({"account": ACCOUNT, "region": region, "machines": series})).await;
    }

    /// No page of CloudWatch has more data points than this.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn metrics_page(&self, points: u32) {
        self.post("metrics", json!({"account": ACCOUNT, "region": "", "machines": [], "points": points})).await;
    }
}
