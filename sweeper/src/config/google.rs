//! Settings of what is read of Google Cloud.

use super::{Enabled, duration};
use crate::inventory::gcp::Options;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};

/// `[gcp]`: the inventory of Google Cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcpConfig {
    /// Whether Google Cloud is asked at all.
    pub enabled: Enabled,
    /// The projects to ask, by id; none named means that nothing is asked.
    pub projects: Vec<String>,
    /// Where Compute Engine is asked, if not at Google's own address.
    pub compute_endpoint: Option<String>,
    /// Where Cloud Monitoring is asked, if not at Google's own address.
    pub monitoring_endpoint: Option<String>,
    /// Where the catalogue of prices is asked for, if not at Google's own address.
    pub billing_endpoint: Option<String>,
    /// Whether Cloud Monitoring is asked how busy machines were.
    pub monitoring: bool,
    /// One kind of resource in one project is given up after so long.
    #[serde(with = "duration")]
    pub listing_timeout: Duration,
}

impl Default for GcpConfig {
    fn default() -> Self {
        let options = Options::default();
        Self {
            enabled: Enabled::Auto,
            projects: options.projects,
            compute_endpoint: options.compute_endpoint,
            monitoring_endpoint: options.monitoring_endpoint,
            billing_endpoint: options.billing_endpoint,
            monitoring: options.monitoring,
            listing_timeout: options.retry.listing_timeout,
        }
    }
}

impl GcpConfig {
    /// The same in the words of the inventory.
    #[must_use]
    pub fn options(&self) -> Options {
        let mut options = Options {
            projects: self.projects.clone(),
            compute_endpoint: self.compute_endpoint.clone(),
            monitoring_endpoint: self.monitoring_endpoint.clone(),
            billing_endpoint: self.billing_endpoint.clone(),
            monitoring: self.monitoring,
            ..Options::default()
        };
        options.retry.listing_timeout = self.listing_timeout;
        options
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        let mut named = BTreeSet::new();
        for project in &self.projects {
            if !may_be_project(project) {
                return Some((
                    "gcp.projects",
                    format!("`{project}` is not the id of a project such as `omics-prod-1`"),
                ));
            }
            if !named.insert(project) {
                return Some(("gcp.projects", format!("names `{project}` twice")));
            }
        }
        if self.enabled == Enabled::Yes && self.projects.is_empty() {
            return Some((
                "gcp.projects",
                "is empty, but `gcp.enabled` is \"yes\"; projects are not looked for".to_owned(),
            ));
        }
        let endpoints = [
            ("gcp.compute_endpoint", &self.compute_endpoint),
            ("gcp.monitoring_endpoint", &self.monitoring_endpoint),
            ("gcp.billing_endpoint", &self.billing_endpoint),
        ];
        for (key, endpoint) in endpoints {
            let is_url = |url: &String| url.starts_with("https://") || url.starts_with("http://");
            if !endpoint.as_ref().is_none_or(is_url) {
                return Some((key, "must begin with https:// or http://".to_owned()));
            }
        }
        self.listing_timeout.is_zero().then(|| ("gcp.listing_timeout", "must be longer than nothing".to_owned()))
    }
}

/// It becomes a part of a path: what a node id of Google's may hold, and never a number, which agents do not send.
pub(super) fn may_be_project(id: &str) -> bool {
    let starts = id.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    starts && format!("gcp:{id}:zone:1").parse::<heartbeat::NodeId>().is_ok()
}

/// `europe-west3-a`: a region, and a letter.
pub(super) fn may_be_zone(zone: &str) -> bool {
    let is_letter = |letter: &str| letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_lowercase());
    let of_region = |region: &str| {
        region.contains('-')
            && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    zone.rsplit_once('-').is_some_and(|(region, letter)| of_region(region) && is_letter(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_by_its_key() {
        let with = |change: &dyn Fn(&mut GcpConfig)| {
            let mut config = GcpConfig { projects: vec!["omics-prod-1".into()], ..GcpConfig::default() };
            change(&mut config);
            config.wrong().map(|(key, _)| key)
        };
        assert_eq!(with(&|_| {}), None);
        assert_eq!(with(&|config| config.projects.push("example.com:omics".into())), None);
        assert_eq!(with(&|config| config.enabled = Enabled::Yes), None);
        for project in ["", "Omics", "123456789012", "omics/../other", "omics-prod-1"] {
            assert_eq!(with(&|config| config.projects.push(project.into())), Some("gcp.projects"), "{project}");
        }
        let nothing = |config: &mut GcpConfig| (config.enabled, config.projects) = (Enabled::Yes, Vec::new());
        assert_eq!(with(&nothing), Some("gcp.projects"));
        assert_eq!(with(&|config| config.compute_endpoint = Some("localhost".into())), Some("gcp.compute_endpoint"));
        assert_eq!(with(&|config| config.listing_timeout = Duration::ZERO), Some("gcp.listing_timeout"));
    }
}
