//! How a node proves that it is the one that joined: by a key of its own, whose private half never leaves the node.

use serde::{Deserialize, Serialize};

/// Put before the body of a join where it is signed, so that no signature made for another purpose is one of a join.
const PURPOSE: &[u8] = b"cloud-sweeper/join/1\n";
/// Length of an Ed25519 public key, in bytes.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// What a node proves with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The node's Ed25519 public key: 64 hexadecimal digits.
    pub public_key: String,
    /// The challenge that the sweeper gave for this join.
    pub challenge: String,
    /// The address at which the node's configuration says the sweeper is: a proof that was made for another sweeper is none.
    pub audience: String,
    /// What a cloud says of this machine, of a kind that the challenge asked for. The signature of the join covers it, so it is bound to
    /// the key and to the challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// A cloud's word about which machine this is. It does not say who may speak for the machine: other processes on it can have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// EC2's signed instance identity document.
    AwsIid {
        /// What `/latest/dynamic/instance-identity/rsa2048` answers: PKCS #7 in base64, without its header and footer.
        pkcs7: String,
    },
    /// A request to AWS's Security Token Service, signed by the instance's role and sent by the sweeper ([`crate::sts`]). Its audience
    /// and nonce are those of this [`Proof`].
    AwsSts {
        /// When it was signed: `20150830T123600Z`.
        time: String,
        /// The session's token.
        session_token: String,
        /// The header `Authorization`.
        authorization: String,
    },
    /// Compute Engine's instance identity token.
    GcpToken {
        /// A JSON Web Token in format `full`, whose audience is [`Proof::audience`].
        token: String,
    },
}

/// Longest evidence, in bytes of its text; the clouds' own have about 1,500.
pub const MAX_EVIDENCE_BYTES: usize = 8 * 1024;

impl Evidence {
    /// The word for [`Evidence::AwsIid`] in a challenge.
    pub const AWS_IID: &str = "aws_iid";
    /// The word for [`Evidence::AwsSts`] in a challenge.
    pub const AWS_STS: &str = "aws_sts";
    /// The word for [`Evidence::GcpToken`] in a challenge.
    pub const GCP_TOKEN: &str = "gcp_token";

    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::AwsIid { .. } => Self::AWS_IID,
            Self::AwsSts { .. } => Self::AWS_STS,
            Self::GcpToken { .. } => Self::GCP_TOKEN,
        }
    }
}

/// The text that a join's signature covers: its purpose and every byte of its body.
#[must_use]
pub fn signed_text(body: &[u8]) -> Vec<u8> {
    [PURPOSE, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_from_before_there_was_evidence_is_one_without() {
        let text = r#"{"public_key":"a","challenge":"b","audience":"c"}"#;
        let proof: Proof = serde_json::from_str(text).expect("a proof");
        assert_eq!(proof.evidence, None);
        assert_eq!(serde_json::to_string(&proof).expect("JSON"), text);
    }

    #[test]
    fn the_word_in_a_challenge_is_the_kind_in_the_body() {
        let sts = Evidence::AwsSts { time: "a".into(), session_token: "b".into(), authorization: "c".into() };
        for evidence in [Evidence::AwsIid { pkcs7: "a".into() }, sts, Evidence::GcpToken { token: "a".into() }] {
            let json = serde_json::to_value(&evidence).expect("JSON");
            assert_eq!(json["kind"], evidence.kind());
            assert_eq!(serde_json::from_value::<Evidence>(json).expect("evidence"), evidence);
        }
    }

    #[test]
    fn a_field_of_a_later_version_is_left_out() {
        let text = r#"{"public_key":"a","challenge":"b","audience":"c","later":1,"evidence":{"kind":"gcp_token","token":"d","later":1}}"#;
        let proof: Proof = serde_json::from_str(text).expect("a proof");
        assert_eq!(proof.evidence, Some(Evidence::GcpToken { token: "d".into() }));
    }

    #[test]
    fn a_signature_covers_the_purpose_and_the_whole_body() {
        assert_eq!(signed_text(b"{}"), b"cloud-sweeper/join/1\n{}");
    }
}
