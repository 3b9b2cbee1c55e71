//! AWS's request signature, version 4, for the one request that this agent signs. Written here because `aws-sigv4` brings along a second
//! set of HTTP types for what are five HMACs.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use hmac::{Hmac, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What a role's session signs with.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: SecretString,
    pub(super) session_token: String,
}

/// What a signature is good for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// `20150830T123600Z`
    pub(super) time: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// The `Authorization` header of a `POST /` with these headers (sorted, in small letters) and this body.
pub(super) fn authorization(of: &Credentials, scope: Scope<'_>, headers: &[(&str, &str)], body: &str) -> String {
    let Scope { time, region, service } = scope;
    let day = time.split('T').next().unwrap_or_default();
    let signed = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let canonical_headers = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect::<String>();
    let request = format!("POST\n/\n\n{canonical_headers}\n{signed}\n{}", hex::encode(Sha256::digest(body)));
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex::encode(Sha256::digest(request)));
    let secret = format!("AWS4{}", of.secret_access_key.expose_secret());
    let key = [day, region, service, "aws4_request"].iter().fold(secret.into_bytes(), |key, part| mac(&key, part));
    let signature = hex::encode(mac(&key, &text));
    format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}", of.access_key_id)
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes any key"));
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS's Signature Version 4 test suite, `post-x-www-form-urlencoded` and `post-sts-header-before`, as published with `aws-sigv4`
    /// (`aws-signing-test-suite/v4`).
    #[test]
    fn signatures_are_those_of_awss_test_suite() {
        const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        let credentials = Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: SecretString::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: TOKEN.to_owned(),
        };
        let scope = Scope { time: "20150830T123600Z", region: "us-east-1", service: "service" };
        let form = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ];
        let session = [form[1], form[2], ("x-amz-security-token", TOKEN)];
        for (headers, body, signed, signature) in [
            (
                form,
                "Param1=value1",
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                session,
                "",
                "host;x-amz-date;x-amz-security-token",
                "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ),
        ] {
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={signed}, \
                 Signature={signature}"
            );
            assert_eq!(authorization(&credentials, scope, &headers, body), expected);
        }
    }
}
