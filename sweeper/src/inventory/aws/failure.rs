//! An SDK error as what a reader can act on.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::inventory::{Failure, FailureKind};

/// Classifies by the error's type and code, never by its text.
pub(crate) fn of<E, R>(error: &SdkError<E, R>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
    R: std::fmt::Debug + 'static,
{
    let kind = match error {
        SdkError::TimeoutError(_) => FailureKind::TimedOut,
        SdkError::ServiceError(service) => service.err().code().map_or(FailureKind::Provider, by_code),
        SdkError::DispatchFailure(_) | SdkError::ConstructionFailure(_) if is_about_credentials(error) => {
            FailureKind::Credentials
        }
        SdkError::DispatchFailure(dispatch) if dispatch.is_timeout() => FailureKind::TimedOut,
        SdkError::DispatchFailure(dispatch) if dispatch.is_io() => FailureKind::Unreachable,
        SdkError::ResponseError(_) => FailureKind::Malformed,
        _ => FailureKind::Provider,
    };
    let message = match error {
        SdkError::ServiceError(service) => match (service.err().code(), service.err().message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => chain(error),
        },
        _ => chain(error),
    };
    Failure { kind, message }
}

/// An error and its causes, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = cause.source();
    }
    text
}

fn is_about_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<CredentialsError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The codes that EC2, STS and the price list use.
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>
fn by_code(code: &str) -> FailureKind {
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "OptInRequired" | "Blocked" => {
            FailureKind::Denied
        }
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "TooManyRequestsException"
        | "EC2ThrottledException" => FailureKind::Throttled,
        "AuthFailure"
        | "InvalidClientTokenId"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException"
        | "InvalidAccessKeyId"
        | "IncompleteSignature"
        | "MissingAuthenticationToken" => FailureKind::Credentials,
        "RequestTimeout" | "RequestTimeoutException" => FailureKind::TimedOut,
        _ => FailureKind::Provider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_what_a_reader_can_do() {
        assert_eq!(by_code("UnauthorizedOperation"), FailureKind::Denied);
        assert_eq!(by_code("RequestLimitExceeded"), FailureKind::Throttled);
        assert_eq!(by_code("AuthFailure"), FailureKind::Credentials);
        assert_eq!(by_code("InternalError"), FailureKind::Provider);
    }

    #[test]
    fn an_error_and_its_causes_stand_in_one_line() {
        let cause = CredentialsError::not_loaded("no file");
        let text = chain(&cause);
        assert!(text.contains("no file") && !text.contains('\n'), "{text}");
    }
}
