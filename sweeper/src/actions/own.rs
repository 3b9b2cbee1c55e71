//! Whether a machine is one that the sweeper itself needs: it has an address of this host's, of the database's, or of a proxy's.

use crate::config::Config;
use nix::ifaddrs::getifaddrs;
use secrecy::ExposeSecret as _;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
};
use url::Url;

/// What says through which machine calls go.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Whether the sweeper needs this machine; none if one of the names that it goes by has no address now.
pub(super) async fn is_own(config: &Config, id: &str, addresses: &BTreeSet<String>) -> Option<bool> {
    if config.act.own_instances.iter().any(|own| own == id) {
        return Some(true);
    }
    let needed = needed(config).await?;
    let is_needed = |address: &String| address.parse::<IpAddr>().is_ok_and(|address| needed.contains(&address));
    Some(addresses.iter().any(is_needed))
}

/// Whether the sweeper needs this address: its own host's, its database's or a proxy's; none if that cannot be told.
pub(super) async fn is_own_address(config: &Config, address: Option<&str>) -> Option<bool> {
    let address = address?.parse::<IpAddr>().ok()?;
    Some(needed(config).await?.contains(&address))
}

async fn needed(config: &Config) -> Option<BTreeSet<IpAddr>> {
    let mut needed = interfaces()?;
    let proxies = PROXIES.iter().filter_map(|name| std::env::var(name).ok()).filter(|text| !text.is_empty());
    for text in proxies.chain([config.store_url().expose_secret().to_owned()]) {
        let host = match host(&text) {
            Host::None => continue,
            Host::Unreadable => return None,
            Host::Named(host) => host,
        };
        needed.extend(tokio::net::lookup_host((host.as_str(), 0)).await.ok()?.map(|address| address.ip()));
    }
    Some(needed)
}

#[derive(Debug, PartialEq, Eq)]
enum Host {
    /// A file.
    None,
    Named(String),
    Unreadable,
}

fn host(text: &str) -> Host {
    if text.starts_with("sqlite:") {
        return Host::None;
    }
    // A proxy may be named without a scheme.
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    match url.ok().as_ref().and_then(Url::host_str) {
        Some(host) => Host::Named(host.trim_matches(['[', ']']).to_owned()),
        None => Host::Unreadable,
    }
}

/// The addresses of this host, without those that every host has.
fn interfaces() -> Option<BTreeSet<IpAddr>> {
    let of_one = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(Ipv6Addr::from(v6.ip().octets()))))
    };
    let all = getifaddrs().ok()?.filter_map(of_one);
    Some(all.filter(|address| !address.is_loopback()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_and_a_proxy_have_a_host_and_a_file_has_none() {
        let named = |host: &str| Host::Named(host.to_owned());
        assert_eq!(host("sqlite:///var/lib/cloud-sweeper/sweeper.db?mode=rwc"), Host::None);
        assert_eq!(host("postgres://sweeper:secret@db.example.com:5432/sweeper"), named("db.example.com"));
        assert_eq!(host("postgres://sweeper@10.0.0.7/sweeper"), named("10.0.0.7"));
        assert_eq!(host("http://[fd00::1]:3128"), named("fd00::1"));
        assert_eq!(host("proxy.example.com:3128"), named("proxy.example.com"));
        assert_eq!(host("http://"), Host::Unreadable);
    }

    #[test]
    fn this_host_has_addresses_that_are_its_own() {
        let own = interfaces().expect("interfaces");
        assert!(own.iter().all(|address| !address.is_loopback()), "{own:?}");
    }
}
