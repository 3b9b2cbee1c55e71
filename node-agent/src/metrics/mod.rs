//! The last heartbeat as OpenMetrics, on a local port that is closed unless `metrics_listen` opens it.
//!
//! Bounds: 8 connections at once, one request each, 5 s for its head; at most [`families::MAX_WORKLOADS`] workloads have series
//! of their own, the others are one series `overflow`. It answers `GET /metrics` and nothing else, and knows only what a
//! heartbeat says. Whoever can reach the port can read the names of programs and cgroups: on another address than loopback the
//! log warns.

pub mod families;

use crate::exporter::meter::Meter;
use families::{Family, Slots, families};
use heartbeat::wire;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};
use std::{
    convert::Infallible,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};

/// Connections that are served at once; further ones wait in the kernel's queue.
const CONNECTIONS: usize = 8;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is shown; one side writes it each interval, the other reads it at each scrape.
#[derive(Debug, Default)]
pub struct Exposition {
    state: Mutex<(Slots, Vec<Family>)>,
}

impl Exposition {
    /// Shows this heartbeat from now on.
    pub fn update(&self, heartbeat: &wire::Heartbeat) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = families(heartbeat, &mut state.0);
        state.1 = shown;
    }

    /// The OpenMetrics text.
    #[must_use]
    pub fn text(&self) -> String {
        let shown = self.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Shown(shown)));
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut out, &registry);
        out
    }
}

#[derive(Debug)]
struct Shown(Vec<Family>);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = if family.counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), kind)?;
            for (labels, value) in &family.samples {
                if labels.is_empty() {
                    write(&mut metric, family.counter, *value)?;
                } else {
                    write(&mut metric.encode_family(labels)?, family.counter, *value)?;
                }
            }
        }
        Ok(())
    }
}

fn write(sample: &mut MetricEncoder<'_>, counter: bool, value: f64) -> fmt::Result {
    if counter { sample.encode_counter::<NoLabelSet, f64, f64>(&value, None) } else { sample.encode_gauge(&value) }
}

/// Opens the port.
///
/// # Errors
/// If somebody else has it, or the address is not this host's.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "metrics_listen is no loopback address: whoever reaches it can read what runs here");
    }
    tracing::info!(address = %listener.local_addr()?, "metrics are served at /metrics");
    Ok(listener)
}

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Served(JoinHandle<()>);

impl Served {
    /// Begins to answer; `meter` learns what the answers cost on the network.
    #[must_use]
    pub fn start(listener: TcpListener, exposition: Arc<Exposition>, meter: Arc<Meter>) -> Self {
        Self(tokio::spawn(serve(listener, exposition, meter)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Answers for ever; `meter` learns what the answers cost on the network.
async fn serve(listener: TcpListener, exposition: Arc<Exposition>, meter: Arc<Meter>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others need time to close theirs.
                tracing::debug!(%error, "a metrics connection could not be taken");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let (exposition, meter) = (Arc::clone(&exposition), Arc::clone(&meter));
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = answer(&request, &exposition);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            let served = tokio::time::timeout(HEAD_TIMEOUT * 2, http.serve_connection(TokioIo::new(stream), service));
            if let Ok(Err(error)) = served.await {
                tracing::debug!(%error, "a metrics connection ended early");
            }
            meter.sample();
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, exposition: &Exposition) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, OPENMETRICS, exposition.text()),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET only\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "see /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
