//! Connections: so many at once, each of which has so long to say what it wants.
//!
//! A head that dribbles in is cut off; the body has the request's own time limit (`observe`). The limit of connections lies below that of open files,
//! so that the database and the providers can still be reached when strangers hold as many as they get.

use super::{AppState, counters, router, tls::Tls};
use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// Longest from a connection's begin, or from the answer before, to the end of the next head. Two and a half intervals of an agent, which keeps
/// its connection open in between.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// Longest that TLS may take to begin.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most connections, whatever the limit of open files is: an idle one takes some 20 kB.
const MAX_CONNECTIONS: u64 = 65_536;
/// Files that are left for everything else.
const OTHER_FILES: u64 = 128;
/// After a failure to take a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// So many connections fit the limit of open files, with a quarter of them left. This process may raise its own limit to the hard one, and does: the
/// usual soft one of 1,024 is there for programs that use `select`.
fn connections_at_most() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    let files = limit.current.unwrap_or(MAX_CONNECTIONS * 2);
    let connections = files.saturating_sub(OTHER_FILES).min(files / 4 * 3).clamp(16, MAX_CONNECTIONS);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Serves until `shutdown` completes, then finishes the requests under way. Nothing that a connection does, and no connection that cannot be taken, ends it.
/// With `tls` it speaks nothing else.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    tls: Option<Arc<Tls>>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let limits = Limits { head: HEAD_TIMEOUT, connections: connections_at_most() };
    serve_with(listener, state, tls, shutdown, limits).await;
}

/// What a stranger may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// See [`HEAD_TIMEOUT`].
    pub(super) head: Duration,
    /// So many connections at once.
    pub(super) connections: usize,
}

pub(super) async fn serve_with(
    listener: TcpListener,
    state: AppState,
    tls: Option<Arc<Tls>>,
    shutdown: impl Future<Output = ()> + Send + 'static,
    limits: Limits,
) {
    counters::install();
    let router = router(state);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let (graceful, free) = (GracefulShutdown::new(), Arc::new(Semaphore::new(limits.connections)));
    tokio::pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &free) => accepted,
        };
        let connection = Connection { http: http.clone(), router: router.clone(), peer, watcher: graceful.watcher() };
        let tls = tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
        tokio::spawn(async move {
            let _place: OwnedSemaphorePermit = place;
            let Some(tls) = tls else { return connection.serve(stream).await };
            match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                Ok(Ok(stream)) => connection.serve(stream).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection speaks no TLS"),
                Err(_) => tracing::debug!(%peer, "a connection was too slow to speak TLS"),
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// A client, and what it is served by.
struct Connection {
    http: http1::Builder,
    router: Router,
    peer: SocketAddr,
    watcher: Watcher,
}

impl Connection {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { http, router, peer, watcher } = self;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        // A head that is too late or no HTTP, or a client that went away.
        if let Err(error) = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await {
            tracing::debug!(%peer, %error, "a connection broke off");
        }
    }
}

/// The next connection, once there is a place for one.
async fn accept(listener: &TcpListener, free: &Arc<Semaphore>) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        // Nobody closes the semaphore.
        let Ok(place) = Arc::clone(free).acquire_owned().await else { std::future::pending().await };
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "answers may be delayed");
                }
                return (stream, peer, place);
            }
            // The client is gone already, or this process has no more files: neither ends the service.
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
