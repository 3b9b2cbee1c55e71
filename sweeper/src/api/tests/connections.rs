//! Connections over a real socket, with short limits.

use super::*;
use crate::api::server::{Limits, serve_with};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::Instant,
};

const HEAD: Duration = Duration::from_millis(400);

/// A server with room for two connections.
async fn serve() -> (TestApp, SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let app = TestApp::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { stopped.await.unwrap_or_default() };
    let served =
        tokio::spawn(serve_with(listener, app.state.clone(), None, shutdown, Limits { head: HEAD, connections: 2 }));
    (app, address, stop, served)
}

/// What comes back until the server hangs up, and how long that took.
async fn send(address: SocketAddr, text: &str) -> (String, Duration) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // One that is cut off may be reset.
    let _ = stream.read_to_string(&mut answer).await;
    (answer, began.elapsed())
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off_and_a_whole_one_answered() {
    let (_app, address, stop, served) = serve().await;
    let (answer, took) = send(address, "GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    assert!(!answer.contains("200") && (HEAD..HEAD * 10).contains(&took), "{took:?}: {answer}");
    let (answer, took) = send(address, "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && took < HEAD, "{took:?}: {answer}");
    stop.send(()).unwrap();
    served.await.unwrap();
}

/// A connection that has been taken, and waits for its next request.
async fn idle(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    until(&mut stream, "ok").await;
    stream
}

/// Reads until a text has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut come = String::new();
    while !come.contains(text) {
        come.push(char::from(stream.read_u8().await.unwrap()));
    }
    come
}

#[tokio::test]
async fn beyond_the_limit_a_connection_waits_for_a_place() {
    let (_app, address, stop, served) = serve().await;
    let idle = [idle(address).await, idle(address).await];
    let (answer, took) = send(address, "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!((HEAD / 2..HEAD * 10).contains(&took), "it waited until an idle one was cut off: {took:?}");
    drop(idle);
    stop.send(()).unwrap();
    served.await.unwrap();
}

#[tokio::test]
async fn whoever_is_being_served_at_the_end_is_served_to_the_end() {
    let (app, address, stop, served) = serve().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (body, token) = (join_body(NODE), app.join_token());
    let head = format!(
        "POST {JOIN_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The request is being served, and waits for its body.
    until(&mut stream, "100 Continue\r\n\r\n").await;
    stop.send(()).unwrap();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("node_token"), "{answer}");
    served.await.unwrap();
}
