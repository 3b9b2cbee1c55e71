//! Calls of Google's that none of the clients here is built with: each client more is half a minute of every build.

use axum::http::{Extensions, HeaderMap};
use google_cloud_auth::credentials::{CacheableResource, CredentialsProvider as _};
use google_cloud_gax::error::{Error, rpc::Status};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::place::Place;
use crate::{
    chain,
    inventory::{
        Failure, FailureKind,
        reader::{Api, Refused, Remedy},
    },
};

/// A page of any list of Compute Engine's.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    next_page_token: Option<String>,
    warning: Option<Warning>,
}

#[derive(Debug, Deserialize)]
struct Warning {
    code: Option<String>,
}

/// Normal: a page that has nothing says so.
const NOTHING_HERE: &str = "NO_RESULTS_ON_PAGE";

/// All items of a list. `path` is what stands behind the project.
///
/// # Errors
/// What nothing helped against; a list with a warning may not be whole, and is none.
pub(super) async fn list<T: DeserializeOwned>(
    place: &Place<'_>,
    api: Api,
    method: &Method,
    path: &str,
) -> Result<Vec<T>, Failure> {
    let pages = place.pages(api, |token| async move {
        let mut query = vec![("maxResults", "500".to_owned())];
        query.extend(token.map(|token| ("pageToken", token)));
        let page: Option<Page<T>> = call(place, method, &compute(place, path), &query).await?;
        let page = page.ok_or_else(|| Refused::malformed("a list is not there"))?;
        match page.warning {
            Some(warning) if warning.code.as_deref() != Some(NOTHING_HERE) => {
                let code = warning.code.unwrap_or_else(|| "a warning without a name".to_owned());
                let why =
                    Failure { kind: FailureKind::Unreachable, message: format!("the list may not be whole: {code}") };
                Err(Refused { why, remedy: Remedy::Again })
            }
            _ => Ok((page.items, page.next_page_token)),
        }
    });
    pages.await
}

/// One thing; none if it is not there.
///
/// # Errors
/// What nothing helped against.
pub(super) async fn get<T: DeserializeOwned>(place: &Place<'_>, api: Api, path: &str) -> Result<Option<T>, Failure> {
    let read = place.pages(api, |_| async move {
        let read: Option<T> = call(place, &Method::GET, &compute(place, path), &[]).await?;
        Ok((read.into_iter().collect(), None))
    });
    Ok(read.await?.pop())
}

/// Where Compute Engine has this of the project.
fn compute(place: &Place<'_>, path: &str) -> String {
    format!("{}/compute/v1/projects/{}/{path}", place.options().compute(), place.project())
}

/// One call of any of Google's APIs; none if what it names is not there.
///
/// # Errors
/// Why it was refused, and what helps.
pub(super) async fn call<T: DeserializeOwned>(
    place: &Place<'_>,
    method: &Method,
    url: &str,
    query: &[(&str, String)],
) -> Result<Option<T>, Refused> {
    let request = place.clients().plain.request(method.clone(), url).query(query).headers(headers(place).await?);
    let request = if *method == Method::POST { request.json(&Value::Object(serde_json::Map::new())) } else { request };
    let unreachable = |error: reqwest::Error| {
        let kind = if error.is_timeout() { FailureKind::TimedOut } else { FailureKind::Unreachable };
        Refused { why: Failure { kind, message: chain(&error.without_url()) }, remedy: Remedy::Again }
    };
    let answer = request.send().await.map_err(unreachable)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(unreachable)?;
    if status.as_u16() == 404 {
        return Ok(None);
    }
    if !status.is_success() {
        let told = Status::try_from(&body).unwrap_or_default();
        return Err(Error::service_full(told, Some(status.as_u16()), None, None).into());
    }
    serde_json::from_slice(&body).map(Some).map_err(|error| Refused::malformed(error.to_string()))
}

async fn headers(place: &Place<'_>) -> Result<HeaderMap, Refused> {
    let refused =
        |message: String| Refused { why: Failure { kind: FailureKind::Credentials, message }, remedy: Remedy::None };
    match place.session.credentials.headers(Extensions::new()).await {
        Ok(CacheableResource::New { data, .. }) => Ok(data),
        Ok(CacheableResource::NotModified) => Err(refused("its library gave no token".to_owned())),
        Err(error) => Err(refused(chain(&error))),
    }
}
