//! The agents' side: connections that stay open, each shared by the nodes of its part of the fleet.

use crate::made_up::{Node, Packer, Timeline};
use heartbeat::api::{CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, StatusCode,
    body::Bytes,
    client::conn::http1::{SendRequest, handshake},
    header,
};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// From the first byte sent to the last one read, in milliseconds; of those that were stored.
    pub(crate) ms: Vec<f64>,
    /// How many came with each status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// How long all of it took, in seconds.
    pub(crate) wall_s: f64,
}

impl Answers {
    pub(crate) fn per_s(&self) -> f64 {
        self.ms.len() as f64 / self.wall_s
    }

    /// The answer time that so many per mille stay below, in milliseconds.
    pub(crate) fn percentile(&mut self, per_mille: usize) -> f64 {
        self.ms.sort_by(f64::total_cmp);
        self.ms
            .get((self.ms.len() * per_mille / 1_000).min(self.ms.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// A connection to the sweeper.
struct Client {
    host: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the sweeper takes connections");
        stream.set_nodelay(true).expect("a socket without delay");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        Self { host: address.to_owned(), sender }
    }

    async fn send(&mut self, token: &str, body: Bytes) -> StatusCode {
        let request = Request::post(HEARTBEATS_PATH)
            .header(header::HOST, &self.host)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(header::CONTENT_ENCODING, CONTENT_ENCODING)
            .body(Full::new(body))
            .expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let answer = self.sender.send_request(request).await.expect("an answer");
        let status = answer.status();
        answer.into_body().collect().await.expect("a whole answer");
        status
    }
}

fn pack(packer: &mut Packer, node: &Node, sequence: u64, ended: i64) -> Bytes {
    packer.pack(&node.envelope(vec![node.heartbeat(sequence, ended)], ended)).into()
}

/// What each node sends.
fn packed(nodes: &[Node], sequence: u64) -> Vec<Bytes> {
    let (mut packer, now) = (Packer::new(), Timestamp::now().as_millisecond());
    nodes.iter().map(|node| pack(&mut packer, node, sequence, now)).collect()
}

/// Each node sends one heartbeat of this sequence, when it is due or as fast as they are answered over so many connections. What is sent that fast
/// was packed before the clock starts: making heartbeats up is no part of taking them in. So were the connections opened, one after the other: of a thousand
/// at once the kernel drops some, which try again a second later.
pub(crate) async fn send(
    address: &str,
    nodes: &Arc<Vec<Node>>,
    sequence: u64,
    connections: usize,
    due: Option<Timeline>,
) -> Answers {
    let next = Arc::new(AtomicUsize::new(0));
    let packed = Arc::new(if due.is_none() { packed(nodes, sequence) } else { Vec::new() });
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        clients.push(Client::connect(address).await);
    }
    let began = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for mut client in clients {
        let (next, nodes, packed) = (Arc::clone(&next), Arc::clone(nodes), Arc::clone(&packed));
        workers.spawn(async move {
            let mut packer = Packer::new();
            let (mut ms, mut statuses) = (Vec::new(), BTreeMap::new());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(node) = nodes.get(at) else { return (ms, statuses) };
                let body = match due.map(|timeline| timeline.ended(sequence, at)) {
                    Some(ended) => {
                        let ahead = ended - Timestamp::now().as_millisecond();
                        sleep(Duration::from_millis(ahead.try_into().unwrap_or(0))).await;
                        pack(&mut packer, node, sequence, ended)
                    }
                    None => packed[at].clone(),
                };
                let sent = Instant::now();
                let status = client.send(&node.token(), body).await;
                *statuses.entry(status.as_u16()).or_default() += 1;
                if status == StatusCode::OK {
                    ms.push(sent.elapsed().as_secs_f64() * 1e3);
                }
            }
        });
    }
    let mut answers = Answers::default();
    while let Some(done) = workers.join_next().await {
        let (ms, statuses) = done.expect("a connection");
        answers.ms.extend(ms);
        statuses
            .into_iter()
            .for_each(|(status, count): (u16, usize)| *answers.statuses.entry(status).or_default() += count);
    }
    answers.wall_s = began.elapsed().as_secs_f64();
    answers
}
