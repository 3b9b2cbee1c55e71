//! Which machine this is: the cloud's own name for it, else a keyed hash of the machine id.
//!
//! The firmware (DMI) decides whom to ask, so that a host outside a cloud asks nobody and starts without delay. Where the
//! firmware cannot be read, both metadata services are asked at once, for at most 1.5 s. Where it names a cloud, that
//! cloud's metadata service must answer: an identity that turned into `host:…` on a bad day would be a second node, and
//! the first would look silent. So an error there is an error, and the caller asks again.

pub mod aws;
pub mod evidence;
pub mod gcp;
pub mod key;
pub mod machine;
mod sigv4;

use crate::config::{IdentityChoice, Surroundings};
use heartbeat::NodeId;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Time for one metadata service to answer all that is asked.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Who this node is and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name under which the sweeper knows it.
    pub node_id: NodeId,
    /// Where the name comes from, in words.
    pub source: String,
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A metadata service that must answer did not, or not sensibly.
    #[error("{service} did not say which machine this is: {source}. {remedy}")]
    Metadata {
        /// `EC2's metadata service` or `Compute Engine's metadata service`.
        service: &'static str,
        /// What went wrong.
        source: MetadataError,
        /// What the reader can do.
        remedy: &'static str,
    },
    /// Two settings that exclude each other.
    #[error("identity = \"aws\", but AWS_EC2_METADATA_DISABLED forbids to ask; unset one of the two")]
    Disabled,
    /// No machine id and no place to keep one.
    #[error("this host has no machine id, and {path} cannot keep a made-up one: {source}")]
    Machine {
        /// The file that would hold it.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
}

/// What went wrong with a metadata service.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// Nobody answered.
    #[error("no answer from {url} ({why})")]
    NoAnswer {
        /// What was asked.
        url: String,
        /// Why not.
        why: String,
    },
    /// An answer, but not the one that was asked for.
    #[error("{url} answered {status}")]
    Status {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// An answer that makes no sense.
    #[error("{url} answered something unexpected: {why}")]
    Unexpected {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Everything that decides where to look.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configured choice.
    pub choice: IdentityChoice,
    /// EC2's metadata service.
    pub aws: aws::Settings,
    /// Compute Engine's metadata service.
    pub gcp: gcp::Settings,
    /// `/`, or where a test keeps its files.
    pub root: PathBuf,
    /// Where a made-up id is kept.
    pub state_dir: PathBuf,
    /// Whether a made-up id may be written.
    pub keep: machine::Keep,
}

impl Settings {
    /// From the configuration and the standard variables of both clouds.
    #[must_use]
    pub fn new(choice: IdentityChoice, surroundings: &Surroundings, state_dir: &Path, keep: machine::Keep) -> Self {
        Self {
            choice,
            aws: aws::Settings::from_variables(surroundings),
            gcp: gcp::Settings::from_variables(surroundings),
            root: PathBuf::from("/"),
            state_dir: state_dir.to_owned(),
            keep,
        }
    }
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Aws,
    Gcp,
    Either,
    Host,
}

fn plan(choice: IdentityChoice, firmware: machine::Firmware, aws: &aws::Settings, gcp: &gcp::Settings) -> Plan {
    use machine::Firmware;
    let aws_named = aws.overridden && !aws.disabled;
    match (choice, firmware) {
        (IdentityChoice::Host, _) => Plan::Host,
        (IdentityChoice::Aws, _) => Plan::Aws,
        (IdentityChoice::Gcp, _) => Plan::Gcp,
        (IdentityChoice::Auto, Firmware::ComputeEngine) if gcp.overridden => Plan::Gcp,
        (IdentityChoice::Auto, _) if aws_named => Plan::Aws,
        (IdentityChoice::Auto, _) if gcp.overridden => Plan::Gcp,
        (IdentityChoice::Auto, Firmware::Ec2) if aws.disabled => Plan::Host,
        (IdentityChoice::Auto, Firmware::Ec2) => Plan::Aws,
        (IdentityChoice::Auto, Firmware::ComputeEngine) => Plan::Gcp,
        (IdentityChoice::Auto, Firmware::Other) => Plan::Host,
        (IdentityChoice::Auto, Firmware::Unreadable) => Plan::Either,
    }
}

/// Asks once, for at most about 2 s.
///
/// # Errors
/// See [`IdentityError`]; a [`IdentityError::Metadata`] may pass, so ask again.
pub async fn discover(settings: &Settings) -> Result<Identity, IdentityError> {
    let host = || machine::identify(&settings.root, &settings.state_dir, settings.keep);
    match plan(settings.choice, machine::firmware(&settings.root), &settings.aws, &settings.gcp) {
        Plan::Aws if settings.aws.disabled => Err(IdentityError::Disabled),
        Plan::Aws => aws::identify(&settings.aws, TIMEOUT).await.map_err(|source| IdentityError::Metadata {
            service: "EC2's metadata service",
            source,
            remedy: "Enable it (in a container: with a hop limit of 2), or set identity = \"host\"",
        }),
        Plan::Gcp => gcp::identify(&settings.gcp, TIMEOUT).await.map_err(|source| IdentityError::Metadata {
            service: "Compute Engine's metadata service",
            source,
            remedy: "Let this host reach it, or set identity = \"host\"",
        }),
        Plan::Host => host(),
        Plan::Either => {
            let aws =
                async { if settings.aws.disabled { None } else { aws::identify(&settings.aws, TIMEOUT).await.ok() } };
            let (aws, gcp) = tokio::join!(aws, gcp::identify(&settings.gcp, TIMEOUT));
            aws.or(gcp.ok()).map_or_else(host, Ok)
        }
    }
}

/// One request to a metadata service.
async fn ask(request: reqwest::RequestBuilder) -> Result<(reqwest::header::HeaderMap, String), MetadataError> {
    let (client, request) = request.build_split();
    let no_answer = |url: String, error: &reqwest::Error| MetadataError::NoAnswer {
        url,
        why: if error.is_timeout() { "timed out".to_owned() } else { crate::http::chain(error) },
    };
    let request = request.map_err(|error| no_answer("its address".to_owned(), &error))?;
    let url = request.url().to_string();
    let response = client.execute(request).await.map_err(|error| no_answer(url.clone(), &error))?;
    if !response.status().is_success() {
        return Err(MetadataError::Status { url, status: response.status().as_u16() });
    }
    let headers = response.headers().clone();
    let body = crate::http::read_limited(response, 64 * 1024).await.map_err(|error| no_answer(url.clone(), &error))?;
    let text =
        String::from_utf8(body).map_err(|_| MetadataError::Unexpected { url, why: "it is not text".to_owned() })?;
    Ok((headers, text))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
