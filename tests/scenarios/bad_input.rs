//! Bad input changes nothing: each kind is a typed 4xx with a clear body, one count, one log line, and nothing stored.
//!
//! A real `sweeper serve` is spoken to over HTTP. What is stored is read from its database, not from its answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{
    NodeId,
    api::{
        Ack, CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinRequest, JoinResponse, PROBLEM_TYPE,
        Problem,
    },
    envelope::MAX_BODY_BYTES,
    wire,
};
use jiff::Timestamp;
use lab::{binaries, sample, sweeper::Sweeper, wait};
use reqwest::{
    Client, RequestBuilder,
    header::{CONTENT_ENCODING as ENCODING_HEADER, CONTENT_TYPE as TYPE_HEADER},
};
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    net::{Shutdown, TcpStream},
    process::Command,
    time::Duration,
};
use sweeper::store::Store;
use tempfile::TempDir;
use tokio::task::JoinSet;

const CONFIG: &str = "[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n";
const HOUR_MS: i64 = 3_600_000;

struct Site {
    sweeper: Sweeper,
    store: Store,
    client: Client,
    _folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sweeper = Sweeper::start(folder.path(), CONFIG, &[]).await;
        let database = sweeper.folder().join("data/sweeper.db");
        let store = Store::connect(&format!("sqlite://{}", database.display())).await.unwrap();
        Self { sweeper, store, client: Client::new(), _folder: folder }
    }

    async fn join(&self, request: &JoinRequest) -> JoinResponse {
        let sent =
            self.client.post(format!("{}{JOIN_PATH}", self.sweeper.url())).bearer_auth(self.sweeper.join_token());
        sent.json(request).send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }

    fn post(&self, body: Vec<u8>) -> RequestBuilder {
        let post = self.client.post(format!("{}{HEARTBEATS_PATH}", self.sweeper.url()));
        post.header(TYPE_HEADER, CONTENT_TYPE).header(ENCODING_HEADER, CONTENT_ENCODING).body(body)
    }

    async fn refusals(&self, reason: &str) -> u64 {
        self.counter(&format!("requests_refused_total{{reason=\"{reason}\"}} ")).await
    }

    async fn counter(&self, line: &str) -> u64 {
        let metrics = self.sweeper.metrics().await;
        metrics.lines().find_map(|found| found.strip_prefix(line)?.parse().ok()).unwrap_or(0)
    }

    async fn stored(&self, node: &NodeId) -> usize {
        self.store.heartbeats(node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap().len()
    }

    /// Sends what must be refused, and checks everything that a refusal promises.
    async fn refused(&self, what: &str, request: RequestBuilder, status: u16, reason: &str, node: &str) {
        let (count, logged) = (self.refusals(reason).await, self.sweeper.log().len());
        let answer = request.send().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(answer.status().as_u16(), status, "{what}");
        assert_eq!(answer.headers()[TYPE_HEADER], PROBLEM_TYPE, "{what}");
        let problem: Problem = answer.json().await.unwrap();
        assert_eq!((problem.status, problem.kind.as_str()), (status, reason), "{what}: {}", problem.detail);
        assert!(problem.title.len() > 10 && problem.detail.len() > 20, "{what}: {problem:?}");
        assert_eq!(self.refusals(reason).await, count + 1, "{what}: the counter");

        let log = self.sweeper.log();
        let lines: Vec<&str> = log[logged..].lines().filter(|line| line.contains("request refused")).collect();
        assert_eq!(lines.len(), 1, "{what}: one log line, not {lines:#?}");
        for part in [reason, node, "127.0.0.1"] {
            assert!(lines[0].contains(part), "{what}: `{part}` is not in: {}", lines[0]);
        }
    }
}

/// A good envelope of `node`, changed into a bad one.
fn changed(node: &NodeId, change: impl FnOnce(&mut wire::Envelope)) -> Vec<u8> {
    let mut envelope = sample::envelope(node, sample::boot(1), &[1], Timestamp::now());
    change(&mut envelope);
    heartbeat::encode(&envelope).unwrap()
}

#[tokio::test]
async fn bad_heartbeats_are_refused_by_name_counted_logged_and_not_stored() {
    let site = Site::new().await;
    let (node, other) = (sample::node(1), sample::node(2));
    let token = site.join(&sample::join(&node, sample::boot(1))).await.node_token;
    let others_token = site.join(&sample::join(&other, sample::boot(2))).await.node_token;
    let good = changed(&node, |_| {});
    let name = node.to_string();

    for (what, request) in [
        ("no token", site.post(good.clone())),
        ("a token that nobody has", site.post(good.clone()).bearer_auth("csn_".to_owned() + &"0".repeat(64))),
        ("the join token", site.post(good.clone()).bearer_auth(site.sweeper.join_token())),
        ("another scheme", site.post(good.clone()).basic_auth("agent", Some(&token))),
    ] {
        site.refused(what, request, 401, "unauthenticated", "unknown").await;
    }
    let random_bytes: Vec<u8> = (0..=MAX_BODY_BYTES).map(|n| u8::try_from(n * 7919 % 251).unwrap()).collect();
    let bomb =
        heartbeat::encode(&wire::Envelope { node_id: "0".repeat(5 * 1024 * 1024), ..Default::default() }).unwrap();
    assert!(bomb.len() < 10_000);
    for (what, body, status, reason) in [
        ("truncated", good[..good.len() / 2].to_vec(), 400, "malformed"),
        ("one byte short", good[..good.len() - 1].to_vec(), 400, "malformed"),
        ("empty", Vec::new(), 400, "malformed"),
        ("not compressed", b"hello".to_vec(), 400, "malformed"),
        ("one byte too large", random_bytes, 413, "too_large"),
        ("far too large", vec![0; 3 * 1024 * 1024], 413, "too_large"),
        ("a bomb", bomb, 413, "too_large"),
        ("of a version to come", changed(&node, |envelope| envelope.version = 2), 400, "unsupported_version"),
        ("of no version", changed(&node, |envelope| envelope.version = 0), 400, "unsupported_version"),
        ("sent an hour ahead", changed(&node, |envelope| envelope.sent_unix_ms += HOUR_MS), 422, "clock_skew"),
        ("sent an hour behind", changed(&node, |envelope| envelope.sent_unix_ms -= HOUR_MS), 422, "clock_skew"),
        ("of an hour to come", changed(&node, an_hour_ahead), 422, "clock_skew"),
        ("someone else's", changed(&other, |_| {}), 403, "forbidden_node"),
        ("without an interval", changed(&node, |envelope| envelope.heartbeats[0].interval = None), 422, "invalid"),
        ("of no node", changed(&node, |envelope| envelope.node_id = "i-1".into()), 422, "invalid"),
    ] {
        site.refused(what, site.post(body).bearer_auth(&token), status, reason, &name).await;
    }
    let json = site.client.post(format!("{}{HEARTBEATS_PATH}", site.sweeper.url())).bearer_auth(&token).json(&1);
    site.refused("JSON", json, 415, "unsupported_media_type", &name).await;
    let borrowed = site.post(good.clone()).bearer_auth(&others_token);
    site.refused("with the token of another node", borrowed, 403, "forbidden_node", &other.to_string()).await;

    assert_eq!((site.stored(&node).await, site.stored(&other).await), (0, 0));
    assert_eq!(site.counter("heartbeats_stored_total ").await, 0);

    let ack: Ack = site.post(good).bearer_auth(&token).send().await.unwrap().json().await.unwrap();
    assert_eq!((ack.stored, ack.contiguous_sequence), (1, 1));
    assert_eq!((site.stored(&node).await, site.counter("heartbeats_stored_total ").await), (1, 1));
}

#[tokio::test]
async fn a_node_whose_heartbeats_are_refused_is_not_called_silent() {
    let site = Site::new().await;
    let node = sample::node(1);
    let name = node.to_string();
    let token = site.join(&sample::join(&node, sample::boot(1))).await.node_token;
    let unheard = site.sweeper.json(&["nodes", &name]).await;
    assert_eq!((&unheard["refused_because"], &unheard["verdict"]), (&Value::Null, &"unknown".into()), "{unheard:#}");

    let ahead = changed(&node, |envelope| envelope.sent_unix_ms += 2 * HOUR_MS);
    site.refused("two hours ahead", site.post(ahead).bearer_auth(&token), 422, "clock_skew", &name).await;
    let refused = site.sweeper.json(&["nodes", &name]).await;
    let because = refused["refused_because"].as_str().unwrap();
    assert!(because.starts_with("the time of sending is ") && because.contains("ahead of this server's"), "{because}");
    let table = String::from_utf8(site.sweeper.run(&["nodes", &name[..10]]).await.stdout).unwrap();
    assert!(table.contains("its heartbeats are refused, last at ") && table.contains(because), "{table}");
    let (_, report) = site.sweeper.sweep().await;
    let why = report["blind_spots"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("its agent's heartbeats are refused") && why.contains(because), "{report:#}");

    site.post(changed(&node, |_| {})).bearer_auth(&token).send().await.unwrap().error_for_status().unwrap();
    assert_eq!(site.sweeper.json(&["nodes", &name]).await["refused_because"], Value::Null, "it is heard again");
    let nobody = site.sweeper.run(&["nodes", "host:ffff"]).await;
    assert!(!nobody.status.success() && String::from_utf8_lossy(&nobody.stderr).contains("has joined"), "{nobody:?}");
}

/// Four times as many as two cores decode at once.
const FLOOD: usize = 8;
/// A sweeper with nothing to do takes 72 MB, 58 of them its own unoptimised program, and two cores' worth of such bodies 25 MB more: 89 to
/// 97 MB in five runs. As long as the buffer for a body grew as it was unpacked, it was 128 to 135 MB.
const LEAST_BYTES: u64 = 16 << 20;
const MOST_BYTES: u64 = 128 << 20;

#[tokio::test]
async fn small_bodies_of_millions_of_messages_cost_no_memory() {
    let site = Site::new().await;
    let node = sample::node(1);
    let token = site.join(&sample::join(&node, sample::boot(1))).await.node_token;
    // A heartbeat's rows (field 5), each without a byte in it: 4 MiB of them would be two gigabytes.
    let rows = [5 << 3 | 2, 0].repeat(2_000_000);
    let mut plain = vec![6 << 3 | 2];
    prost::encoding::encode_varint(rows.len() as u64, &mut plain);
    plain.extend(rows);
    let body = zstd::encode_all(plain.as_slice(), 3).unwrap();
    assert!(body.len() < 1000, "{}", body.len());

    let sent: JoinSet<_> = (0..FLOOD).map(|_| site.post(body.clone()).bearer_auth(&token).send()).collect();
    for answer in sent.join_all().await {
        let problem: Problem = answer.unwrap().json().await.unwrap();
        assert_eq!((problem.status, problem.kind.as_str()), (413, "too_large"), "{}", problem.detail);
    }
    let peak = site.sweeper.peak_resident_bytes();
    assert!((LEAST_BYTES..MOST_BYTES).contains(&peak), "{peak} bytes");
    let good = site.post(changed(&node, |_| {})).bearer_auth(&token).send().await.unwrap();
    assert_eq!(good.json::<Ack>().await.unwrap().stored, 1);
}

/// The clock was right when it sent, but an interval ends in the future.
fn an_hour_ahead(envelope: &mut wire::Envelope) {
    let interval = envelope.heartbeats[0].interval.as_mut().unwrap();
    interval.end_unix_ms += HOUR_MS;
}

#[tokio::test]
async fn a_body_that_breaks_off_on_the_wire_is_counted_and_not_stored() {
    let site = Site::new().await;
    let node = sample::node(1);
    let token = site.join(&sample::join(&node, sample::boot(1))).await.node_token;
    let body = changed(&node, |_| {});
    let mut connection = TcpStream::connect(("127.0.0.1", site.sweeper.port())).unwrap();
    let head = format!(
        "POST {HEARTBEATS_PATH} HTTP/1.1\r\nHost: sweeper\r\nAuthorization: Bearer {token}\r\nContent-Type: {CONTENT_TYPE}\r\n\
         Content-Encoding: {CONTENT_ENCODING}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(&body[..body.len() - 1]).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    wait::until("the refusal to be counted", Duration::from_secs(10), || async {
        (site.refusals("malformed").await == 1).then_some(())
    })
    .await;
    assert_eq!(site.stored(&node).await, 0);
}

#[tokio::test]
async fn a_join_without_the_join_token_makes_no_node_known() {
    let site = Site::new().await;
    let request = sample::join(&sample::node(1), sample::boot(1));
    let post = || site.client.post(format!("{}{JOIN_PATH}", site.sweeper.url())).json(&request);
    site.refused("no token", post(), 401, "unauthenticated", "unknown").await;
    site.refused("a wrong token", post().bearer_auth("csj_wrong"), 401, "unauthenticated", "unknown").await;
    assert!(site.store.nodes().await.unwrap().is_empty());
}

#[test]
fn a_wrong_configuration_key_is_one_line_that_names_file_key_and_the_nearest_valid_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweeper.toml");
    fs::write(&file, "[verdict]\nidle_aftr = \"30m\"\n").unwrap();
    for (variable, value, expected) in [
        (
            "UNRELATED",
            "",
            format!("{}: unknown key `verdict.idle_aftr`; the nearest valid key is `verdict.idle_after`", file.display()),
        ),
        (
            // A file in which nothing is wrong is named elsewhere; here the variable is.
            "SWEEPER_VERDICT__IDLE_AFTR",
            "30m",
            "environment variable SWEEPER_VERDICT__IDLE_AFTR: unknown key `SWEEPER_VERDICT__IDLE_AFTR`; the nearest valid key is \
             `SWEEPER_VERDICT__IDLE_AFTER`"
                .to_owned(),
        ),
    ] {
        if variable != "UNRELATED" {
            fs::write(&file, "").unwrap();
        }
        let output = Command::new(binaries::sweeper())
            .env_clear()
            .env("NO_COLOR", "1")
            .env("SWEEPER_DATA_DIR", folder.path().join("data"))
            .env(variable, value)
            .args(["--config".as_ref(), file.as_os_str(), "serve".as_ref()])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
        assert!(errors.contains(&expected), "{errors}");
        assert!(!folder.path().join("data").exists(), "nothing was started");
    }
}
