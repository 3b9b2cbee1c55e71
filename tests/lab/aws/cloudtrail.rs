//! Who is to have started machines and submitted jobs.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{ACCOUNT, Moto};

/// One call of `RunInstances` or `SubmitJob` that CloudTrail saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Launch {
    /// When.
    pub at: Timestamp,
    /// What it started.
    pub instances: Vec<String>,
    /// Id of the job that it submitted, in the place of these.
    pub job: Option<String>,
    /// Who called, as CloudTrail's records have it.
    pub user_identity: Value,
    /// Why it failed, if it did.
    pub error_code: Option<String>,
    /// Where from: an address, or a service's name.
    pub source: Option<String>,
    /// In the place of the whole record.
    pub raw: Option<String>,
}

impl Launch {
    /// A call of this principal that started these instances.
    #[must_use]
    pub fn by(user_identity: Value, at: Timestamp, instances: &[String]) -> Self {
        Self { at, instances: instances.to_vec(), user_identity, ..Self::default() }
    }

    /// A call of this principal that submitted this job.
    #[must_use]
    pub fn of_job(user_identity: Value, at: Timestamp, job: &str) -> Self {
        Self { at, job: Some(job.to_owned()), user_identity, ..Self::default() }
    }
}

impl Moto {
    /// Adds events to the account's trail.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn launched(&self, region: &str, launches: &[Launch]) {
        self.post("launches", json!({"account": ACCOUNT, "region": region, "launches": launches})).await;
    }
}
