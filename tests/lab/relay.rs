//! A wire that remembers: it stands between an agent and a sweeper, passes every byte on, and keeps a copy.

use crate::port;
use heartbeat::{api::HEARTBEATS_PATH, envelope::Checked};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

/// One piece of what passed.
#[derive(Clone, Debug)]
struct Piece {
    connection: usize,
    to_the_sweeper: bool,
    bytes: Vec<u8>,
}

type Kept = Arc<Mutex<Vec<Piece>>>;

/// One request as the agent sent it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Request line and headers.
    pub head: String,
    /// The body, as it was on the wire.
    pub body: Vec<u8>,
}

/// The wire; it is cut with this value.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    kept: Kept,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens on a port of its own and passes everything on to `sweeper_port` of this host, whenever somebody is there.
    ///
    /// # Panics
    ///
    /// When the port cannot be listened on.
    pub async fn start(sweeper_port: u16) -> Self {
        let port = port::free();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the relay can listen");
        let kept = Kept::default();
        let shared = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((agent, _)) = listener.accept().await {
                connection += 1;
                tokio::spawn(pass(connection, agent, sweeper_port, Arc::clone(&shared)));
            }
        });
        Self { port, kept, task }
    }

    /// Where the agent finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every byte that the agent sent so far, one text of bytes per connection.
    #[must_use]
    pub fn sent(&self) -> Vec<Vec<u8>> {
        let mut sent: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for piece in
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|piece| piece.to_the_sweeper)
        {
            sent.entry(piece.connection).or_default().extend(&piece.bytes);
        }
        sent.into_values().collect()
    }

    /// The agent's whole requests, in the order in which they ended.
    ///
    /// # Panics
    ///
    /// When the agent speaks something else than HTTP/1.1 with a content length.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        let mut open: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut requests = Vec::new();
        for piece in
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|piece| piece.to_the_sweeper)
        {
            let bytes = open.entry(piece.connection).or_default();
            bytes.extend(&piece.bytes);
            while let Some(request) = take_request(bytes) {
                requests.push(request);
            }
        }
        requests
    }

    /// The envelopes that the agent sent, whether they were taken or not.
    ///
    /// # Panics
    ///
    /// When one of them is none.
    #[must_use]
    pub fn envelopes(&self) -> Vec<Checked> {
        let posts = self.requests().into_iter().filter(|request| request.head.contains(HEARTBEATS_PATH));
        posts.map(|request| heartbeat::decode(&request.body).expect("an agent sends envelopes")).collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The first whole request, taken out of the bytes.
fn take_request(bytes: &mut Vec<u8>) -> Option<Request> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
    let header = |line: &str| line.to_lowercase().strip_prefix("content-length:").map(|value| value.trim().to_owned());
    let length = head.lines().find_map(header).map_or(0, |value| value.parse().expect("a length is a number"));
    if bytes.len() < end + length {
        return None;
    }
    let body = bytes[end..end + length].to_vec();
    bytes.drain(..end + length);
    Some(Request { head, body })
}

async fn pass(connection: usize, agent: TcpStream, sweeper_port: u16, kept: Kept) {
    // Nobody there: the agent finds its connection closed, as it would by a proxy.
    let Ok(sweeper) = TcpStream::connect(("127.0.0.1", sweeper_port)).await else { return };
    let ((from_agent, to_agent), (from_sweeper, to_sweeper)) = (agent.into_split(), sweeper.into_split());
    let up = copy(connection, true, from_agent, to_sweeper, Arc::clone(&kept));
    let down = copy(connection, false, from_sweeper, to_agent, kept);
    tokio::join!(up, down);
}

async fn copy(connection: usize, to_the_sweeper: bool, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, kept: Kept) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer[..count].to_vec();
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(Piece { connection, to_the_sweeper, bytes });
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    // The other side learns that this one has ended.
    let _ = to.shutdown().await;
}
