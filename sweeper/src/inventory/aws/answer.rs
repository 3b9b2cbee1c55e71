//! The answer of a call as it came.
//!
//! The SDK's own form of an answer cannot say which facts were left out: it fills in 0, `false`, an empty text or an empty list for what
//! a service's model calls required, and ECS's numbers and switches have no *none* at all. So where that matters the answer itself is read.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_ec2::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::AfterDeserializationInterceptorContextRef},
    error::BoxError,
};
use serde::de::DeserializeOwned;

use crate::inventory::reader::Refused;

/// Keeps the answer of one call, for whoever put it on that call.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer(Arc<Mutex<Vec<u8>>>);

impl Answer {
    /// The answer's bytes.
    pub(super) fn body(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An answer in JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::from_slice(&body).map_err(|error| Refused::malformed(crate::chain(&error)))
    }
}

impl Intercept for Answer {
    fn name(&self) -> &'static str {
        "Answer"
    }

    /// Of several attempts the last one stays.
    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response().body().bytes().unwrap_or_default();
        body.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}
