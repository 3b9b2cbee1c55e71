//! Credentials and clients: everything that a call needs, found the standard way.
//!
//! Whatever Google's own libraries honour is honoured (Application Default Credentials): the file that
//! `GOOGLE_APPLICATION_CREDENTIALS` names, what `gcloud auth application-default login` left, the metadata service.

use std::{path::PathBuf, sync::Arc};

use axum::http::Extensions;
use google_cloud_auth::credentials::{Builder, CredentialsProvider as _};
use google_cloud_compute_v1::client::{Addresses, Disks, InstanceGroupManagers, Instances, MachineTypes};
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_monitoring_v3::client::MetricService;

use super::{
    Options,
    renewable::{Renewable, Source},
};
use crate::{
    chain,
    inventory::{Failure, FailureKind},
};

/// Credentials that were found, and how to call with them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) clients: Arc<Clients>,
    pub(super) credentials: Renewable,
    pub(super) options: Options,
}

/// One for each service. They try once: whoever calls them knows better when to try again.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) instances: Instances,
    pub(super) disks: Disks,
    pub(super) addresses: Addresses,
    pub(super) groups: InstanceGroupManagers,
    pub(super) machine_types: MachineTypes,
    pub(super) monitoring: MetricService,
    /// For lists that no client here is built with.
    pub(super) plain: reqwest::Client,
}

/// Sets what all clients have in common, and builds one.
macro_rules! client {
    ($client:ident, $endpoint:expr, $credentials:expr, $options:expr) => {{
        let builder = $client::builder()
            .with_credentials($credentials.clone())
            .with_retry_policy(NeverRetry)
            .with_attempt_timeout($options.attempt_timeout);
        let builder = match $endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint.clone()),
            None => builder,
        };
        builder.build().await.map_err(|error| Failure { kind: FailureKind::Credentials, message: chain(&error) })?
    }};
}

impl Session {
    /// Finds credentials the standard way; none if no variable, file or metadata service has any.
    ///
    /// # Errors
    /// Credentials are named but cannot be had: that is a mistake to report, not a project to leave out.
    pub async fn open(options: &Options) -> Result<Option<Self>, Failure> {
        let named = named();
        let refused = |message: String| match &named {
            Some(name) => Err(Failure { kind: FailureKind::Credentials, message: format!("{name}: {message}") }),
            None => Ok(None),
        };
        let credentials = match Renewable::new(|| Builder::default().build()) {
            Ok(credentials) => credentials,
            Err(error) => return refused(chain(&error)),
        };
        match tokio::time::timeout(options.credentials_timeout, credentials.headers(Extensions::new())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return refused(chain(&error)),
            Err(_) => return refused(format!("no token within {} s", options.credentials_timeout.as_secs_f32())),
        }
        Self::with(credentials, options).await.map(Some)
    }

    /// The same, where something else than the environment says who to be.
    ///
    /// # Errors
    /// The credentials cannot be had, or a client cannot be made.
    pub async fn open_with(source: Source, options: &Options) -> Result<Self, Failure> {
        let credentials = Renewable::new(source)
            .map_err(|error| Failure { kind: FailureKind::Credentials, message: chain(&error) })?;
        Self::with(credentials, options).await
    }

    async fn with(credentials: Renewable, options: &Options) -> Result<Self, Failure> {
        let compute = &options.compute_endpoint;
        let plain =
            reqwest::Client::builder().timeout(options.attempt_timeout).redirect(reqwest::redirect::Policy::none());
        let plain =
            plain.build().map_err(|error| Failure { kind: FailureKind::Unreachable, message: chain(&error) })?;
        let clients = Clients {
            instances: client!(Instances, compute, credentials, options),
            disks: client!(Disks, compute, credentials, options),
            addresses: client!(Addresses, compute, credentials, options),
            groups: client!(InstanceGroupManagers, compute, credentials, options),
            machine_types: client!(MachineTypes, compute, credentials, options),
            monitoring: client!(MetricService, &options.monitoring_endpoint, credentials, options),
            plain,
        };
        Ok(Self { clients: Arc::new(clients), credentials, options: options.clone() })
    }
}

/// What names credentials here, if anything does; whoever set it expects it to be used. Google's library looks in the same places.
fn named() -> Option<String> {
    const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
    if std::env::var_os(VARIABLE).is_some() {
        return Some(VARIABLE.to_owned());
    }
    let file = PathBuf::from(std::env::var_os("HOME")?).join(".config/gcloud/application_default_credentials.json");
    file.exists().then(|| file.display().to_string())
}
