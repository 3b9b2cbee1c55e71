//! The instance metadata service (version 2 only) of one EC2 instance, on a port of its own.
//!
//! A micro-VM reaches this host's loopback as 10.0.2.2, so each VM gets a service that says which instance it is. Like
//! the real one it hands out a token for a PUT with a lifetime, and answers nothing without that token.

use std::{sync::Arc, thread};

use crate::ec2_signature::Signer;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::{get, put},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime, sync::oneshot};

const TOKEN: &str = "laboratory-token";

/// Which instance a service speaks for.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Twelve digits.
    pub account: String,
    /// For example `us-east-1`.
    pub region: String,
    /// `i-…`
    pub instance: String,
    /// For example `m5.large`.
    pub instance_type: String,
    /// `on-demand` or `spot`.
    pub life_cycle: String,
}

/// The credentials of an instance's role.
#[derive(Clone, Debug)]
pub struct Session {
    /// The role's name.
    pub role: String,
    /// `ASIA…`
    pub access_key_id: String,
    /// What it signs with.
    pub secret_access_key: String,
    /// The session's token.
    pub token: String,
}

/// A running metadata service; it ends with this value.
#[derive(Debug)]
pub struct Imds {
    port: u16,
    _end: oneshot::Sender<()>,
}

impl Imds {
    /// Starts a service on the loopback interface. It runs in a thread of its own, whatever the caller's runtime does.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start(identity: Identity) -> Self {
        Self::serve(Instance { identity, signer: None, session: None })
    }

    /// Starts one that signs its identity document, too.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start_signed(identity: Identity, signer: Arc<Signer>) -> Self {
        Self::serve(Instance { identity, signer: Some(signer), session: None })
    }

    /// Starts one that gives the credentials of a role's session, too.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start_with_role(identity: Identity, session: Session) -> Self {
        Self::serve(Instance { identity, signer: None, session: Some(session) })
    }

    fn serve(instance: Instance) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback interface");
        let port = listener.local_addr().expect("the port").port();
        listener.set_nonblocking(true).expect("a listener that does not block");
        let (end, ended) = oneshot::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let served = axum::serve(listener, router(instance));
                // The sender says nothing: that it is gone is the sign.
                let _ = served.with_graceful_shutdown(async { drop(ended.await) }).await;
            });
        });
        Self { port, _end: end }
    }

    /// Where it listens, as this host sees it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port, for those who reach this host under another address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// What a service knows.
struct Instance {
    identity: Identity,
    signer: Option<Arc<Signer>>,
    session: Option<Session>,
}

fn router(instance: Instance) -> Router {
    Router::new()
        .route("/latest/api/token", put(token))
        .route("/latest/dynamic/instance-identity/document", get(document))
        .route("/latest/dynamic/instance-identity/rsa2048", get(signed_document))
        .route("/latest/meta-data/{*what}", get(meta_data))
        .with_state(Arc::new(instance))
}

async fn token(headers: HeaderMap) -> Result<&'static str, StatusCode> {
    let lifetime = headers.get("x-aws-ec2-metadata-token-ttl-seconds").and_then(|value| value.to_str().ok());
    match lifetime.and_then(|seconds| seconds.parse().ok()) {
        Some(1..=21_600_u32) => Ok(TOKEN),
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

fn check(headers: &HeaderMap) -> Result<(), StatusCode> {
    let token = headers.get("x-aws-ec2-metadata-token").and_then(|value| value.to_str().ok());
    if token == Some(TOKEN) { Ok(()) } else { Err(StatusCode::UNAUTHORIZED) }
}

async fn document(State(of): State<Arc<Instance>>, headers: HeaderMap) -> Result<Json<Value>, StatusCode> {
    check(&headers)?;
    Ok(Json(of.identity.document()))
}

async fn signed_document(State(of): State<Arc<Instance>>, headers: HeaderMap) -> Result<String, StatusCode> {
    check(&headers)?;
    let signer = of.signer.as_ref().ok_or(StatusCode::NOT_FOUND)?;
    Ok(signer.sign(of.identity.document().to_string().as_bytes()))
}

impl Identity {
    /// Its identity document.
    fn document(&self) -> Value {
        let of = self;
        json!({
        "version": "2017-09-30", "accountId": of.account, "region": of.region, "instanceId": of.instance,
        "instanceType": of.instance_type, "availabilityZone": format!("{}a", of.region), "architecture": "x86_64",
        "imageId": "ami-00000000000000000", "pendingTime": "2026-01-01T00:00:00Z", "privateIp": "10.0.2.15",
        "billingProducts": null, "devpayProductCodes": null, "marketplaceProductCodes": null, "kernelId": null,
            "ramdiskId": null
        })
    }
}

async fn meta_data(
    State(of): State<Arc<Instance>>,
    Path(what): Path<String>,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    check(&headers)?;
    const ROLES: &str = "iam/security-credentials/";
    if let (Some(session), Some(role)) = (&of.session, what.strip_prefix(ROLES)) {
        return match role {
            "" => Ok(session.role.clone()),
            role if role == session.role => Ok(session.credentials().to_string()),
            _ => Err(StatusCode::NOT_FOUND),
        };
    }
    let of = &of.identity;
    match what.as_str() {
        "instance-id" => Ok(of.instance.clone()),
        "instance-type" => Ok(of.instance_type.clone()),
        "instance-life-cycle" => Ok(of.life_cycle.clone()),
        "placement/region" => Ok(of.region.clone()),
        "placement/availability-zone" => Ok(format!("{}a", of.region)),
        _ => Err(StatusCode::NOT_FOUND),
    }
}

impl Session {
    fn credentials(&self) -> Value {
        json!({
            "Code": "Success", "LastUpdated": "2026-01-01T00:00:00Z", "Type": "AWS-HMAC", "Expiration": "2036-01-01T00:00:00Z",
            "AccessKeyId": self.access_key_id, "SecretAccessKey": self.secret_access_key, "Token": self.token
        })
    }
}
