//! Checks that span several keys, and secrets from the files that `…_file` keys name.

use super::{AwsAccount, Config, ConfigError, PricingSource, load::Origins};
use crate::work_unit::WorkUnit;
use model::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// A renewal must fit into a third of it, on a busy database too.
const SHORTEST_LEASE: Duration = Duration::from_secs(3);
const LONGEST_LEASE: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// Points of an hour. <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html>
const CLOUDWATCH_KEEPS: Duration = Duration::from_secs(455 * 86_400);

/// Puts what `…_file` keys name into the secrets themselves.
pub(super) fn secrets(config: &mut Config, origins: &Origins) -> Result<(), ConfigError> {
    let slack = &mut config.slack;
    slack.token = secret("slack.token", slack.token.take(), slack.token_file.as_ref(), origins)?;
    let (given, file) = (slack.signing_secret.take(), slack.signing_secret_file.as_ref());
    slack.signing_secret = secret("slack.signing_secret", given, file, origins)?;
    slack.app_token = secret("slack.app_token", slack.app_token.take(), slack.app_token_file.as_ref(), origins)?;
    let email = &mut config.email;
    email.password = secret("email.password", email.password.take(), email.password_file.as_ref(), origins)?;
    Ok(())
}

fn secret(
    key: &str,
    given: Option<SecretString>,
    file: Option<&PathBuf>,
    origins: &Origins,
) -> Result<Option<SecretString>, ConfigError> {
    let Some(path) = file else { return Ok(given) };
    let file_key = format!("{key}_file");
    let origin = origins.of(&file_key);
    if given.is_some() {
        return Err(ConfigError::WrongValue { origin, key: file_key, reason: format!("`{key}` is set too; keep one") });
    }
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => {
            Err(ConfigError::WrongValue { origin, key: file_key, reason: format!("{} is empty", path.display()) })
        }
        Ok(text) => Ok(Some(SecretString::from(text.trim()))),
        Err(source) => Err(ConfigError::SecretFile { origin, key: file_key, path: path.clone(), source }),
    }
}

/// Refuses combinations that cannot work, before anything starts.
pub(super) fn sense(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    let require = |holds: bool, key: &str, reason: &str| {
        if holds {
            return Ok(());
        }
        Err(ConfigError::WrongValue { origin: origins.of(key), key: key.to_owned(), reason: reason.to_owned() })
    };
    let Config { store, api, ingest, aws, pricing, verdict, sweep, onprem, slack, email, outbox, .. } = config;

    let url = config.store_url();
    let scheme = url.expose_secret().split(':').next().unwrap_or_default();
    require(
        matches!(scheme, "sqlite" | "postgres" | "postgresql"),
        "store.url",
        "must begin with sqlite:// or postgres://",
    )?;
    require(!store.heartbeat_retention.is_zero(), "store.heartbeat_retention", "must be longer than nothing")?;
    require(
        store.heartbeat_retention >= verdict.lookback,
        "store.heartbeat_retention",
        "must be at least as long as `verdict.lookback`",
    )?;
    require(!verdict.stuck_after.is_zero(), "verdict.stuck_after", "must be longer than nothing")?;
    require(
        verdict.spinning_after >= verdict.stuck_after,
        "verdict.spinning_after",
        "must be at least as long as `verdict.stuck_after`",
    )?;
    require(
        verdict.barely_used_after.as_secs() >= 3_600 && verdict.barely_used_after <= store.rollup_retention,
        "verdict.barely_used_after",
        "must be from 1h (full hours are counted) to `store.rollup_retention`",
    )?;
    require(!store.rollup_retention.is_zero(), "store.rollup_retention", "must be longer than nothing")?;
    require(!store.history_retention.is_zero(), "store.history_retention", "must be longer than nothing")?;
    require(
        api.tls_key.is_some() || api.tls_certificate.is_none(),
        "api.tls_key",
        "is needed, because `api.tls_certificate` is set",
    )?;
    require(
        api.tls_certificate.is_some() || api.tls_key.is_none(),
        "api.tls_certificate",
        "is needed, because `api.tls_key` is set",
    )?;
    require(
        api.public_url.as_deref().is_none_or(is_public),
        "api.public_url",
        "is not an address such as \"https://sweeper.example.com\", without a path or a query; mail programs ask for https",
    )?;
    require(!ingest.clock_skew.is_zero(), "ingest.clock_skew", "must be longer than nothing; clocks are never equal")?;
    require(
        aws.own_account || !aws.accounts.is_empty(),
        "aws.own_account",
        "is false and `aws.accounts` is empty, which leaves nothing to read; to read nothing, set `aws.enabled = \"no\"`",
    )?;
    let no_region = aws.regions.iter().find(|region| !may_be_region(region));
    let no_region =
        no_region.map_or_else(String::new, |text| format!("`{text}` is not a region such as `eu-central-1`"));
    require(no_region.is_empty(), "aws.regions", &no_region)?;
    require(aws.scopes_at_once > 0, "aws.scopes_at_once", "must be at least 1")?;
    require(!aws.listing_timeout.is_zero(), "aws.listing_timeout", "must be longer than nothing")?;
    require(
        (DAY..=CLOUDWATCH_KEEPS).contains(&aws.cloudwatch_lookback),
        "aws.cloudwatch_lookback",
        "must be from 1d to 455d; so long CloudWatch keeps what it measured",
    )?;
    require(
        !aws.cloudwatch_every.is_zero(),
        "aws.cloudwatch_every",
        "must be longer than nothing; each question costs money",
    )?;
    // Where it was set is known by the key alone.
    let origin = || origins.of("aws.accounts");
    if let Some((key, reason)) = config.identity.wrong() {
        require(false, key, &reason)?;
    }
    if let Some((key, reason)) = config.gcp.wrong() {
        require(false, key, &reason)?;
    }
    if let Some((key, reason)) = config.act.wrong() {
        return Err(ConfigError::WrongValue { origin: origins.of("act"), key, reason });
    }
    if let Some((key, reason)) = config.digest.wrong() {
        return Err(ConfigError::WrongValue { origin: origins.of("digest.lists"), key, reason });
    }
    accounts(&aws.accounts).map_err(|(key, reason)| ConfigError::WrongValue { origin: origin(), key, reason })?;
    require(
        pricing.source != PricingSource::File || pricing.file.is_some(),
        "pricing.file",
        "is needed, because `pricing.source` is \"file\"",
    )?;
    require(verdict.missed_heartbeats > 0, "verdict.missed_heartbeats", "must be at least 1")?;
    require(
        verdict.idle_after <= verdict.lookback,
        "verdict.idle_after",
        "must not be longer than `verdict.lookback`",
    )?;
    require(
        verdict.gone_after >= verdict.lookback,
        "verdict.gone_after",
        "must be at least as long as `verdict.lookback`; a host may be off for a weekend",
    )?;
    require(
        verdict.unattributed_starts_per_s.is_finite() && verdict.unattributed_starts_per_s >= 0.0,
        "verdict.unattributed_starts_per_s",
        "must be a number from 0 on",
    )?;
    require(
        verdict.quiet_after <= aws.cloudwatch_lookback,
        "verdict.quiet_after",
        "must not be longer than `aws.cloudwatch_lookback`",
    )?;
    require(sweep.plan_after_sweeps > 0, "sweep.plan_after_sweeps", "must be at least 1")?;
    require(
        (SHORTEST_LEASE..=LONGEST_LEASE).contains(&sweep.lease),
        "sweep.lease",
        "must be from 3s (it is renewed each third of it) to 1h (so long a scope waits for a replica that died)",
    )?;
    // By the database of zones that the scheduler goes by; the host needs none.
    let is_zone = |name: &str| name.parse::<chrono_tz::Tz>().is_ok();
    require(
        is_zone(&sweep.timezone),
        "sweep.timezone",
        "is not an IANA time zone such as \"UTC\" or \"Europe/Berlin\"",
    )?;
    for (n, own) in sweep.schedules.iter().enumerate() {
        let refuse = |key: &str, reason: &str| {
            let (origin, key) = (origins.of("sweep.schedules"), format!("sweep.schedules[{n}]{key}"));
            Err(ConfigError::WrongValue { origin, key, reason: reason.to_owned() })
        };
        if !own.names_a_scope() {
            return refuse("", "names no provider, account or region; the schedule of everything is `sweep.schedule`");
        }
        let known =
            |word: &str| word == WorkUnit::NO_PROVIDER || Provider::from_word(word).is_some_and(Provider::is_cloud);
        if !own.provider.as_deref().is_none_or(known) {
            return refuse(".provider", "is neither a provider such as \"aws\" nor \"none\"");
        }
        if own.timezone.as_deref().is_some_and(|zone| !is_zone(zone)) {
            return refuse(".timezone", "is not an IANA time zone such as \"UTC\" or \"Europe/Berlin\"");
        }
    }
    for (node, usd) in &onprem.hourly_usd {
        let key = "onprem.hourly_usd";
        let known = node == "default" || node.parse::<heartbeat::NodeId>().is_ok();
        require(known, key, &format!("`{node}` is neither a node id nor `default`"))?;
        require(is_amount(usd), key, &format!("`{usd}` is not an amount such as \"0.25\""))?;
    }
    if let Some((key, reason)) = config.costs.wrong().or_else(|| config.recommendations.wrong()) {
        require(false, key, &reason)?;
    }
    require(
        slack.token.is_some() || slack.channel.is_none(),
        "slack.token",
        "is needed, because `slack.channel` is set",
    )?;
    require(
        slack.channel.is_some() || slack.token.is_none(),
        "slack.channel",
        "is needed, because `slack.token` is set",
    )?;
    require(slack.token.is_some() || slack.teams.is_empty(), "slack.token", "is needed, because `slack.teams` is set")?;
    if let Some((key, reason)) = slack.wrong_team() {
        return Err(ConfigError::WrongValue { origin: origins.of("slack.teams"), key, reason });
    }
    require(
        slack.token.is_some() || !slack.hears(),
        "slack.token",
        "is needed, because `slack.signing_secret` or `slack.app_token` is set",
    )?;
    if email.host.is_some() {
        require(email.from.is_some(), "email.from", "is needed, because `email.host` is set")?;
        require(!email.to.is_empty(), "email.to", "is needed, because `email.host` is set")?;
    }
    require(
        email.username.is_some() == email.password.is_some(),
        "email.password",
        "and `email.username` must be set both or not at all",
    )?;
    require(outbox.base_delay <= outbox.max_delay, "outbox.base_delay", "must not be longer than `outbox.max_delay`")
}

/// What STS would refuse, and what it would not see: two roles in one account.
fn accounts(accounts: &[AwsAccount]) -> Result<(), (String, String)> {
    // https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
    let made_of = |text: &str, others: &str, longest: usize| {
        (2..=longest).contains(&text.len())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || others.contains(letter))
    };
    let mut roles = BTreeMap::new();
    for (n, account) in accounts.iter().enumerate() {
        let refuse = |key: &str, reason: String| Err((format!("aws.accounts[{n}].{key}"), reason));
        let id = account.role_arn.account();
        if let Some(other) = roles.insert(id, n) {
            return refuse("role_arn", format!("is in account {id}, as that of `aws.accounts[{other}]` is; keep one"));
        }
        if let Some(region) = account.regions.iter().find(|region| !may_be_region(region)) {
            return refuse("regions", format!("`{region}` is not a region such as `eu-central-1`"));
        }
        if !made_of(&account.session_name, "_+=,.@-", 64) {
            return refuse("session_name", "must be 2 to 64 letters, digits or any of _+=,.@-".to_owned());
        }
        if !account.external_id.as_deref().is_none_or(may_be_external_id) {
            return refuse("external_id", "must be 2 to 1,224 letters, digits or any of _+=,.@:/-".to_owned());
        }
    }
    Ok(())
}

/// Where links of mails may lead.
fn is_public(text: &str) -> bool {
    let url = url::Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.has_host());
    url.is_some_and(|url| {
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
    })
}

/// What STS takes for one.
pub(super) fn may_be_external_id(text: &str) -> bool {
    (2..=1_224).contains(&text.len())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_+=,.@:/-".contains(letter))
}

/// It becomes a part of a host's name.
pub(super) fn may_be_region(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (3..=63).contains(&text.len()) && text.bytes().all(plain)
}

/// Digits with at most six behind one point: what micro-dollars can hold exactly.
fn is_amount(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && whole.len() <= 6 && fraction.len() <= 6
}
