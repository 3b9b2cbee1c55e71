//! A local stand-in for Slack's Web API, which judges what it is sent by Slack's own types and limits.
//!
//! It is no Slack: it knows one token, a few channels, seven methods, what one person is told by a command's address, and Socket Mode. What it accepts has passed a JSON Schema generated from
//! Slack's TypeScript types (structure) and the models of Slack's Python SDK (limits).

use crate::{binaries, port, process::Running, smtp::lines};
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

/// Longest that a start may take; Python and its libraries need under a second on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What the server answers instead of posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 429, with this many seconds to wait.
    RateLimited(u64),
    /// 200 with `ok: false` and this code, for example `not_in_channel`.
    Error(&'static str),
    /// A bare HTTP status, for example 503.
    Status(u16),
    /// Silence for so long, then the message is posted after all.
    Stall(Duration),
}

/// How a sweeper hears of what is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears {
    /// By requests that Slack sends and signs.
    Requests,
    /// Over sockets that the sweeper opens.
    Sockets,
}

/// Slack's Web API; it ends with this value, and its messages with it.
#[derive(Debug)]
pub struct Slack {
    folder: TempDir,
    port: u16,
    scheme: &'static str,
    process: Option<Running>,
}

impl Slack {
    /// The one token that may post.
    pub const TOKEN: &str = "xoxb-lab-1-secret";
    /// The app's own token, by which sockets are opened.
    pub const APP_TOKEN: &str = "xapp-1-A0LAB-1-secret";
    /// The app's signing secret.
    pub const SECRET: &str = "8f742231b10e8888abcd99aaabbb85a5";
    /// The workspace.
    pub const TEAM: &str = "T0LAB1";
    /// The channel for all.
    pub const CHANNEL: &str = "#waste";
    /// Its other channels, with their ids.
    pub const OTHERS: [(&str, &str); 3] =
        [("#genomics", "C0LABGENOMICS"), ("#physics", "C0LABPHYSICS"), ("#on-call", "C0LABONCALL")];

    /// Starts it over plain HTTP.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start() -> Self {
        Self::start_with("http").await
    }

    /// Starts it over HTTPS; whoever calls it must trust [`Slack::ca_file`].
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start_https() -> Self {
        Self::start_with("https").await
    }

    async fn start_with(scheme: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Self { folder, port: port::free(), scheme, process: None };
        server.start_again().await;
        server
    }

    /// Starts it once more on the same port and over the same messages.
    ///
    /// # Panics
    ///
    /// When it runs already, or does not start.
    pub async fn start_again(&mut self) {
        assert!(self.process.is_none(), "the Slack stand-in runs already");
        let mut command = Command::new(binaries::python("python"));
        command
            .arg(binaries::checkout().join("tests/lab/python/slack_server.py"))
            .arg(self.port.to_string())
            .arg(self.folder.path())
            .arg(self.scheme);
        // A log of its own for each start, so that the awaited line is this start's.
        let name = format!("slack-{}", fs::read_dir(self.folder.path()).map_or(0, Iterator::count));
        let mut process = Running::start(&name, &mut command, self.folder.path());
        process.line_with("listening", START_TIMEOUT).await;
        self.process = Some(process);
    }

    /// Ends it: connections are refused from now on.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn stop(&mut self) {
        self.process.take().expect("a running Slack stand-in").kill();
    }

    /// The base of its Web API.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("{}://127.0.0.1:{}/api", self.scheme, self.port)
    }

    /// The section of a sweeper's configuration by which it posts here.
    #[must_use]
    pub fn config(&self, hears: Hears) -> String {
        let hears = match hears {
            Hears::Requests => format!("signing_secret = \"{}\"", Self::SECRET),
            Hears::Sockets => format!("app_token = \"{}\"", Self::APP_TOKEN),
        };
        let (token, channel, url) = (Self::TOKEN, Self::CHANNEL, self.api_url());
        format!("[slack]\ntoken = \"{token}\"\n{hears}\nchannel = \"{channel}\"\napi_url = \"{url}\"\n")
    }

    /// The root certificate to trust, in PEM form, if it speaks HTTPS.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Lets the next requests meet these faults, one each; the requests after them are served.
    ///
    /// # Panics
    ///
    /// When the list cannot be written.
    pub fn fail_next(&self, faults: &[Fault]) {
        let line = |fault: &Fault| match fault {
            Fault::RateLimited(seconds) => json!({ "status": 429, "retry_after": seconds }),
            Fault::Error(code) => json!({ "error": code }),
            Fault::Status(status) => json!({ "status": status }),
            Fault::Stall(time) => json!({ "stall_s": time.as_secs_f64() }),
        };
        let lines: String = faults.iter().map(|fault| format!("{}\n", line(fault))).collect();
        fs::write(self.folder.path().join("faults.jsonl"), lines).expect("the faults can be written");
    }

    /// Archives these channels, and no others.
    ///
    /// # Panics
    ///
    /// When the list cannot be written.
    pub fn archive(&self, channels: &[&str]) {
        let list = serde_json::to_string(channels).expect("a list");
        fs::write(self.folder.path().join("archived.json"), list).expect("the list can be written");
    }

    /// The messages posted so far, as they were sent.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        self.read("messages.jsonl")
    }

    /// What was said to one person alone so far, as it was sent.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn whispers(&self) -> Vec<Value> {
        self.read("whispers.jsonl")
    }

    /// What was answered to one person so far, where a command or a button of a message to them alone said, as it was sent, each with its `user`.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn replies(&self) -> Vec<Value> {
        self.read("replies.jsonl")
    }

    /// Where answers to one person are taken, as `slack_payload.py` wants it.
    #[must_use]
    pub fn answers_at(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// The forms that were opened so far, as they were sent, each with its `id`.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn views(&self) -> Vec<Value> {
        self.read("views.jsonl")
    }

    /// Lets `users.info` say this of people, by their ids: an object with what differs from a full member, or the text `error`.
    ///
    /// # Panics
    ///
    /// When the list cannot be written.
    pub fn people(&self, people: &Value) {
        fs::write(self.folder.path().join("users.json"), people.to_string()).expect("the people can be written");
    }

    /// Presses a button, or types a command, as Slack tells `url` of it; `press` is as `slack_press.py` says. Returns the answer's status.
    ///
    /// # Panics
    ///
    /// When there is no such button, or no answer, or one that tells whoever sent the request more than that it was taken.
    pub async fn press(url: &str, press: &Value) -> u16 {
        let mut command = tokio::process::Command::new(binaries::python("python"));
        command.arg(binaries::checkout().join("tests/lab/python/slack_press.py")).arg(url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("Python starts");
        let mut input = process.stdin.take().expect("its input");
        input.write_all(press.to_string().as_bytes()).await.expect("it reads what is pressed");
        drop(input);
        let output = process.wait_with_output().await.expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        let code = said.trim().parse();
        code.unwrap_or_else(|_| panic!("not a bare status: {said}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Presses a button, or types a command, as Slack tells of it over a socket: whether it was acknowledged in time; none if no socket is open.
    ///
    /// # Panics
    ///
    /// When there is no such button, or the stand-in does not answer.
    pub async fn press_over_a_socket(&self, press: &Value) -> Option<bool> {
        self.lab("press", press.to_string()).await.as_bool()
    }

    /// Ends the sockets that are open: as Slack does to replace them, or without a word. Returns how many.
    ///
    /// # Panics
    ///
    /// When the stand-in does not answer.
    pub async fn drop_sockets(&self, is_asked: bool) -> u64 {
        let how = if is_asked { "asked" } else { "broken" };
        self.lab("drop", how.to_owned()).await.as_u64().expect("a number")
    }

    async fn lab(&self, what: &str, body: String) -> Value {
        let mut client = reqwest::Client::builder();
        if let Ok(root) = fs::read(self.ca_file()) {
            client = client.add_root_certificate(reqwest::Certificate::from_pem(&root).expect("a certificate"));
        }
        let client = client.build().expect("a client");
        let url = format!("{}://127.0.0.1:{}/lab/{what}", self.scheme, self.port);
        let answer = client.post(url).body(body).send().await.expect("the stand-in answers");
        answer.json().await.expect("JSON")
    }

    /// The updates of messages so far, as they were sent, each with the `ts` of the message that it changes.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn updates(&self) -> Vec<Value> {
        self.read("updates.jsonl")
    }

    /// Every request so far: `at` (seconds since the epoch), `path`, `status`, `answer`.
    ///
    /// # Panics
    ///
    /// When the server wrote something else than JSON.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.read("requests.jsonl")
    }

    fn read(&self, name: &str) -> Vec<Value> {
        let parse = |line: String| serde_json::from_str(&line).expect("a line of JSON");
        lines(&self.folder.path().join(name)).into_iter().map(parse).collect()
    }
}

/// Whether a message asks anybody anything. *Show proof* changes nothing, and stays in the record.
///
/// # Panics
///
/// If it is no message of blocks.
#[must_use]
pub fn has_buttons(message: &Value) -> bool {
    buttons(message).iter().any(|button| button["action_id"] != "proof")
}

/// All buttons and lists to choose from that a message has.
///
/// # Panics
///
/// If it is no message of blocks.
#[must_use]
pub fn buttons(message: &Value) -> Vec<Value> {
    let blocks = message["blocks"].as_array().expect("blocks").iter().filter(|block| block["type"] == "actions");
    blocks.flat_map(|block| block["elements"].as_array().expect("elements").clone()).collect()
}
