//! Jobs of AWS Batch, and where they run, of the scenario's making.

use serde_json::{Value, json};

use super::{ACCOUNT, Moto};

impl Moto {
    /// Puts environments, queues, jobs, clusters, tasks and container instances into the table that Batch and ECS are answered from, as
    /// `batch.py` takes them; what has a known id takes the place of what had it.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn batch(&self, region: &str, put: Value) {
        self.post("batch", json!({"account": ACCOUNT, "region": region, "put": put})).await;
    }
}
