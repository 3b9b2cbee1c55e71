//! The metadata server of one Compute Engine instance, on a port of its own, with a key of the tests' own in Google's place.
//!
//! <https://cloud.google.com/compute/docs/instances/verifying-instance-identity> shows the token's fields.

use crate::ec2_signature::Signer;
use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing::get,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use std::{collections::HashMap, sync::Arc};
use tokio::{net::TcpListener, task::JoinHandle};

const PROJECT: &str = "omics-prod-1";
const ZONE: &str = "europe-west3-a";
const INSTANCE: &str = "8032137264186745012";
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");
const KEY_ID: &str = "one";

/// A running metadata server; it ends with this value.
#[derive(Debug)]
pub struct Gce {
    host: String,
    signer: Arc<Signer>,
    serving: JoinHandle<()>,
}

impl Drop for Gce {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Gce {
    /// Starts a server on the loopback interface.
    ///
    /// # Panics
    ///
    /// When no port is free.
    pub async fn start() -> Self {
        let signer = Arc::new(Signer::generate());
        let base = "/computeMetadata/v1";
        let router = Router::new()
            .route(&format!("{base}/project/project-id"), get(|headers| said(headers, PROJECT.to_owned())))
            .route(&format!("{base}/instance/zone"), get(|headers| said(headers, format!("projects/1/zones/{ZONE}"))))
            .route(&format!("{base}/instance/id"), get(|headers| said(headers, INSTANCE.to_owned())))
            .route(&format!("{base}/instance/service-accounts/default/identity"), get(token))
            .with_state(Arc::clone(&signer));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on the loopback interface");
        let host = listener.local_addr().expect("the port").to_string();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("the metadata server") });
        Self { host, signer, serving }
    }

    /// Where it listens: host and port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The project of its instance.
    #[must_use]
    pub fn project(&self) -> &'static str {
        PROJECT
    }

    /// The node id of its instance.
    #[must_use]
    pub fn node(&self) -> String {
        format!("gcp:{PROJECT}:{ZONE}:{INSTANCE}")
    }

    /// The keys of its tokens, in the shape of Google's.
    #[must_use]
    pub fn keys(&self) -> String {
        let (n, e) = self.signer.numbers();
        let (n, e) = (URL_SAFE_NO_PAD.encode(n), URL_SAFE_NO_PAD.encode(e));
        json!({ "keys": [{ "kid": KEY_ID, "kty": "RSA", "alg": "RS256", "use": "sig", "n": n, "e": e }] }).to_string()
    }
}

async fn said(headers: HeaderMap, text: String) -> Result<impl IntoResponse, StatusCode> {
    match headers.get(FLAVOR.0).map(|value| value.as_bytes() == FLAVOR.1.as_bytes()) {
        Some(true) => Ok(([FLAVOR], text)),
        _ => Err(StatusCode::FORBIDDEN),
    }
}

async fn token(
    State(signer): State<Arc<Signer>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, StatusCode> {
    let audience = query.get("audience").ok_or(StatusCode::BAD_REQUEST)?;
    let now = jiff::Timestamp::now().as_second();
    let mut claims = json!({
        "iss": "https://accounts.google.com", "aud": audience, "azp": "1", "sub": "1", "iat": now, "exp": now + 3_600,
    });
    if query.get("format").map(String::as_str) == Some("full") {
        claims["google"] = json!({ "compute_engine": {
            "project_id": PROJECT, "project_number": 1, "zone": ZONE, "instance_id": INSTANCE, "instance_name": "worker-1",
            "instance_creation_timestamp": now - 60,
        } });
    }
    let header = json!({ "alg": "RS256", "kid": KEY_ID, "typ": "JWT" });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(signer.signature(text.as_bytes()));
    said(headers, format!("{text}.{signature}")).await
}
