//! What is read of Google Cloud, and how patiently.

use model::Provider;
use std::time::Duration;

use crate::inventory::{RetryPolicy, Scope};

/// How to read Google Cloud.
#[derive(Clone, Debug)]
pub struct Options {
    /// The projects, by id.
    pub projects: Vec<String>,
    /// Where Compute Engine is asked, without a path; none: Google's own.
    pub compute_endpoint: Option<String>,
    /// Where Cloud Monitoring is asked; likewise.
    pub monitoring_endpoint: Option<String>,
    /// Where the catalogue of prices is asked for; likewise.
    pub billing_endpoint: Option<String>,
    /// Whether Cloud Monitoring is asked: Google may bill what it answers.
    pub monitoring: bool,
    /// Resources per page; Compute Engine allows up to 500.
    pub page_size: u32,
    /// How long a list is tried.
    pub retry: RetryPolicy,
    /// For one attempt of one call. The clients have none of their own.
    pub attempt_timeout: Duration,
    /// For finding credentials. Off Google's machines the last place to look is a metadata service that nobody answers for.
    pub credentials_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            projects: Vec::new(),
            compute_endpoint: None,
            monitoring_endpoint: None,
            billing_endpoint: None,
            monitoring: false,
            page_size: 500,
            retry: RetryPolicy::default(),
            attempt_timeout: Duration::from_secs(60),
            credentials_timeout: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// Where Compute Engine is asked, without a slash at its end.
    #[must_use]
    pub fn compute(&self) -> &str {
        self.compute_endpoint.as_deref().unwrap_or("https://compute.googleapis.com").trim_end_matches('/')
    }

    /// Where the catalogue of prices is asked for, without a slash at its end.
    #[must_use]
    pub fn billing(&self) -> &str {
        self.billing_endpoint.as_deref().unwrap_or("https://cloudbilling.googleapis.com").trim_end_matches('/')
    }

    /// One scope for each project.
    #[must_use]
    pub fn scopes(&self) -> Vec<Scope> {
        let scope = |project: &String| Scope {
            provider: Provider::Gcp,
            account: project.clone(),
            region: Scope::EVERYWHERE.to_owned(),
        };
        self.projects.iter().map(scope).collect()
    }
}
