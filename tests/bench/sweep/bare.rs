//! The least that any reader of the provider's answers must wait for.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lab::timed::Run;
use serde::Deserialize;
use std::{collections::BTreeMap, time::Instant};
use tokio::task::JoinSet;

/// A request of a sweep, as the server kept it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Request {
    service: String,
    action: String,
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// Sends all of them again: the pages of one list one after the other, as their tokens demand, and the lists side by side. Says
/// how long it took and how many bytes came.
pub(crate) async fn read(url: &str, requests: &[Request]) -> (Run, usize) {
    let mut chains: BTreeMap<(&str, &str), Vec<&Request>> = BTreeMap::new();
    for request in requests {
        chains.entry((&request.service, &request.action)).or_default().push(request);
    }
    let client = reqwest::Client::new();
    let began = Instant::now();
    let mut reading = JoinSet::new();
    for chain in chains.into_values() {
        let (client, url) = (client.clone(), url.to_owned());
        let chain: Vec<_> = chain.into_iter().cloned().collect();
        reading.spawn(async move {
            let mut bytes = 0;
            for request in chain {
                bytes += send(&client, &url, request).await;
            }
            bytes
        });
    }
    let bytes = reading.join_all().await.into_iter().sum();
    (Run::waited(began.elapsed()), bytes)
}

async fn send(client: &reqwest::Client, url: &str, request: Request) -> usize {
    let method = request.method.parse().expect("a method");
    let body = BASE64_STANDARD.decode(&request.body).expect("a body");
    let mut sent = client.request(method, format!("{url}{}", request.path)).body(body);
    for (name, value) in &request.headers {
        sent = sent.header(name, value);
    }
    let answer = sent.send().await.and_then(reqwest::Response::error_for_status).expect("the server answers");
    answer.bytes().await.expect("the answer ends").len()
}
