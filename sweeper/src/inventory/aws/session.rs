//! Credentials, region, retries and time limits: everything that a call needs, found the standard way.
//!
//! Whatever the AWS command line honours is honoured: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID`, `AWS_REGION`,
//! `AWS_ENDPOINT_URL` with its per-service forms, shared files, single sign-on, container and instance roles.

use std::{error::Error, sync::Arc, time::Duration};

use aws_config::{
    BehaviorVersion, ConfigLoader, Region, SdkConfig, identity::IdentityCache, imds::client::error::ImdsError,
    meta::region::RegionProviderChain, retry::RetryConfig, sts::AssumeRoleProvider, timeout::TimeoutConfig,
};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider, error::CredentialsError},
};

use super::{Options, Role, credentials::Renewable, failure};
use crate::inventory::{Failure, FailureKind};

/// Asked where nothing names a region; any region answers who the caller is and which regions are enabled.
const DEFAULT_REGION: &str = "us-east-1";

/// The shortest that STS gives: an action's calls take seconds.
const ACT_FOR_S: i32 = 900;

/// Credentials that were found, and how to call with them. Cheap to clone; they are renewed as they expire.
#[derive(Clone, Debug)]
pub struct Session {
    sdk: Arc<SdkConfig>,
    credentials: Renewable,
}

impl Session {
    /// Finds credentials the standard way; none if no variable, file or metadata service has any.
    ///
    /// # Errors
    /// Credentials are named but cannot be had: a profile that does not exist, a role that cannot be assumed, a
    /// process that fails. That is a mistake to report, not an account to leave out.
    pub async fn open(options: &Options) -> Result<Option<Self>, Failure> {
        let region = RegionProviderChain::default_provider().or_else(Region::new(DEFAULT_REGION));
        let found =
            Self::open_with(aws_config::defaults(BehaviorVersion::v2026_01_12()).region(region), options).await?;
        match found {
            None => named_in(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).map_or(
                Ok(None),
                |name| {
                    Err(Failure {
                        kind: FailureKind::Credentials,
                        message: format!("{name} is set, but no credentials are found with it"),
                    })
                },
            ),
            found => Ok(found),
        }
    }

    /// The same, where something else than the environment says who to be and whom to ask.
    ///
    /// # Errors
    /// As for [`Session::open`].
    pub async fn open_with(loader: ConfigLoader, options: &Options) -> Result<Option<Self>, Failure> {
        let find = async {
            let sdk = loader
                .retry_config(
                    RetryConfig::adaptive()
                        .with_max_attempts(options.retry.attempts)
                        .with_max_backoff(Duration::from_secs(20)),
                )
                .timeout_config(
                    TimeoutConfig::builder()
                        .connect_timeout(Duration::from_secs(5))
                        .operation_attempt_timeout(options.attempt_timeout)
                        .operation_timeout(options.call_timeout)
                        .build(),
                )
                .load()
                .await;
            let session = sdk.credentials_provider().map(|source| Self::with(&sdk, source));
            let session = session.ok_or_else(CredentialsError::not_loaded_no_source)?;
            session.credentials.provide_credentials().await?;
            Ok(session)
        };
        match tokio::time::timeout(options.credentials_timeout, find).await {
            Ok(Ok(session)) => Ok(Some(session)),
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) => Ok(None),
            Ok(Err(error)) if has_no_metadata_service(&error) => Ok(None),
            Ok(Err(error)) => Err(failure::of_credentials(&error)),
            Err(_) => Err(late(options.credentials_timeout)),
        }
    }

    fn with(sdk: &SdkConfig, source: SharedCredentialsProvider) -> Self {
        let credentials = Renewable::new(source);
        let sdk = sdk
            .to_builder()
            .credentials_provider(SharedCredentialsProvider::new(credentials.clone()))
            .identity_cache(IdentityCache::no_cache())
            .build();
        Self { sdk: Arc::new(sdk), credentials }
    }

    /// The same region, endpoints and limits with the credentials of a role, which are renewed as they expire.
    ///
    /// # Errors
    /// The role cannot be assumed now.
    pub(super) async fn assume(&self, role: &Role) -> Result<Self, Failure> {
        let mut provider =
            AssumeRoleProvider::builder(role.arn.as_str()).configure(&self.sdk).session_name(&role.session_name);
        if let Some(external_id) = &role.external_id {
            provider = provider.external_id(external_id);
        }
        let source = SharedCredentialsProvider::new(provider.build().await);
        let session = Self::with(&self.sdk, source);
        // The calls of STS have their own time limits and attempts.
        match session.credentials.provide_credentials().await {
            Ok(_) => Ok(session),
            Err(error) => Err(failure::of_credentials(&error)),
        }
    }

    /// The same with a short session of a role that carries who it acts for, so that CloudTrail tells it of each call. It is not renewed.
    ///
    /// # Errors
    /// The role cannot be assumed now, or not with a source identity (`sts:SetSourceIdentity`).
    pub async fn act_as(&self, role: &Role, source_identity: &str) -> Result<Self, Failure> {
        let assumed = self
            .sts()
            .assume_role()
            .role_arn(role.arn.as_str())
            .role_session_name(&role.session_name)
            .source_identity(source_identity)
            .set_external_id(role.external_id.clone())
            .duration_seconds(ACT_FOR_S)
            .send()
            .await
            .map_err(|error| failure::of(&error))?;
        let missing = || Failure {
            kind: FailureKind::Malformed,
            message: "sts:AssumeRole answered without credentials".to_owned(),
        };
        let given = assumed.credentials.ok_or_else(missing)?;
        let expires = std::time::SystemTime::try_from(given.expiration).ok();
        let credentials = Credentials::new(
            given.access_key_id,
            given.secret_access_key,
            Some(given.session_token),
            expires,
            "AssumeRole",
        );
        Ok(Self::with(&self.sdk, SharedCredentialsProvider::new(credentials)))
    }

    /// What calls are signed with.
    pub(super) fn credentials(&self) -> &Renewable {
        &self.credentials
    }

    /// Where calls go that any region answers.
    pub(super) fn region(&self) -> &str {
        self.sdk.region().map_or(DEFAULT_REGION, |region| region.as_ref())
    }

    pub(super) fn sts(&self) -> aws_sdk_sts::Client {
        aws_sdk_sts::Client::new(&self.sdk)
    }

    /// It tries once: whoever calls it knows better when to try again.
    pub(crate) fn ec2(&self, region: &str) -> aws_sdk_ec2::Client {
        let config = aws_sdk_ec2::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_ec2::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(crate) fn autoscaling(&self, region: &str) -> aws_sdk_autoscaling::Client {
        let config = aws_sdk_autoscaling::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_autoscaling::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(super) fn cloudwatch(&self, region: &str) -> aws_sdk_cloudwatch::Client {
        let config = aws_sdk_cloudwatch::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_cloudwatch::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(super) fn cloudtrail(&self, region: &str) -> aws_sdk_cloudtrail::Client {
        let config = aws_sdk_cloudtrail::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_cloudtrail::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(crate) fn batch(&self, region: &str) -> aws_sdk_batch::Client {
        let config = aws_sdk_batch::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_batch::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(super) fn ecs(&self, region: &str) -> aws_sdk_ecs::Client {
        let config = aws_sdk_ecs::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_ecs::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(super) fn load_balancing(&self, region: &str) -> aws_sdk_elasticloadbalancingv2::Client {
        let config = aws_sdk_elasticloadbalancingv2::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_elasticloadbalancingv2::Client::from_conf(config.build())
    }

    /// Likewise.
    pub(super) fn classic_load_balancing(&self, region: &str) -> aws_sdk_elasticloadbalancing::Client {
        let config = aws_sdk_elasticloadbalancing::config::Builder::from(self.sdk.as_ref())
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled());
        aws_sdk_elasticloadbalancing::Client::from_conf(config.build())
    }

    pub(crate) fn pricing(&self, region: &str) -> aws_sdk_pricing::Client {
        aws_sdk_pricing::Client::from_conf(
            aws_sdk_pricing::config::Builder::from(self.sdk.as_ref()).region(Region::new(region.to_owned())).build(),
        )
    }
}

fn late(timeout: Duration) -> Failure {
    Failure { kind: FailureKind::TimedOut, message: format!("no credentials within {} s", timeout.as_secs_f32()) }
}

/// Set to name credentials, all of them; whoever sets one expects it to be used.
const NAMING: [&str; 6] = [
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

fn named_in(is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    NAMING.into_iter().find(|name| is_set(name))
}

/// The metadata service is the last place to look. Off EC2 the same address may belong to another cloud or to a proxy, which
/// answers the request for a token in its own way: not with one.
fn has_no_metadata_service(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ImdsError::FailedToLoadToken(_)) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_credential_types::provider::{Result as Found, future};

    /// Answers as told, or never.
    #[derive(Debug)]
    struct Source(fn() -> Option<Found>);

    impl ProvideCredentials for Source {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            match (self.0)() {
                Some(found) => future::ProvideCredentials::ready(found),
                None => future::ProvideCredentials::new(std::future::pending()),
            }
        }
    }

    async fn open(source: fn() -> Option<Found>) -> Result<bool, FailureKind> {
        let loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(Region::new(DEFAULT_REGION))
            .credentials_provider(Source(source));
        let options = Options { credentials_timeout: Duration::from_millis(50), ..Options::default() };
        Session::open_with(loader, &options).await.map(|session| session.is_some()).map_err(|failure| failure.kind)
    }

    #[test]
    fn a_variable_that_names_credentials_is_named_in_the_error() {
        assert_eq!(named_in(|name| name == "AWS_PROFILE"), Some("AWS_PROFILE"));
        assert_eq!(named_in(|name| name == "AWS_REGION"), None);
    }

    #[tokio::test]
    async fn no_credentials_is_an_answer_and_bad_ones_are_an_error() {
        let good = || Some(Ok(Credentials::new("AKIAIOSFODNN7EXAMPLE", "unchecked", None, None, "test")));
        assert_eq!(open(good).await, Ok(true));
        assert_eq!(open(|| Some(Err(CredentialsError::not_loaded_no_source()))).await, Ok(false));
        assert_eq!(
            open(|| Some(Err(CredentialsError::invalid_configuration("no such profile")))).await,
            Err(FailureKind::Credentials)
        );
        assert_eq!(open(|| None).await, Err(FailureKind::TimedOut), "a source that hangs is not waited for");
    }
}
