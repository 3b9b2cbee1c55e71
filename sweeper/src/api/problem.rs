//! Every way in which a request is refused, as an RFC 9457 problem with a stable word for programs.
//!
//! A refusal is made where the fault is found and travels up as a value; counting and logging it is done once, in `observe`.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use heartbeat::{
    NodeId,
    api::{PROBLEM_TYPE, Problem},
};

/// The class of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Unauthenticated,
    ForbiddenNode,
    JoinSecretRequired,
    JoinTokenExpired,
    JoinTokenUsed,
    JoinTokenOfAnotherNode,
    KeyRequired,
    KeyMismatch,
    SignatureInvalid,
    ChallengeUnknown,
    ChallengeExpired,
    ChallengeReplayed,
    WrongAudience,
    EvidenceNotAccepted,
    EvidenceMalformed,
    EvidenceForged,
    EvidenceExpired,
    UnknownCertificate,
    UnknownSigningKey,
    ForeignInstance,
    ForeignRole,
    InstanceGone,
    EvidenceUnverified,
    Malformed,
    TooLarge,
    UnsupportedVersion,
    ClockSkew,
    Invalid,
    UnsupportedMediaType,
    NotFound,
    MethodNotAllowed,
    Timeout,
    Overloaded,
    TooManyUnknown,
    Unavailable,
    Internal,
}

impl Reason {
    /// Status, stable word and title.
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "The token is missing or not known"),
            Self::ForbiddenNode => (StatusCode::FORBIDDEN, "forbidden_node", "The token belongs to another node"),
            Self::JoinSecretRequired => {
                (StatusCode::UNAUTHORIZED, "join_secret_required", "No such key is bound to this node")
            }
            Self::JoinTokenExpired => (StatusCode::UNAUTHORIZED, "join_token_expired", "The join token has expired"),
            Self::JoinTokenUsed => (StatusCode::UNAUTHORIZED, "join_token_used", "The join token has admitted a node"),
            Self::JoinTokenOfAnotherNode => {
                (StatusCode::FORBIDDEN, "join_token_of_another_node", "The join token is for another node")
            }
            Self::KeyRequired => (StatusCode::FORBIDDEN, "key_required", "A join token admits only a node with a key"),
            Self::KeyMismatch => (StatusCode::FORBIDDEN, "key_mismatch", "Another key is bound to this node"),
            Self::SignatureInvalid => {
                (StatusCode::FORBIDDEN, "signature_invalid", "The join is not signed by the key that it shows")
            }
            Self::ChallengeUnknown => {
                (StatusCode::FORBIDDEN, "challenge_unknown", "The challenge was not given to this node")
            }
            Self::ChallengeExpired => (StatusCode::FORBIDDEN, "challenge_expired", "The challenge has expired"),
            Self::ChallengeReplayed => {
                (StatusCode::FORBIDDEN, "challenge_replayed", "The challenge has been answered before")
            }
            Self::WrongAudience => (StatusCode::FORBIDDEN, "wrong_audience", "The proof was made for another sweeper"),
            Self::EvidenceNotAccepted => {
                (StatusCode::FORBIDDEN, "evidence_not_accepted", "Evidence of this kind is not verified here")
            }
            Self::EvidenceMalformed => (StatusCode::FORBIDDEN, "evidence_malformed", "The evidence cannot be read"),
            Self::EvidenceForged => {
                (StatusCode::FORBIDDEN, "evidence_forged", "The evidence is not signed by the cloud")
            }
            Self::EvidenceExpired => (StatusCode::FORBIDDEN, "evidence_expired", "The evidence has expired"),
            Self::UnknownCertificate => {
                (StatusCode::FORBIDDEN, "unknown_certificate", "No certificate is known for this region")
            }
            Self::UnknownSigningKey => {
                (StatusCode::FORBIDDEN, "unknown_signing_key", "The cloud has no such signing key")
            }
            Self::ForeignInstance => {
                (StatusCode::FORBIDDEN, "foreign_instance", "The evidence is of another machine than this node")
            }
            Self::ForeignRole => {
                (StatusCode::FORBIDDEN, "foreign_role", "The evidence is of a role that the machine does not have")
            }
            Self::InstanceGone => {
                (StatusCode::FORBIDDEN, "instance_gone", "The evidence is of a machine that is no more")
            }
            Self::EvidenceUnverified => {
                (StatusCode::SERVICE_UNAVAILABLE, "evidence_unverified", "The evidence cannot be verified now")
            }
            Self::Malformed => (StatusCode::BAD_REQUEST, "malformed", "The body cannot be read"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "The body is too large"),
            Self::UnsupportedVersion => {
                (StatusCode::BAD_REQUEST, "unsupported_version", "The contract's version is not spoken here")
            }
            Self::ClockSkew => (StatusCode::UNPROCESSABLE_ENTITY, "clock_skew", "The sender's clock is off"),
            Self::Invalid => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid", "The request is well-formed but cannot be true")
            }
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body is of another type")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "There is nothing at this path"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This path does not take this method")
            }
            Self::Timeout => (StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long"),
            Self::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Too many requests at once"),
            Self::TooManyUnknown => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_unknown_tokens", "Too many tokens that nobody knows")
            }
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The database does not answer"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "The sweeper failed"),
        }
    }

    /// Whether the same request would be refused again, whatever becomes of this server.
    pub(crate) fn is_the_senders(self) -> bool {
        self.parts().0.is_client_error() && !matches!(self, Self::Timeout | Self::TooManyUnknown)
    }

    /// The stable word, also the counter's label.
    pub(crate) fn word(self) -> &'static str {
        self.parts().1
    }
}

/// A request that is not served, and why.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    /// The node that the token vouched for, once there is one.
    pub(crate) node: Option<NodeId>,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), node: None }
    }

    pub(crate) fn of_node(self, node: &NodeId) -> Self {
        Self { node: Some(node.clone()), ..self }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, word, title) = self.reason.parts();
        let problem =
            Problem { kind: word.into(), status: status.as_u16(), title: title.into(), detail: self.detail.clone() };
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The database failed: logged here with its causes, since the client is told none of them.
impl From<crate::store::StoreError> for Refusal {
    fn from(error: crate::store::StoreError) -> Self {
        let error = anyhow::Error::new(error);
        tracing::error!(error = format!("{error:#}"), "the store failed");
        Self::new(Reason::Unavailable, "Nothing was stored; send it again later.")
    }
}
