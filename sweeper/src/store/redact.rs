//! Takes from errors about a connection what the database's URL says of who logs in: some libraries put the whole URL into theirs.

use sea_orm::DbErr;
use std::borrow::Cow;
use url::{Url, form_urlencoded};

/// What stands in place of what is left out.
const LEFT_OUT: &str = "…";

/// The same error if nothing of it is secret; otherwise its words, without the secrets.
pub(super) fn connect_error(url: &str, error: DbErr) -> DbErr {
    // By what the URL parser says more is known than by the library's own words, which are the URL.
    if let Err(reason) = Url::parse(url) {
        return DbErr::Custom(format!(
            "it is no URL ({reason}); in a user's name or a password `/`, `:`, `?`, `#`, `@`, `[` and `%` are written as `%2F` and so on"
        ));
    }
    if url.starts_with("sqlite:") {
        return error;
    }
    let (said, shown) = (crate::chain(&error), format!("{error:?}"));
    let secrets = secrets(url);
    if !secrets.iter().any(|secret| said.contains(secret) || shown.contains(secret)) {
        return error;
    }
    let words = secrets.iter().fold(said, |said, secret| said.replace(secret, LEFT_OUT));
    DbErr::Custom(words)
}

/// The URL, what stands before its host, and each password in it, as written and as meant; longest first, so that none is left in half.
fn secrets(url: &str) -> Vec<String> {
    let after_scheme = url.split_once(':').map_or(url, |(_, after)| after.trim_start_matches('/'));
    // A password may hold an `@` that should have been written otherwise.
    let login = after_scheme.rsplit_once('@').map(|(login, _)| login);
    let password = login.and_then(|login| login.split_once(':')).map(|(_, password)| password);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let asked = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "password" || key == "user");
    let mut secrets: Vec<String> = asked.map(|(_, value)| value.into_owned()).collect();
    secrets.extend([Some(url), login, password].into_iter().flatten().map(str::to_owned));
    secrets.extend([login, password].into_iter().flatten().map(|text| decoded(text).into_owned()));
    secrets.extend(query.split('&').filter_map(|pair| Some(pair.strip_prefix("password=")?.to_owned())));
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// `%65` as the letter that it is. A plus sign is one.
fn decoded(text: &str) -> Cow<'_, str> {
    let pair = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let value = form_urlencoded::parse(pair.as_bytes()).next().map(|(key, _)| key.into_owned());
    value.map_or(Cow::Borrowed(text), Cow::Owned)
}
