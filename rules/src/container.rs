//! `[[container]]`: which pods' containers are housekeeping: by namespace, DaemonSet and image, all three together.
//!
//! A name alone proves nothing: anybody may call a pod `aws-node`, and anybody may run somebody else's image. All three come from kubelet
//! (`node-agent/src/host/runtime`), never from labels. An image is named by its repository, exactly; of the two vendors whose registries have an
//! address in each region, a typed part stands for the registry: `{eks}`, `{gke}`.

use crate::{
    RulesError,
    guardrails::{EKS_ACCOUNTS, NEVER_NAMESPACES, Programs},
    read::{Section, Text},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// Most entries, the built-in ones included.
pub const MAX_CONTAINERS: usize = 256;
/// Most images of one entry.
const MAX_IMAGES: usize = 32;
/// Longest name that Kubernetes takes: <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>
const MAX_NAME_BYTES: usize = 253;

/// What owns a pod, as far as it can make the pod housekeeping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The DaemonSet that controls it.
    DaemonSet(String),
    /// A file on the node, of which kubelet makes the pod `NAME-NODE`.
    StaticPod(String),
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The pod's namespace.
    pub namespace: String,
    /// What owns the pod.
    pub owner: Owner,
    /// Repositories of its containers' images.
    pub images: BTreeSet<Image>,
}

impl Container {
    /// Whether a container is one of these.
    #[must_use]
    pub fn fits(&self, namespace: &str, owner: &Owner, image: &str) -> bool {
        self.namespace == namespace && self.owner == *owner && self.images.iter().any(|one| one.fits(image))
    }
}

/// A repository of images.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Image(String);

impl Image {
    /// Whether an image, as a pod names it (`REGISTRY/REPOSITORY:TAG@DIGEST`), is of this repository.
    #[must_use]
    pub fn fits(&self, reference: &str) -> bool {
        let repository = repository(reference);
        if let Some(path) = self.0.strip_prefix("{eks}/") {
            return repository.split_once('/').is_some_and(|(registry, rest)| rest == path && is_eks(registry));
        }
        match self.0.strip_prefix("{gke}/") {
            Some(path) => without_gke(&repository) == Some(path),
            None => self.0 == repository,
        }
    }
}

/// The repository of a reference, with its registry: what names none is Docker Hub's.
/// <https://github.com/distribution/reference/blob/v0.6.0/normalize.go>
#[must_use]
pub fn repository(reference: &str) -> String {
    let named = reference.split('@').next().unwrap_or_default();
    // A colon before the last slash is that of a registry's port.
    let named = match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => named,
    };
    let is_registry = |host: &str| host.contains(['.', ':']) || host == "localhost";
    match named.split_once('/') {
        Some((host, _)) if is_registry(host) => named.to_owned(),
        Some(_) => format!("docker.io/{named}"),
        None => format!("docker.io/library/{named}"),
    }
}

/// One of the registries of EKS's own images: `ACCOUNT.dkr.ecr.REGION.amazonaws.com`.
/// <https://docs.aws.amazon.com/eks/latest/userguide/add-ons-images.html>
fn is_eks(registry: &str) -> bool {
    let Some((account, rest)) = registry.split_once(".dkr.ecr.") else { return false };
    let region = rest.strip_suffix(".amazonaws.com").or_else(|| rest.strip_suffix(".amazonaws.com.cn"));
    EKS_ACCOUNTS.contains(&account) && region.is_some_and(is_location)
}

/// What follows the registry of GKE's own images, which only Google writes to: `gke.gcr.io`, `gcr.io/gke-release`, or, since 2024, that of the
/// cluster's location.
fn without_gke(repository: &str) -> Option<&str> {
    let fixed = ["gke.gcr.io/", "gcr.io/gke-release/"].iter().find_map(|registry| repository.strip_prefix(registry));
    fixed.or_else(|| {
        let (location, path) = repository.split_once("-artifactregistry.gcr.io/gke-release/gke-release/")?;
        is_location(location).then_some(path)
    })
}

/// A region or multi-region of a cloud: `us-gov-west-1`, `europe-west4`, `us`.
fn is_location(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 32 && text.bytes().all(is_part)
}

pub(crate) fn read(sections: &[Section<'_>], programs: &Programs<'_>) -> Result<Vec<Container>, RulesError> {
    sections.iter().map(|section| one(section, programs)).collect()
}

fn one(section: &Section<'_>, programs: &Programs<'_>) -> Result<Container, RulesError> {
    section.only(&["namespace", "daemonset", "static_pod", "images"])?;
    const ALL: &str = "a container is housekeeping by namespace, DaemonSet and image together";
    let namespace = section.required_text("namespace", ALL)?;
    name(&namespace)?;
    if NEVER_NAMESPACES.contains(&namespace.value) {
        let what = format!("{} is a namespace in which people run their own work", namespace.shown());
        return Err(namespace.refuse(&what, "give the agents of the node a namespace of their own"));
    }
    let owner = match (section.text("daemonset")?, section.text("static_pod")?) {
        (Some(set), None) => name(&set).map(|()| Owner::DaemonSet(set.value.to_owned()))?,
        (None, Some(pod)) => name(&pod).map(|()| Owner::StaticPod(pod.value.to_owned()))?,
        (Some(_), Some(both)) => {
            return Err(both.refuse("`daemonset` is set as well", "keep one of the two: each owner is an entry"));
        }
        (None, None) => return Err(section.refuse("`daemonset` is missing in container", ALL)),
    };
    let images = section.list("images", MAX_IMAGES)?;
    if images.is_empty() {
        return Err(section.refuse("`images` is missing in container", ALL));
    }
    let images = images.iter().map(|text| image(text, programs)).collect::<Result<_, _>>()?;
    Ok(Container { namespace: namespace.value.to_owned(), owner, images })
}

fn name(text: &Text<'_>) -> Result<(), RulesError> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if text.value.len() > MAX_NAME_BYTES || !text.value.bytes().all(is_name) {
        let what = format!("{} is no name of Kubernetes", text.shown());
        return Err(
            text.refuse(&what, "names are taken as they are: small letters, digits, - and ., without wildcards")
        );
    }
    Ok(())
}

fn image(text: &Text<'_>, programs: &Programs<'_>) -> Result<Image, RulesError> {
    let plain = text.value.strip_prefix("{eks}/").or_else(|| text.value.strip_prefix("{gke}/"));
    let path = plain.unwrap_or(text.value);
    let is_path = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_' | b'/' | b':')
    };
    let is_whole = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    // With a tag or a digest, or without a registry, the repository is another text than the one that was written.
    let is_exact = plain.map_or_else(|| repository(path) == path, |path| !path.contains(':'));
    if !is_whole || !is_exact || !path.bytes().all(is_path) {
        let what = format!("{} is no repository of images", text.shown());
        let remedy = "write registry and repository, without tag, digest and wildcards, as in \"quay.io/acme/monitor\"; \
                      {eks}/ and {gke}/ stand for those vendors' registries";
        return Err(text.refuse(&what, remedy));
    }
    if path.rsplit('/').next().is_some_and(|last| programs.include(last)) {
        let what = format!("{} runs what others wrote and is never housekeeping", text.shown());
        return Err(text.refuse(&what, "take it away; build an image of the agent itself"));
    }
    Ok(Image(text.value.to_owned()))
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
