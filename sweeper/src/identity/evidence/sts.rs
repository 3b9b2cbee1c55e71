//! Presigned `sts:GetCallerIdentity`: AWS itself says whose session signed the request.
//!
//! Nothing of the request comes from the node but its time, its session token and its signature: the address is built from the node's
//! region, which must be one that AWS publishes, and audience and nonce are this sweeper's own. What was signed for another sweeper or
//! another challenge is refused by AWS. <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html>

use super::EvidenceError;
use aws_smithy_xml::decode::{Document, try_data};
use heartbeat::{NodeId, attestation::MAX_EVIDENCE_BYTES, sts};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// What a node has signed.
pub(super) struct Signed<'a> {
    pub(super) time: &'a str,
    pub(super) session_token: &'a str,
    pub(super) authorization: &'a str,
}

/// The name of the role whose session the node's instance signed with.
pub(super) async fn role(
    signed: &Signed<'_>,
    node: &NodeId,
    audience: &str,
    challenge: &str,
    endpoint: Option<&str>,
) -> Result<String, EvidenceError> {
    let NodeId::Aws { account, region, instance } = node else {
        return Err(EvidenceError::ForeignInstance("an EC2 instance".into()));
    };
    check(signed, region)?;
    let host = sts::host(region);
    let answer = ask(signed, &host, audience, challenge, endpoint).await?;
    let arn = arn(&answer).ok_or(EvidenceError::Unavailable("AWS answers without saying who signed"))?;
    // `arn:aws:sts::123456789012:assumed-role/ROLE/SESSION`
    let parts = arn.split(':').collect::<Vec<_>>();
    let ["arn", _, "sts", "", of, session] = parts[..] else { return Err(EvidenceError::ForeignInstance(arn)) };
    match session.split('/').collect::<Vec<_>>()[..] {
        ["assumed-role", role, session] if of == account && session == instance => Ok(role.to_owned()),
        _ => Err(EvidenceError::ForeignInstance(arn)),
    }
}

/// What could not come from an agent is not sent: no header but the agreed ones is signed, and no byte could end a header.
fn check(signed: &Signed<'_>, region: &str) -> Result<(), EvidenceError> {
    let refuse = Err(EvidenceError::Malformed("the request is not signed as a node signs it"));
    let length = signed.session_token.len() + signed.authorization.len();
    if length > MAX_EVIDENCE_BYTES {
        return Err(EvidenceError::Malformed("the request is too long"));
    }
    let is_time = signed.time.len() == 16
        && signed.time.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    let is_token = signed.session_token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if !is_time || !is_token || signed.session_token.is_empty() {
        return refuse;
    }
    let Some(rest) = signed.authorization.strip_prefix("AWS4-HMAC-SHA256 Credential=") else { return refuse };
    let Some((key_id, rest)) = rest.split_once('/') else { return refuse };
    let scope =
        format!("{}/{region}/sts/aws4_request, SignedHeaders={}, Signature=", &signed.time[..8], sts::SIGNED_HEADERS);
    let Some(signature) = rest.strip_prefix(scope.as_str()) else { return refuse };
    let is_key_id = (16..=128).contains(&key_id.len()) && key_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_signature = signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_key_id && is_signature { Ok(()) } else { refuse }
}

async fn ask(
    signed: &Signed<'_>,
    host: &str,
    audience: &str,
    challenge: &str,
    endpoint: Option<&str>,
) -> Result<Vec<u8>, EvidenceError> {
    let unavailable = |error: reqwest::Error| {
        tracing::warn!(error = format!("{:#}", anyhow::Error::new(error)), host, "AWS does not say who signed a join");
        EvidenceError::Unavailable("AWS does not say who signed the request")
    };
    let url = endpoint.map_or_else(|| format!("https://{host}/"), str::to_owned);
    let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
    let request = client.map_err(unavailable)?.post(url).body(sts::BODY);
    let audience = audience.trim_end_matches('/');
    let headers = sts::headers(host, signed.time, signed.session_token, audience, challenge);
    let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    let mut response = request.header("authorization", signed.authorization).send().await.map_err(unavailable)?;
    let (status, mut answer) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(unavailable)?.filter(|_| answer.len() < MAX_ANSWER_BYTES) {
        answer.extend_from_slice(&chunk);
    }
    match status.as_u16() {
        200 => Ok(answer),
        400 | 403 if is_expired(&answer) => Err(EvidenceError::Expired),
        400 | 403 => Err(EvidenceError::Forged),
        status => {
            tracing::warn!(status, host, "AWS does not say who signed a join");
            Err(EvidenceError::Unavailable("AWS does not say who signed the request"))
        }
    }
}

/// <https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html>: an expired session, or a signature of more than 5 minutes ago.
fn is_expired(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.contains("<Code>ExpiredToken") || text.contains("Signature expired") || text.contains("<Code>RequestExpired")
}

fn arn(answer: &[u8]) -> Option<String> {
    let mut document = Document::try_from(answer).ok()?;
    let mut response = document.root_element().ok()?;
    while let Some(mut result) = response.next_tag() {
        while let Some(mut fact) = result.next_tag() {
            if fact.start_el().local() == "Arn" {
                return try_data(&mut fact).ok().map(|text| text.trim().to_owned());
            }
        }
    }
    None
}

#[cfg(test)]
#[path = "sts_tests.rs"]
mod tests;
