//! Tokens that are what they say, and every way in which they are not. Signed by keys of the tests' own, in Google's form.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{super::signer::Signer, *};
use serde_json::{Value, json};

const NODE: &str = "gcp:omics-prod-1:europe-west3-a:8032137264186745012";
const AUDIENCE: &str = "https://sweeper.example.com";
const NOW: i64 = 1_800_000_000;

/// What Google's documentation shows for `format=full`.
fn claims() -> Value {
    json!({
        "iss": ISSUER, "iat": NOW - 30, "exp": NOW + 3_570, "aud": AUDIENCE,
        "sub": "107517467455664443765", "azp": "107517467455664443765",
        "email": "compute@developer.gserviceaccount.com", "email_verified": true,
        "google": { "compute_engine": {
            "project_id": "omics-prod-1", "project_number": 739_419_398_126_i64, "zone": "europe-west3-a",
            "instance_id": "8032137264186745012", "instance_name": "worker-1",
            "instance_creation_timestamp": 1_529_699_038, "instance_confidentiality": 1, "license_id": ["1"],
        } },
    })
}

fn header() -> Value {
    json!({ "alg": "RS256", "kid": "one", "typ": "JWT" })
}

fn encode(text: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn signed(signer: &Signer, header: &str, claims: &str) -> String {
    let text = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
    let signature = encode(&signer.signature(text.as_bytes()));
    format!("{text}.{signature}")
}

fn judge(signer: &Signer, text: &str) -> Result<(), EvidenceError> {
    judge_at(signer, text, NOW)
}

fn judge_at(signer: &Signer, text: &str, now: i64) -> Result<(), EvidenceError> {
    let token = Token::parse(text)?;
    assert_eq!(token.key_id, "one");
    let (n, e) = signer.numbers();
    token.verify(&Key { n, e }, &NODE.parse().unwrap(), AUDIENCE, Timestamp::from_second(now).unwrap())
}

#[test]
fn a_token_of_this_machine_for_this_sweeper_is_taken_until_it_expires() {
    let signer = Signer::generate();
    let token = signed(&signer, &header().to_string(), &claims().to_string());
    assert_eq!(judge(&signer, &token), Ok(()));
    let skew = SKEW.as_secs();
    for (now, expected) in [
        (NOW + 3_570 + skew - 1, Ok(())),
        (NOW + 3_570 + skew, Err(EvidenceError::Expired)),
        (NOW - 30 - skew, Ok(())),
        (NOW - 30 - skew - 1, Err(EvidenceError::Expired)),
    ] {
        assert_eq!(judge_at(&signer, &token, now), expected, "{}", now - NOW);
    }
}

#[test]
fn claims_of_another_machine_or_for_another_audience_are_refused_by_name() {
    let signer = Signer::generate();
    let with = |change: fn(&mut Value)| {
        let mut claims = claims();
        change(&mut claims);
        judge(&signer, &signed(&signer, &header().to_string(), &claims.to_string()))
    };
    assert_eq!(with(|claims| claims["aud"] = "https://other.example.com".into()), Err(EvidenceError::WrongAudience));
    let other = with(|claims| claims["google"]["compute_engine"]["instance_id"] = "1".into());
    assert_eq!(other, Err(EvidenceError::ForeignInstance("gcp:omics-prod-1:europe-west3-a:1".into())));
    let other = with(|claims| claims["google"]["compute_engine"]["project_id"] = "omics-prod-2".into());
    assert!(matches!(other, Err(EvidenceError::ForeignInstance(_))), "{other:?}");
    for change in [
        |claims: &mut Value| claims["iss"] = "https://accounts.example.com".into(),
        |claims: &mut Value| claims["aud"] = json!([AUDIENCE]),
        |claims: &mut Value| claims["exp"] = "never".into(),
        |claims: &mut Value| *claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "iat": NOW, "exp": NOW + 60 }),
        |claims: &mut Value| _ = claims.as_object_mut().unwrap().remove("exp"),
    ] {
        assert!(matches!(with(change), Err(EvidenceError::Malformed(_))));
    }
    let twice = claims().to_string().replacen('{', &format!(r#"{{"aud":"{AUDIENCE}","#), 1);
    let twice = judge(&signer, &signed(&signer, &header().to_string(), &twice));
    assert!(matches!(twice, Err(EvidenceError::Malformed(_))), "{twice:?}");
}

#[test]
fn another_algorithm_another_key_or_a_header_with_keys_of_its_own_is_refused() {
    let (signer, stranger) = (Signer::generate(), Signer::generate());
    let claims = claims().to_string();
    let by_stranger = signed(&stranger, &header().to_string(), &claims);
    assert_eq!(judge(&signer, &by_stranger), Err(EvidenceError::Forged));
    let good = signed(&signer, &header().to_string(), &claims);
    let (text, signature) = good.rsplit_once('.').unwrap();
    let swapped =
        good.replacen(&encode(claims.as_bytes()), &encode(claims.replace("worker-1", "worker-2").as_bytes()), 1);
    for forged in [swapped, format!("{text}."), format!("{text}.{}", &signature[4..])] {
        assert_eq!(judge(&signer, &forged), Err(EvidenceError::Forged));
    }
    // HMAC with the public key as its secret, which everybody has.
    let hmac_header = encode(json!({ "alg": "HS256", "kid": "one", "typ": "JWT" }).to_string().as_bytes());
    let text = format!("{hmac_header}.{}", encode(claims.as_bytes()));
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &signer.certificate());
    let hmac = format!("{text}.{}", encode(aws_lc_rs::hmac::sign(&key, text.as_bytes()).as_ref()));
    let none = |alg: &str| {
        let header = json!({ "alg": alg, "kid": "one" }).to_string();
        format!("{}.{}.", encode(header.as_bytes()), encode(claims.as_bytes()))
    };
    let with = |name: &str, value: Value| {
        let mut header = header();
        header[name] = value;
        signed(&signer, &header.to_string(), &claims)
    };
    for (what, token) in [
        ("HMAC", hmac),
        ("none", none("none")),
        ("None", none("None")),
        ("RS512", with("alg", "RS512".into())),
        ("jku", with("jku", "https://attacker.example.com/keys".into())),
        ("jwk", with("jwk", json!({ "kty": "RSA" }))),
        ("x5u", with("x5u", "https://attacker.example.com".into())),
        ("crit", with("crit", json!(["exp"]))),
        ("encrypted", with("typ", "JWE".into())),
        ("kid is a list", with("kid", json!(["one"]))),
        ("no kid", signed(&signer, r#"{"alg":"RS256"}"#, &claims)),
        ("two algorithms", signed(&signer, r#"{"alg":"none","alg":"RS256","kid":"one"}"#, &claims)),
        ("two parts", "a.b".into()),
        ("nothing", String::new()),
        ("padding", good.replace('.', "=.")),
        ("too long", "a".repeat(MAX_EVIDENCE_BYTES + 1)),
    ] {
        assert!(matches!(judge(&signer, &token), Err(EvidenceError::Malformed(_))), "{what}");
    }
}
