//! The HTTP clients of the agent, and a reader that cannot be made to swallow more than it asked for.
//!
//! Certificates are loaded only where `https` needs them: a host without any (an initramfs) can still speak plain HTTP,
//! and the agent saves the memory of about 140 parsed roots.

use std::time::Duration;

const USER_AGENT: &str = concat!("cloud-sweeper-node-agent/", env!("CARGO_PKG_VERSION"));

/// For metadata services: link-local, plain HTTP, never through a proxy.
///
/// # Errors
/// Only if the system refuses the basic resources.
pub fn metadata_client(timeout: Duration) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(timeout)
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tls_certs_only([])
        .build()
}

/// For services of this machine: by address, never through a proxy, for as long as the caller waits. `authority` holds the only certificates, in PEM, by which one over https is known.
///
/// # Errors
/// If these are no certificates, or the system refuses the basic resources.
pub fn local_client(authority: Option<&[u8]>) -> reqwest::Result<reqwest::Client> {
    let known = authority.map(reqwest::Certificate::from_pem_bundle).transpose()?.unwrap_or_default();
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tls_certs_only(known)
        .build()
}

/// For the sweeper. Redirects are not followed: they would carry the token to someone else.
///
/// # Errors
/// For `https`, if this host has no root certificates.
pub fn sweeper_client(sweeper_url: &str, timeout: Duration) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(timeout.min(Duration::from_secs(10)))
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(1);
    if sweeper_url.starts_with("https:") { builder.build() } else { builder.tls_certs_only([]).build() }
}

/// Reads a body of at most `limit` bytes; what lies beyond is cut off and the connection dropped.
///
/// # Errors
/// If the connection breaks before the end of the body.
pub async fn read_limited(mut response: reqwest::Response, limit: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() == limit {
            break;
        }
    }
    Ok(body)
}

/// An error with its causes, on one line.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    causes.fold(String::new(), |line, cause| match line {
        line if line.is_empty() => cause,
        line if line.contains(&cause) => line,
        line => format!("{line}: {cause}"),
    })
}
