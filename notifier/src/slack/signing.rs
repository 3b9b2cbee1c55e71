//! Tells Slack's requests from others'. Pure but for the clock.
//!
//! A request is Slack's if it is signed with the app's signing secret and at most five minutes old; what it says of who pressed is then Slack's word.

use secrecy::{ExposeSecret as _, SecretString};
use slack_morphism::prelude::SlackSigningSecret;
use slack_morphism::signature_verifier::SlackEventSignatureVerifier;
use url::form_urlencoded;

use super::{
    ConfigError,
    command::{self, Command},
    pressed::{self, Pressed, Proof},
};

/// Slack's own secrets have 32 characters.
const LEAST: usize = 16;

/// Header with the signature of a request.
pub const SIGNATURE_HEADER: &str = SlackEventSignatureVerifier::SLACK_SIGNED_HASH_HEADER;
/// Header with the second in which it was signed.
pub const TIMESTAMP_HEADER: &str = SlackEventSignatureVerifier::SLACK_SIGNED_TIMESTAMP;

/// Why a request is not taken for Slack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSlacks {
    /// It has no signature, another one, or is too old.
    #[error("the request is not signed by Slack with the app's signing secret, or was more than five minutes ago")]
    Signature,
    /// It is not what Slack sends.
    #[error("the request is signed, and is not what Slack sends for a button or a command")]
    Malformed,
}

/// What Slack tells of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// They pressed a button, or filled in a form.
    Pressed(Pressed),
    /// They pressed the button that shows the evidence of a finding.
    Proof(Proof),
    /// They asked something by the slash command.
    Asked(Command),
}

/// Tells Slack's requests from others'.
#[derive(Clone)]
pub struct Signing(SlackEventSignatureVerifier);

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signing")
    }
}

impl Signing {
    /// By the app's signing secret (Slack app, Basic Information).
    ///
    /// # Errors
    /// If that cannot be one.
    pub fn new(secret: &SecretString) -> Result<Self, ConfigError> {
        let secret = secret.expose_secret().trim();
        let is_one = secret.len() >= LEAST && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_one {
            return Err(ConfigError::SigningSecret);
        }
        Ok(Self(SlackEventSignatureVerifier::new(&SlackSigningSecret(secret.to_owned()))))
    }

    /// What a request tells that somebody said or asked; none if it tells of something else that needs no answer.
    ///
    /// # Errors
    /// If it is not Slack's.
    pub fn heard(&self, signature: &str, timestamp: &str, body: &[u8]) -> Result<Option<Heard>, NotSlacks> {
        let body = std::str::from_utf8(body).map_err(|_| NotSlacks::Signature)?;
        self.0.verify(signature, body, timestamp).map_err(|_| NotSlacks::Signature)?;
        let field =
            |name: &str| form_urlencoded::parse(body.as_bytes()).find(|(one, _)| one == name).map(|(_, value)| value);
        if field("command").is_some() {
            return command::of_fields(field).map(|command| Some(Heard::Asked(command))).ok_or(NotSlacks::Malformed);
        }
        let payload = field("payload").ok_or(NotSlacks::Malformed)?;
        let event = serde_json::from_str(&payload).map_err(|_| NotSlacks::Malformed)?;
        Ok(pressed::heard(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of <https://docs.slack.dev/authentication/verifying-requests-from-slack>, which is of 2018: its signature is right, and it is too old.
    #[test]
    fn a_request_of_before_is_refused() {
        let signing = Signing::new(&SecretString::from("8f742231b10e8888abcd99yyyzzz85a5"));
        assert!(signing.is_err(), "the documentation's secret is not of Slack's form");
        for bad in ["", "8f742231b10e", "xoxb-1-2-abcdefghijklmnop"] {
            assert!(Signing::new(&SecretString::from(bad)).is_err(), "{bad}");
        }
        let signing = Signing::new(&SecretString::from("8f742231b10e8888abcd99aaabbb85a5"));
        assert!(
            signing.is_ok_and(
                |signing| signing.heard("v0=00", "1531420618", b"payload=%7B%7D") == Err(NotSlacks::Signature)
            )
        );
    }
}
