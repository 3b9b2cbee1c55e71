//! Names instead of numbers for the enums of a heartbeat that is shown as JSON.

use crate::wire::{CapabilityStatus, Class, Protocol, Source};
use serde::Serializer;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's serialize_with passes a reference")]
pub(crate) fn class<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(Class::try_from(*value).map_or("UNKNOWN", |class| class.as_str_name()))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's serialize_with passes a reference")]
pub(crate) fn source<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(Source::try_from(*value).map_or("UNKNOWN", |source| source.as_str_name()))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's serialize_with passes a reference")]
pub(crate) fn capability_status<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(CapabilityStatus::try_from(*value).map_or("UNKNOWN", |status| status.as_str_name()))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's serialize_with passes a reference")]
pub(crate) fn protocol<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(Protocol::try_from(*value).map_or("UNKNOWN", |protocol| protocol.as_str_name()))
}
