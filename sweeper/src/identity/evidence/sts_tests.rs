//! Requests against a server that answers as STS does, and those that are never sent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use axum::{Router, body::Bytes, http::HeaderMap, http::StatusCode, routing::post};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

const NODE: &str = "aws:123456789012:eu-central-1:i-0123456789abcdef0";
const TIME: &str = "20261122T120000Z";

fn authorization() -> String {
    let (scope, signed) = ("20261122/eu-central-1/sts/aws4_request", sts::SIGNED_HEADERS);
    let signature = "0123456789abcdef".repeat(4);
    format!("AWS4-HMAC-SHA256 Credential=ASIAIOSFODNN7EXAMPLE/{scope}, SignedHeaders={signed}, Signature={signature}")
}

/// A server that gives one answer and counts its requests.
async fn sts(status: u16, answer: String) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let handler = move |headers: HeaderMap, body: Bytes| async move {
        count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(headers["host"], "sts.eu-central-1.amazonaws.com");
        assert_eq!(headers[sts::AUDIENCE_HEADER], "https://sweeper.example.com");
        assert_eq!(headers[sts::NONCE_HEADER], "nonce");
        assert_eq!(headers["authorization"], authorization());
        assert_eq!(body, sts::BODY);
        (StatusCode::from_u16(status).unwrap(), answer)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(handler))).await });
    (url, asked)
}

/// The shape of <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html>.
fn identity(arn: &str) -> String {
    format!(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult><Arn>{arn}</Arn>\
         <UserId>AROA123EXAMPLE123EXAMPLE:session</UserId><Account>123456789012</Account></GetCallerIdentityResult>\
         <ResponseMetadata><RequestId>01234567-89ab-cdef-0123-456789abcdef</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    )
}

fn problem(code: &str, message: &str) -> String {
    format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    )
}

async fn judge(url: &str) -> Result<String, EvidenceError> {
    let signed = Signed { time: TIME, session_token: "IQoJ+/=", authorization: &authorization() };
    role(&signed, &NODE.parse().unwrap(), "https://sweeper.example.com/", "nonce", Some(url)).await
}

#[tokio::test]
async fn the_session_of_the_instances_own_role_names_the_role() {
    let (url, asked) = sts(200, identity("arn:aws:sts::123456789012:assumed-role/batch/i-0123456789abcdef0")).await;
    assert_eq!(judge(&url).await.as_deref(), Ok("batch"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn other_sessions_and_other_answers_prove_nothing() {
    for arn in [
        "arn:aws:sts::123456789012:assumed-role/batch/i-0123456789abcdef1",
        "arn:aws:sts::999999999999:assumed-role/batch/i-0123456789abcdef0",
        "arn:aws:sts::123456789012:assumed-role/batch/a/i-0123456789abcdef0",
        "arn:aws:sts::123456789012:federated-user/i-0123456789abcdef0",
        "arn:aws:iam::123456789012:user/i-0123456789abcdef0",
        "arn:aws:iam::123456789012:root",
        "i-0123456789abcdef0",
    ] {
        let (url, _) = sts(200, identity(arn)).await;
        assert_eq!(judge(&url).await, Err(EvidenceError::ForeignInstance(arn.into())));
    }
    let expired = problem("SignatureDoesNotMatch", "Signature expired: 20261122T120000Z is now earlier than");
    for (status, answer, expected) in [
        (403, problem("SignatureDoesNotMatch", "does not match"), EvidenceError::Forged),
        (403, problem("InvalidClientTokenId", "invalid"), EvidenceError::Forged),
        (403, expired, EvidenceError::Expired),
        (403, problem("ExpiredToken", "expired"), EvidenceError::Expired),
    ] {
        let (url, _) = sts(status, answer).await;
        assert_eq!(judge(&url).await, Err(expected));
    }
    for (status, answer) in [(500, String::new()), (302, String::new()), (200, String::new()), (200, "<a/>".into())] {
        let (url, _) = sts(status, answer).await;
        assert!(matches!(judge(&url).await, Err(EvidenceError::Unavailable(_))), "{status}");
    }
    assert!(matches!(judge("http://127.0.0.1:1/").await, Err(EvidenceError::Unavailable(_))));
}

#[tokio::test]
async fn what_no_agent_signs_is_never_sent() {
    let (url, asked) = sts(200, identity("arn:aws:sts::123456789012:assumed-role/batch/i-0123456789abcdef0")).await;
    let node: NodeId = NODE.parse().unwrap();
    let good = authorization();
    let long = "A".repeat(9_000);
    let without_nonce = good.replace(";x-cloud-sweeper-nonce", "");
    let without_both = without_nonce.replace(";x-cloud-sweeper-audience", "");
    let with_more = good.replace("content-type;", "content-type;expect;");
    for (what, time, session_token, authorization) in [
        ("nonce not signed", TIME, "IQoJ", without_nonce.as_str()),
        ("neither audience nor nonce signed", TIME, "IQoJ", &without_both),
        ("another header signed", TIME, "IQoJ", &with_more),
        ("another region", TIME, "IQoJ", &good.replace("eu-central-1", "eu-central-2")),
        ("another service", TIME, "IQoJ", &good.replace("/sts/", "/iam/")),
        ("another day", "20261123T120000Z", "IQoJ", &good),
        ("another algorithm", TIME, "IQoJ", &good.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")),
        ("a header in the token", TIME, "IQoJ\r\nx-amz-target: a", &good),
        ("a header in the time", "20261122T12000\r\n", "IQoJ", &good),
        ("a header in the signature", TIME, "IQoJ", &good.replace("Signature=0123", "Signature=0\r\n3")),
        ("a key id with a path", TIME, "IQoJ", &good.replace("ASIAIOSFODNN7EXAMPLE", "../../ASIAIOSFODNN7EXAMPLE")),
        ("no session", TIME, "", &good),
        ("too long", TIME, &long, &good),
        ("nothing", "", "", ""),
        ("not a boundary", "ä0261122T12000Z", "IQoJ", &good),
    ] {
        let signed = Signed { time, session_token, authorization };
        let refused = role(&signed, &node, "https://sweeper.example.com", "nonce", Some(&url)).await;
        assert!(matches!(refused, Err(EvidenceError::Malformed(_))), "{what}: {refused:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
