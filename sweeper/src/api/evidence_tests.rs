//! What clouds say of a machine: beside a join secret it attests the node, without one it is nothing, and each fault has its name.

use super::*;
use crate::identity::evidence::{Kind, signer::Signer};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use heartbeat::attestation::Evidence;
use model::Provider;
use serde_json::{Value, json};

const GCP_NODE: &str = "gcp:omics-prod-1:europe-west3-a:8032137264186745012";

/// A sweeper that knows one key of EC2's and one of Google's, both of the tests' own.
struct Clouds {
    app: TestApp,
    signer: Signer,
    stranger: Signer,
    _folder: TempDir,
}

impl Clouds {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut IdentityConfig)) -> Self {
        let (signer, folder) = (Signer::generate(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("eu-central-1.pem"), signer.certificate_pem()).unwrap();
        let keys = folder.path().join("google.json");
        let (n, e) = signer.numbers();
        let key = json!({ "kid": "one", "kty": "RSA", "alg": "RS256",
            "n": URL_SAFE_NO_PAD.encode(n), "e": URL_SAFE_NO_PAD.encode(e) });
        std::fs::write(&keys, json!({ "keys": [key] }).to_string()).unwrap();
        let mut identity = IdentityConfig {
            audience: Some(SWEEPER.into()),
            accounts: vec!["123456789012".into(), "omics-prod-1".into()],
            aws_certificates: Some(folder.path().into()),
            google_keys: keys.display().to_string(),
            ..Default::default()
        };
        change(&mut identity);
        let app = TestApp::with_identity(identity).await;
        Self { app, signer, stranger: Signer::generate(), _folder: folder }
    }

    async fn join(&self, node: &str, evidence: Evidence) -> Join {
        let join = Join::new(&self.app, node, Some(&self.app.join_token())).await;
        join.changed(|proof| proof.evidence = Some(evidence))
    }

    async fn refused_as(&self, node: &str, evidence: Evidence) -> String {
        let join = self.join(node, evidence).await;
        let problem = self.app.refused(join.request()).await;
        assert!(self.app.store.nodes().await.unwrap().is_empty(), "{}", problem.detail);
        problem.kind
    }
}

fn document(signer: &Signer, node: &str) -> Evidence {
    let [account, region, instance] = node.split(':').skip(1).collect::<Vec<_>>()[..] else { panic!("{node}") };
    let document = json!({ "accountId": account, "region": region, "instanceId": instance, "version": "2017-09-30" });
    Evidence::AwsIid { pkcs7: signer.sign(document.to_string().as_bytes()) }
}

fn token_with(signer: &Signer, change: impl FnOnce(&mut Value, &mut Value)) -> Evidence {
    let now = Timestamp::now().as_second();
    let engine =
        json!({ "project_id": "omics-prod-1", "zone": "europe-west3-a", "instance_id": "8032137264186745012" });
    let mut header = json!({ "alg": "RS256", "kid": "one", "typ": "JWT" });
    let mut claims = json!({ "iss": "https://accounts.google.com", "aud": SWEEPER, "iat": now, "exp": now + 3_600,
        "google": { "compute_engine": engine } });
    change(&mut header, &mut claims);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&header), part(&claims));
    Evidence::GcpToken { token: format!("{text}.{}", URL_SAFE_NO_PAD.encode(signer.signature(text.as_bytes()))) }
}

fn token(signer: &Signer) -> Evidence {
    token_with(signer, |_, _| ())
}

impl TestApp {
    async fn asks(&self, node: &str) -> Vec<String> {
        let request = Request::post(CHALLENGE_PATH).header(header::CONTENT_TYPE, "application/json");
        let (_, _, body) = self.call(request.body(json!({ "node_id": node }).to_string().into()).unwrap()).await;
        serde_json::from_slice::<Challenge>(&body).unwrap().evidence
    }
}

#[tokio::test]
async fn a_clouds_word_beside_the_fleet_token_attests_the_node() {
    let clouds = Clouds::new().await;
    for (node, evidence, attestation) in [
        (NODE, document(&clouds.signer, NODE), Attestation::AwsIid),
        (GCP_NODE, token(&clouds.signer), Attestation::GcpToken),
    ] {
        let join = clouds.join(node, evidence).await;
        clouds.app.joined(&join).await;
        let known = clouds.app.node(node).await;
        assert_eq!(known.attestation, attestation);
        assert!(known.attestation.is_attested() && known.binding.is_some());
        assert_eq!(clouds.app.refused(join.request()).await.kind, "challenge_replayed");

        // Its key alone renews the token, whatever evidence says then: a cloud that does not answer takes no node away.
        let again = Join::by(&clouds.app, join.pair, node, None).await;
        let again = again.changed(|proof| proof.evidence = Some(Evidence::AwsIid { pkcs7: "unreadable".into() }));
        clouds.app.joined(&again).await;
        assert_eq!(clouds.app.node(node).await.attestation, attestation);
    }
}

#[tokio::test]
async fn a_node_that_joined_by_the_fleet_token_is_attested_once_it_shows_evidence() {
    let clouds = Clouds::new().await;
    let first = Join::new(&clouds.app, NODE, Some(&clouds.app.join_token())).await;
    clouds.app.joined(&first).await;
    assert_eq!(clouds.app.node(NODE).await.attestation, Attestation::FleetToken);
    let forged = Join::by(&clouds.app, first.pair, NODE, None).await;
    let forged = forged.changed(|proof| proof.evidence = Some(document(&clouds.stranger, NODE)));
    assert_eq!(clouds.app.refused(forged.request()).await.kind, "evidence_forged");
    let again = Join::by(&clouds.app, forged.pair, NODE, None).await;
    let again = again.changed(|proof| proof.evidence = Some(document(&clouds.signer, NODE)));
    clouds.app.joined(&again).await;
    let node = clouds.app.node(NODE).await;
    assert!(node.attestation == Attestation::AwsIid && node.disputed.is_none(), "{node:?}");
}

#[tokio::test]
async fn whoever_reads_the_metadata_service_and_has_no_join_secret_is_nobody() {
    let clouds = Clouds::new().await;
    let shown = |join: Join| join.changed(|proof| proof.evidence = Some(document(&clouds.signer, NODE)));
    let process = shown(Join::new(&clouds.app, NODE, None).await);
    assert_eq!(clouds.app.refused(process.request()).await.kind, "join_secret_required");
    assert!(clouds.app.store.nodes().await.unwrap().is_empty());

    let agent = shown(Join::new(&clouds.app, NODE, Some(&clouds.app.join_token())).await);
    clouds.app.joined(&agent).await;
    let process = shown(Join::new(&clouds.app, NODE, None).await);
    assert_eq!(clouds.app.refused(process.request()).await.kind, "join_secret_required");
    assert_eq!(clouds.app.node(NODE).await.disputed, None, "it cannot even make the node disputed");

    // With a stolen fleet token as well, it makes the node disputed and nothing else.
    let thief = shown(Join::new(&clouds.app, NODE, Some(&clouds.app.join_token())).await);
    assert_eq!(clouds.app.refused(thief.request()).await.kind, "key_mismatch");
    let node = clouds.app.node(NODE).await;
    assert_eq!(node.binding.unwrap().public_key, hex::encode(agent.pair.public_key()));
    assert!(node.disputed.is_some());
    // Evidence that was taken off its join is not that of the signature.
    let mut changed = Join::new(&clouds.app, NODE, Some(&clouds.app.join_token())).await;
    let signed = changed.request();
    changed = shown(changed);
    let (parts, _) = signed.into_parts();
    let body = serde_json::to_vec(&changed.request).unwrap();
    assert_eq!(clouds.app.refused(Request::from_parts(parts, body.into())).await.kind, "signature_invalid");
}

#[tokio::test]
async fn documents_that_prove_nothing_are_refused_by_name_and_leave_no_trace() {
    let clouds = Clouds::new().await;
    let account = NODE.replace("123456789012", "999999999999");
    let (region, instance) = (NODE.replace("eu-central-1", "moon-1"), NODE.replace("abcdef0", "abcdef1"));
    let pkcs7 = |text: &str| Evidence::AwsIid { pkcs7: text.to_owned() };
    for (what, node, evidence, kind) in [
        ("signed by another key", NODE, document(&clouds.stranger, NODE), "evidence_forged"),
        ("of another account than the node's", NODE, document(&clouds.signer, &account), "foreign_instance"),
        ("of another instance", NODE, document(&clouds.signer, &instance), "foreign_instance"),
        (
            "of a region without a certificate",
            region.as_str(),
            document(&clouds.signer, &region),
            "unknown_certificate",
        ),
        ("of EC2 for a machine outside", OTHER, document(&clouds.signer, NODE), "foreign_instance"),
        ("no document", NODE, pkcs7("MIAG"), "evidence_malformed"),
        ("too long", NODE, pkcs7(&"A".repeat(9_000)), "evidence_malformed"),
        ("a token of Google's", NODE, token(&clouds.signer), "foreign_instance"),
    ] {
        assert_eq!(clouds.refused_as(node, evidence).await, kind, "{what}");
    }
    let join = clouds.join(NODE, pkcs7(&"A".repeat(20_000))).await;
    assert_eq!(clouds.app.refused(join.request()).await.kind, "too_large");
}

#[tokio::test]
async fn tokens_that_prove_nothing_are_refused_by_name_and_leave_no_trace() {
    let clouds = Clouds::new().await;
    let now = Timestamp::now().as_second();
    let with = |change: fn(&mut Value, &mut Value)| token_with(&clouds.signer, change);
    let expired = token_with(&clouds.signer, |_, claims| {
        (claims["iat"], claims["exp"]) = ((now - 7_200).into(), (now - 3_600).into());
    });
    for (what, node, evidence, kind) in [
        ("signed by another key", GCP_NODE, token(&clouds.stranger), "evidence_forged"),
        ("expired", GCP_NODE, expired, "evidence_expired"),
        (
            "for another audience",
            GCP_NODE,
            with(|_, claims| claims["aud"] = "https://other.example.com".into()),
            "wrong_audience",
        ),
        (
            "of another instance",
            GCP_NODE,
            with(|_, claims| claims["google"]["compute_engine"]["instance_id"] = "1".into()),
            "foreign_instance",
        ),
        ("of a key nobody has", GCP_NODE, with(|header, _| header["kid"] = "two".into()), "unknown_signing_key"),
        ("by no algorithm", GCP_NODE, with(|header, _| header["alg"] = "none".into()), "evidence_malformed"),
    ] {
        assert_eq!(clouds.refused_as(node, evidence).await, kind, "{what}");
    }
    let offline = Clouds::with(|identity| identity.google_keys = "/nonexistent/keys.json".into()).await;
    assert_eq!(offline.refused_as(GCP_NODE, token(&offline.signer)).await, "evidence_unverified");
}

#[tokio::test]
async fn a_document_outlives_its_machine_and_is_worth_nothing_then() {
    use sea_orm::ConnectionTrait as _;
    let clouds = Clouds::new().await;
    let put = |from: u32, until: &str, state: &str| {
        format!(
            "INSERT INTO resource_versions (provider, account, region, kind, resource, from_unix_ms, until_unix_ms, sha256, record) \
             VALUES ('aws', '123456789012', 'eu-central-1', 'instance', '{NODE}', {from}, {until}, '{from}', '{{\"state\":\"{state}\"}}')"
        )
    };
    let connection = clouds.app.store.connection();
    connection.execute_unprepared(&put(1, "2", "running")).await.unwrap();
    assert_eq!(clouds.refused_as(NODE, document(&clouds.signer, NODE)).await, "instance_gone");
    connection.execute_unprepared(&put(2, "NULL", "terminated")).await.unwrap();
    assert_eq!(clouds.refused_as(NODE, document(&clouds.signer, NODE)).await, "instance_gone");
    connection.execute_unprepared("DELETE FROM resource_versions").await.unwrap();
    connection.execute_unprepared(&put(3, "NULL", "running")).await.unwrap();
    clouds.app.joined(&clouds.join(NODE, document(&clouds.signer, NODE)).await).await;
}

#[tokio::test]
async fn evidence_is_asked_for_where_it_could_be_verified() {
    let clouds = Clouds::new().await;
    let unknown = NODE.replace("123456789012", "999999999999");
    let elsewhere = NODE.replace("eu-central-1", "moon-1");
    for (node, kinds) in [
        (NODE, &["aws_iid"][..]),
        (GCP_NODE, &["gcp_token"]),
        (OTHER, &[]),
        (unknown.as_str(), &["aws_iid"]),
        (elsewhere.as_str(), &[]),
    ] {
        assert_eq!(clouds.app.asks(node).await, kinds, "{node}");
    }
    let clouds = Clouds::with(|identity| identity.audience = None).await;
    assert!(clouds.app.asks(GCP_NODE).await.is_empty(), "a token names an audience, and this sweeper has none");
    assert_eq!(clouds.refused_as(GCP_NODE, token(&clouds.signer)).await, "evidence_not_accepted");
    let clouds = Clouds::with(|identity| identity.evidence = vec![Kind::GcpToken]).await;
    assert!(clouds.app.asks(NODE).await.is_empty());
    assert_eq!(clouds.refused_as(NODE, document(&clouds.signer, NODE)).await, "evidence_not_accepted");
}

#[tokio::test]
async fn a_challenge_does_not_tell_which_accounts_are_swept_and_evidence_of_others_counts_nothing() {
    let clouds = Clouds::with(|identity| identity.accounts = vec!["omics-prod-1".into()]).await;
    let before = clouds.app.asks(NODE).await;
    let foreign = "gcp:other-project:europe-west3-a:8032137264186745012";
    assert_eq!(clouds.app.asks(foreign).await, clouds.app.asks(GCP_NODE).await);
    // Whatever it says: of a machine that is not swept nothing is verified, nor asked of a cloud.
    let first = clouds.join(NODE, document(&clouds.signer, NODE)).await;
    clouds.app.joined(&first).await;
    clouds.app.joined(&clouds.join(foreign, Evidence::GcpToken { token: "unreadable".into() }).await).await;
    for node in [NODE, foreign] {
        assert_eq!(clouds.app.node(node).await.attestation, Attestation::FleetToken, "{node}");
    }

    // Once its account is swept, the next renewal of its token attests it.
    let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "us-east-1".into() };
    clouds.app.store.register_scopes(&[scope].into(), Duration::from_secs(10)).await.unwrap();
    assert_eq!((clouds.app.asks(NODE).await, before.as_slice()), (before.clone(), &["aws_iid".to_owned()][..]));
    let again = Join::by(&clouds.app, first.pair, NODE, None).await;
    let again = again.changed(|proof| proof.evidence = Some(document(&clouds.signer, NODE)));
    clouds.app.joined(&again).await;
    assert_eq!(clouds.app.node(NODE).await.attestation, Attestation::AwsIid);
}
