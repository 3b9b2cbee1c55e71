//! Documents that EC2 really signed, and forgeries of them.
//!
//! Recorded by Gravitational on two instances of theirs in 2021, published in gravitational/teleport (Apache-2.0),
//! `lib/auth/join_ec2_test.go` at 0fe20f9.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{super::signer::Signer, *};
use sha2::Digest as _;

const US_WEST_2: &str = include_str!("recorded/us-west-2.pkcs7");
const US_WEST_1: &str = include_str!("recorded/us-west-1.pkcs7");

fn published() -> Certificates {
    Certificates::load(None).unwrap()
}

fn judge(pkcs7: &str, node: &str) -> Result<(), EvidenceError> {
    verify(pkcs7, &node.parse().unwrap(), &published())
}

#[test]
fn what_ec2_signed_years_ago_still_says_which_machine_it_was_given_to() {
    assert_eq!(judge(US_WEST_2, "aws:278576220453:us-west-2:i-078517ca8a70a1dde"), Ok(()));
    assert_eq!(judge(US_WEST_1, "aws:883474662888:us-west-1:i-01b940c45fd11fe74"), Ok(()));
    assert_eq!(judge(&US_WEST_1.replace('\n', ""), "aws:883474662888:us-west-1:i-01b940c45fd11fe74"), Ok(()));
}

#[test]
fn a_document_speaks_of_its_own_machine_alone() {
    let shown = || Err(EvidenceError::ForeignInstance("aws:278576220453:us-west-2:i-078517ca8a70a1dde".into()));
    for node in ["aws:278576220453:us-west-2:i-01b940c45fd11fe74", "aws:883474662888:us-west-2:i-078517ca8a70a1dde"] {
        assert_eq!(judge(US_WEST_2, node), shown(), "{node}");
    }
    // Another region has another key, so that it is not even read.
    assert_eq!(judge(US_WEST_2, "aws:278576220453:us-west-1:i-078517ca8a70a1dde"), Err(EvidenceError::Forged));
    let nowhere = judge(US_WEST_2, "aws:278576220453:moon-1:i-078517ca8a70a1dde");
    assert_eq!(nowhere, Err(EvidenceError::UnknownCertificate { region: "moon-1".into() }));
    let host = judge(US_WEST_2, "host:0123456789abcdef0123456789abcdef");
    assert!(matches!(host, Err(EvidenceError::ForeignInstance(_))), "{host:?}");
}

#[test]
fn a_real_document_that_was_changed_is_forged() {
    let node = "aws:278576220453:us-west-2:i-078517ca8a70a1ddf";
    let mut message = STANDARD.decode(US_WEST_2.replace('\n', "")).unwrap();
    let at = message.windows(4).position(|part| part == b"1dde").unwrap();
    message[at + 3] = b'f';
    assert_eq!(judge(&STANDARD.encode(&message), node), Err(EvidenceError::Forged));
    // With the attributes of EC2's and the digest mended, its signature is no more that of the attributes.
    let digest = sha2::Sha256::digest(pkcs7_content(&message));
    let old = STANDARD.decode(US_WEST_2.replace('\n', "")).unwrap();
    let old_digest = sha2::Sha256::digest(pkcs7_content(&old));
    let at = message.windows(32).position(|part| part == &old_digest[..]).unwrap();
    message[at..at + 32].copy_from_slice(&digest);
    assert_eq!(judge(&STANDARD.encode(&message), node), Err(EvidenceError::Forged));
}

fn pkcs7_content(message: &[u8]) -> &[u8] {
    let start = message.iter().position(|byte| *byte == b'{').unwrap();
    let end = message.iter().position(|byte| *byte == b'}').unwrap();
    &message[start..=end]
}

#[test]
fn documents_by_a_key_of_the_tests_own_are_read_strictly() {
    let signer = Signer::generate();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("us-west-2.pem"), signer.certificate_pem()).unwrap();
    let certificates = Certificates::load(Some(folder.path())).unwrap();
    let node: NodeId = "aws:123456789012:us-west-2:i-0123456789abcdef0".parse().unwrap();
    let judge = |document: &str| verify(&signer.sign(document.as_bytes()), &node, &certificates);
    let good = r#"{"accountId": "123456789012", "region": "us-west-2", "instanceId": "i-0123456789abcdef0"}"#;
    assert_eq!(judge(good), Ok(()));
    let twice = good.replace('}', r#", "instanceId": "i-1"}"#);
    let hidden = good.replace("i-0123456789abcdef0", "i-0123456789abcdef0:x");
    for wrong in [twice.as_str(), "{}", "", "[]", &good.replace("\"123456789012\"", "123456789012")] {
        assert!(matches!(judge(wrong), Err(EvidenceError::Malformed(_))), "{wrong}");
    }
    assert!(matches!(judge(&hidden), Err(EvidenceError::ForeignInstance(_))));
    for wrong in ["", "not base64!", &"A".repeat(MAX_EVIDENCE_BYTES + 4)] {
        assert!(matches!(verify(wrong, &node, &certificates), Err(EvidenceError::Malformed(_))), "{wrong}");
    }
    // The certificates of the configuration stand beside AWS's own.
    let real = "aws:278576220453:us-west-2:i-078517ca8a70a1dde".parse().unwrap();
    assert_eq!(verify(US_WEST_2, &real, &certificates), Ok(()));
}
