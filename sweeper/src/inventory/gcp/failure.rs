//! An error of Google's clients as what a reader can act on, and as what a repetition would have to change.

use google_cloud_gax::error::{Error, rpc::StatusDetails};

use crate::{
    chain,
    inventory::{
        Failure, FailureKind,
        reader::{Refused, Remedy},
    },
};

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let (kind, remedy) = meaning(&error);
        let message = match error.status() {
            Some(status) => {
                let reason = reasons(&error).next().map_or_else(String::new, |reason| format!("{reason}: "));
                format!("{reason}{}", status.message)
            }
            None => chain(&error),
        };
        Self { why: Failure { kind, message }, remedy }
    }
}

/// By the error's type, reason and status, never by its text.
fn meaning(error: &Error) -> (FailureKind, Remedy) {
    if error.is_timeout() || error.is_exhausted() {
        return (FailureKind::TimedOut, Remedy::Again);
    }
    if error.is_authentication() {
        return (FailureKind::Credentials, Remedy::None);
    }
    // A page that is cut off looks the same as one that nobody understands.
    if error.is_deserialization() {
        return (FailureKind::Malformed, Remedy::Again);
    }
    if let Some(status) = error.http_status_code() {
        let too_many = status == 403 && reasons(error).any(is_rate);
        return if too_many { (FailureKind::Throttled, Remedy::Slower) } else { by_status(status) };
    }
    if error.is_connect() || error.is_io() || error.is_transport() {
        return (FailureKind::Unreachable, Remedy::Again);
    }
    (FailureKind::Provider, Remedy::None)
}

fn reasons(error: &Error) -> impl Iterator<Item = &str> {
    let details = error.status().map_or(&[][..], |status| status.details.as_slice());
    details.iter().filter_map(|detail| match detail {
        StatusDetails::ErrorInfo(info) if !info.reason.is_empty() => Some(info.reason.as_str()),
        _ => None,
    })
}

/// Compute Engine refuses too many calls with 403, as it does what is not allowed.
/// <https://docs.cloud.google.com/compute/docs/api-rate-limits>
fn is_rate(reason: &str) -> bool {
    matches!(reason, "rateLimitExceeded" | "userRateLimitExceeded" | "RATE_LIMIT_EXCEEDED" | "dailyLimitExceeded")
}

fn by_status(status: u16) -> (FailureKind, Remedy) {
    match status {
        // A page token that is too old is an invalid value, and has no word of its own.
        400 => (FailureKind::Provider, Remedy::NewList),
        401 => (FailureKind::Credentials, Remedy::NewCredentials),
        403 => (FailureKind::Denied, Remedy::None),
        408 | 504 => (FailureKind::TimedOut, Remedy::Again),
        429 => (FailureKind::Throttled, Remedy::Slower),
        500.. => (FailureKind::Provider, Remedy::Again),
        _ => (FailureKind::Provider, Remedy::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use google_cloud_gax::error::rpc::Status;

    fn of(status: u16, reason: &str) -> (FailureKind, Remedy) {
        let told = serde_json::json!({"error": {"code": status, "message": "no", "status": "PERMISSION_DENIED",
            "errors": [{"message": "no", "domain": "usageLimits", "reason": reason}]}});
        let payload = axum::body::Bytes::from(told.to_string());
        let parsed = Status::try_from(&payload).expect("a status");
        meaning(&Error::service_full(parsed, Some(status), None, None))
    }

    #[test]
    fn statuses_and_reasons_tell_what_a_reader_can_do() {
        for (status, reason, meaning) in [
            (403, "forbidden", (FailureKind::Denied, Remedy::None)),
            (403, "rateLimitExceeded", (FailureKind::Throttled, Remedy::Slower)),
            (429, "brandNew", (FailureKind::Throttled, Remedy::Slower)),
            (401, "authError", (FailureKind::Credentials, Remedy::NewCredentials)),
            (400, "invalid", (FailureKind::Provider, Remedy::NewList)),
            (503, "backendError", (FailureKind::Provider, Remedy::Again)),
            (404, "notFound", (FailureKind::Provider, Remedy::None)),
        ] {
            assert_eq!(of(status, reason), meaning, "{status} {reason}");
        }
    }

    #[test]
    fn no_answer_in_time_is_tried_again() {
        assert_eq!(meaning(&Error::timeout("late")), (FailureKind::TimedOut, Remedy::Again));
        assert_eq!(meaning(&Error::io("cut off")), (FailureKind::Unreachable, Remedy::Again));
    }
}
