//! An SDK error as what a reader can act on, and as what a repetition would have to change.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::{config::http::HttpResponse, error::SdkError};
use aws_sdk_sts::operation::assume_role::AssumeRoleError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::{
    chain,
    inventory::{
        Failure, FailureKind,
        reader::{Refused, Remedy},
    },
};

impl<E> From<SdkError<E, HttpResponse>> for Refused
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        refused(&error)
    }
}

/// Why a call failed, by the error's type and code, never by its text.
pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    refused(error).why
}

/// Why there are no credentials. A role that may not be assumed is told apart by what STS says of it.
pub(super) fn of_credentials(error: &CredentialsError) -> Failure {
    match find::<SdkError<AssumeRoleError, HttpResponse>>(error) {
        Some(refusal @ SdkError::ServiceError(_)) => of(refusal),
        Some(refusal @ (SdkError::TimeoutError(_) | SdkError::DispatchFailure(_)))
            if find::<CredentialsError>(refusal).is_none() =>
        {
            of(refusal)
        }
        _ => Failure { kind: FailureKind::Credentials, message: chain(error) },
    }
}

fn refused<E>(error: &SdkError<E, HttpResponse>) -> Refused
where
    E: ProvideErrorMetadata + Error + 'static,
{
    if let SdkError::DispatchFailure(_) | SdkError::ConstructionFailure(_) = error
        && let Some(cause) = find::<CredentialsError>(error)
    {
        return Refused { why: of_credentials(cause), remedy: Remedy::None };
    }
    let (kind, remedy) = match error {
        SdkError::TimeoutError(_) => (FailureKind::TimedOut, Remedy::Again),
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            service.err().code().and_then(by_code).unwrap_or_else(|| by_status(status))
        }
        SdkError::DispatchFailure(dispatch) if dispatch.is_timeout() => (FailureKind::TimedOut, Remedy::Again),
        SdkError::DispatchFailure(dispatch) if dispatch.is_io() => (FailureKind::Unreachable, Remedy::Again),
        // An answer that is cut off looks the same as one that nobody understands.
        SdkError::ResponseError(_) => (FailureKind::Malformed, Remedy::Again),
        _ => (FailureKind::Provider, Remedy::None),
    };
    let message = match error {
        SdkError::ServiceError(service) => match (service.err().code(), service.err().message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => chain(error),
        },
        _ => chain(error),
    };
    Refused { why: Failure { kind, message }, remedy }
}

/// The first of an error and its causes that is of this type.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The codes that EC2, Auto Scaling, Batch, ECS, STS and the price list use; none for one that is not known here.
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>
fn by_code(code: &str) -> Option<(FailureKind, Remedy)> {
    Some(match code {
        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "UnauthorizedAccess"
        | "NotAuthorized"
        | "OperationNotPermitted"
        | "OperationNotPermittedException"
        | "OptInRequired"
        | "RegionDisabledException"
        | "Blocked" => (FailureKind::Denied, Remedy::None),
        "RequestLimitExceeded"
        | "Throttling"
        | "Throttling.RateExceeded"
        | "RateExceeded"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "SlowDown"
        | "EC2ThrottledException" => (FailureKind::Throttled, Remedy::Slower),
        // EC2 says RequestExpired of a session's credentials as well as of a signature that came late.
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" | "TokenRefreshRequired" => {
            (FailureKind::Credentials, Remedy::NewCredentials)
        }
        "AuthFailure"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException"
        | "InvalidAccessKeyId"
        | "IncompleteSignature"
        | "MissingAuthenticationToken" => (FailureKind::Credentials, Remedy::None),
        // EC2 says InvalidParameterValue of a page token that it does not take, and of much else.
        "InvalidNextToken"
        | "InvalidNextTokenException"
        | "ExpiredNextTokenException"
        | "InvalidPaginationToken"
        | "InvalidPaginationTokenException"
        | "ExpiredPaginationTokenException"
        | "InvalidParameterValue"
        // Batch and ECS say these of a page token that they do not take, and of much else.
        | "ClientException"
        | "InvalidParameterException" => (FailureKind::Provider, Remedy::NewList),
        "RequestTimeout" | "RequestTimeoutException" => (FailureKind::TimedOut, Remedy::Again),
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "InternalServiceError"
        | "ServerException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException"
        | "Unavailable" => (FailureKind::Provider, Remedy::Again),
        // What a caller did wrong stays wrong.
        "ClusterNotFoundException" | "ValidationError" | "ValidationException" => {
            (FailureKind::Provider, Remedy::None)
        }
        _ => return None,
    })
}

/// A code of a later day: its status says whose fault it is.
fn by_status(status: u16) -> (FailureKind, Remedy) {
    match status {
        // Not refused, and yet not to be read: the SDK calls it an error of the service where the answer is JSON or CBOR. Cut off, perhaps.
        200..300 => (FailureKind::Malformed, Remedy::Again),
        401 | 403 => (FailureKind::Denied, Remedy::None),
        429 => (FailureKind::Throttled, Remedy::Slower),
        500.. => (FailureKind::Provider, Remedy::Again),
        _ => (FailureKind::Provider, Remedy::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_what_a_reader_can_do() {
        for (code, meaning) in [
            ("UnauthorizedOperation", (FailureKind::Denied, Remedy::None)),
            ("OperationNotPermittedException", (FailureKind::Denied, Remedy::None)),
            ("RequestLimitExceeded", (FailureKind::Throttled, Remedy::Slower)),
            ("Throttling.RateExceeded", (FailureKind::Throttled, Remedy::Slower)),
            ("AuthFailure", (FailureKind::Credentials, Remedy::None)),
            ("ExpiredToken", (FailureKind::Credentials, Remedy::NewCredentials)),
            ("RequestExpired", (FailureKind::Credentials, Remedy::NewCredentials)),
            ("InvalidNextToken", (FailureKind::Provider, Remedy::NewList)),
            ("InvalidParameterValue", (FailureKind::Provider, Remedy::NewList)),
            ("InternalError", (FailureKind::Provider, Remedy::Again)),
            ("ServerException", (FailureKind::Provider, Remedy::Again)),
            ("ClientException", (FailureKind::Provider, Remedy::NewList)),
            ("InvalidParameterException", (FailureKind::Provider, Remedy::NewList)),
            ("ClusterNotFoundException", (FailureKind::Provider, Remedy::None)),
        ] {
            assert_eq!(by_code(code), Some(meaning), "{code}");
        }
        assert_eq!(by_code("brand-new"), None);
        assert_eq!(by_status(503), (FailureKind::Provider, Remedy::Again));
        assert_eq!(by_status(400), (FailureKind::Provider, Remedy::None));
        assert_eq!(by_status(200), (FailureKind::Malformed, Remedy::Again), "an answer that nobody understands");
    }
}
