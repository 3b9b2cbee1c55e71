//! From a TOML value (or the text of a variable) to a setting. An error says what is wrong; its origin and key are added
//! by the caller.

use super::{IdentityChoice, SourceChoice};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub(super) fn text(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) if text.trim().is_empty() => Err("it is empty".to_owned()),
        toml::Value::String(text) => Ok(text.trim().to_owned()),
        other => Err(format!("expected a text in quotes, found {} `{other}`", other.type_str())),
    }
}

/// On or off; a variable can only hold text.
pub(super) fn switch(value: &toml::Value) -> Result<bool, String> {
    match value {
        toml::Value::Boolean(on) => Ok(*on),
        toml::Value::String(text) if text == "true" => Ok(true),
        toml::Value::String(text) if text == "false" => Ok(false),
        other => Err(format!("expected true or false, found {} `{other}`", other.type_str())),
    }
}

/// A path; a relative one starts where the agent was started.
pub(super) fn path(value: &toml::Value) -> Result<PathBuf, String> {
    text(value).map(PathBuf::from)
}

/// An http or https address without query, and without its trailing slash.
pub(super) fn url(value: &toml::Value) -> Result<String, String> {
    let text = text(value)?;
    let refuse = |why: &str| Err(format!("`{text}` {why}; give something like https://sweeper.example.com"));
    match reqwest::Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => refuse("is neither http nor https"),
        Ok(url) if url.host_str().is_none() => refuse("names no host"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => refuse("holds a user name or password"),
        Ok(url) if url.query().is_some() || url.fragment().is_some() => refuse("has a query or fragment"),
        Ok(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        Err(error) => refuse(&format!("is not an address ({error})")),
    }
}

/// An address of this machine's own: over plain http nobody else may answer.
pub(super) fn local_url(value: &toml::Value) -> Result<String, String> {
    let text = url(value)?;
    let host = reqwest::Url::parse(&text).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
    let is_loopback =
        host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if text.starts_with("http:") && !is_loopback {
        return Err(format!(
            "`{text}` is plain http to another machine; give https, or an address such as http://127.0.0.1:10255"
        ));
    }
    Ok(text)
}

/// A length of time such as `30s`, `1h 30m` or `7d` (a day has 24 hours), within bounds.
pub(super) fn duration(value: &toml::Value, least: Duration, most: Duration) -> Result<Duration, String> {
    let text = text(value)?;
    let parsed = parse_duration(&text)?;
    if parsed < least || parsed > most {
        return Err(format!("`{text}` is outside {least:?} to {}h", most.as_secs() / 3600));
    }
    Ok(parsed)
}

/// A length of time as people write it, in a file, a variable or a flag.
///
/// # Errors
/// If it is none, or negative; the text says what to write instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = |why: String| format!("`{text}` is not a length of time ({why}); write for example 30s, 5m, 24h or 7d");
    let span: jiff::Span = text.parse().map_err(|error: jiff::Error| wrong(error.to_string()))?;
    let signed =
        span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|error| wrong(error.to_string()))?;
    Duration::try_from(signed).map_err(|_| wrong("it is negative".to_owned()))
}

/// A share in per cent, in millionths: `0.5` is 5000.
pub(super) fn percent(value: &toml::Value) -> Result<u64, String> {
    let text = match value {
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::String(text) => text.trim().to_owned(),
        other => return Err(format!("expected a number, found {} `{other}`", other.type_str())),
    };
    let wrong = || format!("`{text}` is no percentage between 0.0001 and 100, in steps of 0.0001");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    if fraction.len() > 4 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let fraction: u64 = format!("{fraction:0<4}").parse().map_err(|_| wrong())?;
    let ppm = whole.saturating_mul(10_000).saturating_add(fraction);
    if (1..=1_000_000).contains(&ppm) { Ok(ppm) } else { Err(wrong()) }
}

pub(super) fn bytes(value: &toml::Value, least: u64) -> Result<u64, String> {
    let number = match value {
        toml::Value::Integer(number) => u64::try_from(*number).map_err(|_| format!("`{number}` is negative"))?,
        toml::Value::String(text) => {
            text.trim().parse().map_err(|_| format!("`{text}` is not a whole number of bytes"))?
        }
        other => return Err(format!("expected a whole number of bytes, found {} `{other}`", other.type_str())),
    };
    if number < least { Err(format!("`{number}` is below the least of {least} bytes")) } else { Ok(number) }
}

/// An address of this host and a port.
pub(super) fn address(value: &toml::Value) -> Result<SocketAddr, String> {
    let text = text(value)?;
    text.parse().map_err(|_| format!("`{text}` is no address and port; write for example 127.0.0.1:9465 or [::1]:9465"))
}

pub(super) fn source(value: &toml::Value) -> Result<SourceChoice, String> {
    match text(value)?.as_str() {
        "auto" => Ok(SourceChoice::Auto),
        "ebpf" => Ok(SourceChoice::Ebpf),
        "tracepoints" => Ok(SourceChoice::Tracepoints),
        "taskstats" => Ok(SourceChoice::Taskstats),
        "proc" => Ok(SourceChoice::Proc),
        other => Err(format!("`{other}` is none of auto, ebpf, tracepoints, taskstats, proc")),
    }
}

pub(super) fn identity(value: &toml::Value) -> Result<IdentityChoice, String> {
    match text(value)?.as_str() {
        "auto" => Ok(IdentityChoice::Auto),
        "aws" => Ok(IdentityChoice::Aws),
        "gcp" => Ok(IdentityChoice::Gcp),
        "host" => Ok(IdentityChoice::Host),
        other => Err(format!("`{other}` is none of auto, aws, gcp, host")),
    }
}
