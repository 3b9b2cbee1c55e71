#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::identity::machine::{Firmware, Keep, boot_id, firmware};
use axum::{
    Router,
    extract::RawQuery,
    http::{HeaderMap, StatusCode},
    routing::{get, put},
};
use std::{fs, time::Instant};

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// IMDSv2 as EC2 speaks it: no token, no answer.
async fn imds(document: &'static str) -> String {
    let token = put(|headers: HeaderMap| async move {
        match headers.get("X-aws-ec2-metadata-token-ttl-seconds") {
            Some(_) => Ok("a-token"),
            None => Err(StatusCode::BAD_REQUEST),
        }
    });
    let document = get(move |headers: HeaderMap| async move {
        match headers.get("X-aws-ec2-metadata-token").map(|value| value.as_bytes() == b"a-token") {
            Some(true) => Ok(document),
            _ => Err(StatusCode::UNAUTHORIZED),
        }
    });
    let router = Router::new()
        .route("/latest/api/token", token)
        .route("/latest/dynamic/instance-identity/document", document.clone())
        .route("/latest/dynamic/instance-identity/rsa2048", document);
    format!("http://{}", serve(router).await)
}

async fn gce(flavor: &'static str) -> String {
    let answer = move |text: &'static str| {
        get(move |headers: HeaderMap| async move {
            match headers.get("Metadata-Flavor").map(|value| value.as_bytes() == b"Google") {
                Some(true) => Ok(([("Metadata-Flavor", flavor)], text)),
                _ => Err(StatusCode::FORBIDDEN),
            }
        })
    };
    let router = Router::new()
        .route("/computeMetadata/v1/project/project-id", answer("my-project"))
        .route("/computeMetadata/v1/instance/zone", answer("projects/123/zones/europe-west3-a"))
        .route("/computeMetadata/v1/instance/id", answer("1234567890123456789"))
        .route(
            "/computeMetadata/v1/instance/service-accounts/default/identity",
            get(
                |RawQuery(query): RawQuery| async move { ([("Metadata-Flavor", "Google")], query.unwrap_or_default()) },
            ),
        );
    serve(router).await
}

/// A root directory with a machine id, and no metadata service in reach.
struct Host {
    root: tempfile::TempDir,
    settings: Settings,
}

const CLOSED: &str = "127.0.0.1:1";

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings {
            choice: IdentityChoice::Auto,
            aws: aws::Settings { endpoint: format!("http://{CLOSED}"), overridden: false, disabled: false },
            gcp: gcp::Settings { host: CLOSED.to_owned(), overridden: false },
            root: root.path().to_owned(),
            state_dir: root.path().join("state"),
            keep: Keep::Yes,
        };
        let host = Self { root, settings };
        host.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
        host
    }

    fn with_dmi(vendor: &str, product: &str) -> Self {
        let host = Self::new();
        host.write("sys/class/dmi/id/sys_vendor", vendor);
        host.write("sys/class/dmi/id/product_name", product);
        host
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn node_id(&self) -> Result<String, String> {
        discover(&self.settings).await.map(|found| found.node_id.to_string()).map_err(|error| error.to_string())
    }
}

const DOCUMENT: &str = r#"{"accountId":"123456789012","region":"eu-central-1","instanceId":"i-0123456789abcdef0","architecture":"x86_64"}"#;
const INSTANCE: &str = "aws:123456789012:eu-central-1:i-0123456789abcdef0";

#[tokio::test]
async fn an_instance_names_itself_through_imdsv2() {
    let mut host = Host::with_dmi("Amazon EC2", "m7i.large");
    host.settings.aws.endpoint = imds(DOCUMENT).await;
    assert_eq!(host.node_id().await.as_deref(), Ok(INSTANCE));
}

#[tokio::test]
async fn a_compute_engine_instance_names_itself() {
    let mut host = Host::with_dmi("Google", "Google Compute Engine");
    host.settings.gcp.host = gce("Google").await;
    assert_eq!(host.node_id().await.as_deref(), Ok("gcp:my-project:europe-west3-a:1234567890123456789"));
    host.settings.gcp.host = gce("Someone").await;
    assert!(host.node_id().await.unwrap_err().contains("without the header Metadata-Flavor"));
}

#[tokio::test]
async fn a_named_endpoint_is_asked_whatever_the_firmware_says() {
    let mut host = Host::with_dmi("QEMU", "Standard PC");
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT".to_owned(), format!("{}/", imds(DOCUMENT).await))];
    let surroundings = Surroundings { variables: variables.into(), root: true };
    host.settings.aws = aws::Settings::from_variables(&surroundings);
    assert_eq!(host.node_id().await.as_deref(), Ok(INSTANCE));
}

#[tokio::test]
async fn a_cloud_machine_never_turns_into_a_host_when_its_metadata_service_fails() {
    let broken = format!("http://{}", serve(Router::new()).await);
    let mut host = Host::with_dmi("Amazon EC2", "m7i.large");
    for (endpoint, says) in [
        (broken.clone(), "/latest/api/token answered 404"),
        (format!("http://{CLOSED}"), "no answer from"),
        (imds("<html>").await, "something unexpected"),
        (imds(r#"{"accountId":"1","region":"r","instanceId":"i"}"#).await, "is not a node id"),
    ] {
        host.settings.aws.endpoint = endpoint;
        let error = host.node_id().await.unwrap_err();
        assert!(error.contains(says) && error.contains("EC2's metadata service"), "{error}");
    }
    let mut host = Host::with_dmi("Google", "Google Compute Engine");
    host.settings.gcp.host = broken.trim_start_matches("http://").to_owned();
    assert!(host.node_id().await.unwrap_err().contains("answered 404"));
}

#[tokio::test]
async fn a_host_outside_a_cloud_asks_nobody() {
    let mut host = Host::with_dmi("Dell Inc.", "PowerEdge");
    // Would answer, if it were asked.
    host.settings.aws.endpoint = imds(DOCUMENT).await;
    assert!(host.node_id().await.unwrap().starts_with("host:"));
}

#[tokio::test]
async fn without_firmware_both_are_asked_and_silence_costs_under_two_seconds() {
    let mut host = Host::new();
    // Accepts connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = silent.local_addr().map(|address| (silent, address)).unwrap();
    host.settings.aws.endpoint = format!("http://{}", silent.1);
    host.settings.gcp.host = silent.1.to_string();
    let start = Instant::now();
    assert!(host.node_id().await.unwrap().starts_with("host:"));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    host.settings.gcp.host = gce("Google").await;
    assert!(host.node_id().await.unwrap().starts_with("gcp:my-project"));
}

#[tokio::test]
async fn whoever_forbids_metadata_gets_a_host() {
    let mut host = Host::with_dmi("Amazon EC2", "m7i.large");
    host.settings.aws.endpoint = imds(DOCUMENT).await;
    host.settings.aws.disabled = true;
    assert!(host.node_id().await.unwrap().starts_with("host:"));
    host.settings.choice = IdentityChoice::Aws;
    assert!(host.node_id().await.unwrap_err().contains("AWS_EC2_METADATA_DISABLED forbids"));
}

#[test]
fn the_machine_id_is_hashed_and_the_hash_never_changes() {
    let host = Host::new();
    let identity = machine::identify(host.root.path(), &host.settings.state_dir, Keep::No).unwrap();
    // Computed apart: HMAC-SHA256, key `cloud-sweeper/node-agent/host-id/1`, message `machine-id:0123456789abcdef0123456789abcdef`.
    assert_eq!(identity.node_id.to_string(), "host:517feb1cd6a30f9ca8ff11f6f02780af");
}

#[test]
fn without_a_machine_id_the_firmware_then_a_kept_id_speaks() {
    let host = Host::new();
    let find = |keep| machine::identify(host.root.path(), &host.settings.state_dir, keep);
    host.write("etc/machine-id", "uninitialized\n");
    host.write("sys/class/dmi/id/product_uuid", "EC2A1B2C-0000-1111-2222-333344445555\n");
    let by_firmware = find(Keep::No).unwrap();
    assert!(by_firmware.source.contains("product_uuid"));

    host.write("sys/class/dmi/id/product_uuid", "03000200-0400-0500-0006-000700080009\n");
    assert!(find(Keep::No).is_err(), "only looking makes nothing up");
    let made_up = find(Keep::Yes).unwrap();
    assert_eq!(find(Keep::No).unwrap(), made_up);
    assert_ne!(made_up.node_id, by_firmware.node_id);
    fs::write(host.settings.state_dir.join("host-id"), "oops").unwrap();
    assert!(find(Keep::Yes).unwrap_err().to_string().contains("holds no id"));
}

#[test]
fn firmware_is_told_apart() {
    for (vendor, product, expected) in [
        ("Amazon EC2\n", "c7g.large", Firmware::Ec2),
        ("Google", "Google Compute Engine", Firmware::ComputeEngine),
        ("Google", "Chromebook", Firmware::Other),
        ("Xen", "HVM domU", Firmware::Other),
        ("", "", Firmware::Unreadable),
    ] {
        assert_eq!(firmware(Host::with_dmi(vendor, product).root.path()), expected, "{vendor} {product}");
    }
    let xen = Host::with_dmi("Xen", "HVM domU");
    xen.write("sys/hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef");
    assert_eq!(firmware(xen.root.path()), Firmware::Ec2);
}

#[test]
fn this_kernel_has_a_boot_id() {
    assert_eq!(boot_id(Path::new("/")).unwrap(), boot_id(Path::new("/")).unwrap());
}

#[tokio::test]
async fn evidence_is_what_the_metadata_service_signs_for_the_sweeper_and_its_absence_no_hindrance() {
    use heartbeat::attestation::Evidence;
    let asked = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut host = Host::new();
    let node = INSTANCE.parse().unwrap();
    let purpose =
        evidence::Purpose { node: &node, audience: "https://sweeper.example.com/a?b", challenge: "of-this-join" };
    for words in [&[][..], &["aws_iid", "aws_sts", "gcp_token"], &["a later kind"]] {
        assert_eq!(evidence::gather(&asked(words), &host.settings, purpose).await, None, "nobody answers");
    }
    host.settings.aws.endpoint = imds("MIAG").await;
    host.settings.gcp.host = gce("Google").await;
    let document = Evidence::AwsIid { pkcs7: "MIAG".to_owned() };
    let token = "audience=https%3A%2F%2Fsweeper.example.com%2Fa%3Fb&format=full".to_owned();
    for (words, evidence) in [
        (&["a later kind", "aws_iid"][..], document),
        (&["aws_sts", "gcp_token", "aws_iid"], Evidence::GcpToken { token }),
    ] {
        assert_eq!(evidence::gather(&asked(words), &host.settings, purpose).await, Some(evidence));
    }
}

#[tokio::test]
async fn a_role_s_session_signs_audience_and_challenge() {
    use heartbeat::{attestation::Evidence, sts};
    const SESSION: &str = r#"{"Code":"Success","AccessKeyId":"ASIAIOSFODNN7EXAMPLE","SecretAccessKey":"s","Token":"IQoJ","Expiration":"x"}"#;
    let credentials = "/latest/meta-data/iam/security-credentials/";
    let router = Router::new()
        .route("/latest/api/token", put(|| async { "a-token" }))
        .route(credentials, get(|| async { "batch-worker\n" }))
        .route(&format!("{credentials}batch-worker"), get(|| async { SESSION }));
    let mut host = Host::new();
    host.settings.aws.endpoint = format!("http://{}", serve(router).await);
    let node = INSTANCE.parse().unwrap();
    let asked = ["aws_sts".to_owned()];
    let signed = async |audience, challenge| {
        let purpose = evidence::Purpose { node: &node, audience, challenge };
        match evidence::gather(&asked, &host.settings, purpose).await {
            Some(Evidence::AwsSts { time, session_token, authorization }) => (time, session_token, authorization),
            other => panic!("{other:?}"),
        }
    };
    let (time, session_token, authorization) = signed("https://sweeper.example.com", "one").await;
    assert_eq!(session_token, "IQoJ");
    let scope = format!("{}/eu-central-1/sts/aws4_request", &time[..8]);
    let head = format!(
        "AWS4-HMAC-SHA256 Credential=ASIAIOSFODNN7EXAMPLE/{scope}, SignedHeaders={}, Signature=",
        sts::SIGNED_HEADERS
    );
    assert!(authorization.starts_with(&head), "{authorization}");
    for (audience, challenge) in [("https://sweeper.example.com", "two"), ("https://other.example.com", "one")] {
        assert_ne!(signed(audience, challenge).await.2, authorization, "{audience} {challenge}");
    }
}
