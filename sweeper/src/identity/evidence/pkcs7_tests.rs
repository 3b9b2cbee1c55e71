//! Messages that are put together wrongly, all with good signatures over something.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{
    super::signer::{RSA_WITH_SHA_256_ID, SHA_256_ID, Signer, attributes, indefinite, signed_data, value},
    *,
};
use crate::identity::evidence::certificates::Certificates;

const DOCUMENT: &[u8] = b"{}";

fn key_of(signer: &Signer) -> Vec<SubjectKey> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("moon-1.pem"), signer.certificate_pem()).unwrap();
    Certificates::load(Some(folder.path())).unwrap().of("moon-1").to_vec()
}

#[test]
fn only_the_pinned_keys_signature_over_this_content_is_taken() {
    let (ours, strange) = (Signer::generate(), Signer::generate());
    let keys = key_of(&ours);
    let good = signed_data(Some(DOCUMENT), &[], &ours.signer(&attributes(DOCUMENT)));
    assert_eq!(verified_content(&good, &keys), Ok(DOCUMENT.to_vec()));
    assert_eq!(verified_content(&good, &[key_of(&strange), keys.clone()].concat()), Ok(DOCUMENT.to_vec()));
    assert_eq!(verified_content(&good, &[]), Err(Pkcs7Error::Forged));

    let forged = ours.signer(&attributes(b"{ }"));
    let unsigned = value(48, &[&forged]);
    let by_stranger = strange.signer(&attributes(DOCUMENT));
    let with_certificate = value(0xa0, &[&strange.certificate()]);
    for (what, message) in [
        ("another content than was signed", signed_data(Some(DOCUMENT), &[], &forged)),
        ("a stranger's signature", signed_data(Some(DOCUMENT), &[], &by_stranger)),
        ("the stranger's certificate in the message", signed_data(Some(DOCUMENT), &with_certificate, &by_stranger)),
    ] {
        assert_eq!(verified_content(&message, &keys), Err(Pkcs7Error::Forged), "{what}");
    }
    assert_eq!(verified_content(&signed_data(Some(DOCUMENT), &[], &unsigned), &keys), Err(Pkcs7Error::Malformed));
}

#[test]
fn what_ec2_does_not_send_is_refused_unread() {
    let ours = Signer::generate();
    let keys = key_of(&ours);
    let good = attributes(DOCUMENT);
    let signer = ours.signer(&good);
    let twice = [good.clone(), good.clone()].concat();
    // The signature of the bare content, as a message without signed attributes has it: its set could be taken for a content.
    let bare = value(4, &[&ours.signature(DOCUMENT)]);
    let said = value(48, &[&value(48, &[]), &[2, 1, 1]]);
    let without_attributes = value(48, &[&[2, 1, 1], &said, SHA_256_ID, RSA_WITH_SHA_256_ID, &bare]);
    for (what, message) in [
        ("detached content", signed_data(None, &[], &signer)),
        ("no signer", signed_data(Some(DOCUMENT), &[], &[])),
        ("two signers", signed_data(Some(DOCUMENT), &[], &[signer.clone(), signer.clone()].concat())),
        ("no signed attributes", signed_data(Some(DOCUMENT), &[], &without_attributes)),
        ("empty signed attributes", signed_data(Some(DOCUMENT), &[], &ours.signer(&[]))),
        ("each attribute twice", signed_data(Some(DOCUMENT), &[], &ours.signer(&twice))),
        ("something behind the message", [signed_data(Some(DOCUMENT), &[], &signer), vec![5, 0]].concat()),
        ("nothing", Vec::new()),
    ] {
        assert_eq!(verified_content(&message, &keys), Err(Pkcs7Error::Malformed), "{what}");
    }
}

#[test]
fn hostile_lengths_and_nesting_cost_nothing() {
    let deep = [0x30, 0x80].repeat(4_000);
    let deep_string = [0x24, 0x80].repeat(4_000);
    let huge = [0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 6, 9];
    let longer = [0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let nested = signed_data(Some(&[]), &value(0xa0, &[&deep]), &[]);
    let (_, inside) = nested.split_at(30);
    let content = indefinite(48, &[&[6, 9, 42, 134, 72, 134, 247, 13, 1, 7, 1], &indefinite(0xa0, &[&deep_string])]);
    for message in [deep.as_slice(), &deep_string, &huge, &longer, &nested, inside, &content] {
        assert_eq!(verified_content(message, &[]), Err(Pkcs7Error::Malformed));
    }
}

#[test]
fn no_single_changed_byte_goes_unnoticed_and_none_panics() {
    let ours = Signer::generate();
    let keys = key_of(&ours);
    let good = signed_data(Some(DOCUMENT), &[], &ours.signer(&attributes(DOCUMENT)));
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut message = good.clone();
            message[at] ^= 1 << bit;
            if let Ok(content) = verified_content(&message, &keys) {
                assert_eq!(content, DOCUMENT, "byte {at}");
            }
        }
        assert!(verified_content(&good[..at], &keys).is_err(), "cut at {at}");
    }
}

#[test]
fn lengths_of_sets_are_as_der_writes_them() {
    for (length, head) in [(127, &[0x31, 127][..]), (128, &[0x31, 0x81, 128]), (256, &[0x31, 0x82, 1, 0])] {
        assert_eq!(as_set(&vec![7; length])[..head.len()], *head);
        assert_eq!(as_set(&vec![7; length]).len(), head.len() + length);
    }
}
