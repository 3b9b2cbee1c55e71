//! Who takes part from outside a machine.

use crate::{pty::Terminal, wait};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

/// Longest that somebody waits for a prompt.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);

/// Sends so many bytes each period to whoever connects.
pub(super) async fn send(listener: TcpListener, bytes: usize, period: Duration) {
    let mut connections = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut ticks = pace(period);
            let content = vec![0; bytes];
            while stream.write_all(&content).await.is_ok() {
                ticks.tick().await;
            }
        });
    }
}

/// Ticks at this pace; late ones are not caught up with.
fn pace(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Reads the exporter as Prometheus would, for ever.
pub(super) async fn scrape(address: String) {
    let mut ticks = pace(Duration::from_secs(15));
    loop {
        ticks.tick().await;
        if let Ok(answer) = reqwest::get(format!("http://{address}/metrics")).await {
            drop(answer.text().await);
        }
    }
}

/// Somebody at a terminal, who types so many keys, or goes on for ever, and stays.
pub(super) async fn sit(command: std::process::Command, keys: Option<u32>, every: Duration) {
    let mut terminal = Terminal::start(&command, 80, 24);
    wait::until("a prompt", PROMPT_TIMEOUT, || {
        let shown = terminal.screen().contains('#');
        async move { shown.then_some(()) }
    })
    .await;
    let mut ticks = pace(every);
    let mut left = keys;
    while left != Some(0) {
        ticks.tick().await;
        terminal.press("\r");
        left = left.map(|left| left - 1);
    }
    std::future::pending::<()>().await;
}

/// Tries to log in each ten seconds, without a key that is known.
pub(super) async fn knock(machine: std::process::Command) {
    let arguments: Vec<_> = machine.get_args().map(ToOwned::to_owned).collect();
    let mut ticks = pace(Duration::from_secs(10));
    loop {
        ticks.tick().await;
        let mut ssh = tokio::process::Command::new(machine.get_program());
        ssh.args(arguments.iter().map(|argument| {
            let is_key = argument.to_string_lossy().ends_with("/key");
            if is_key { "/dev/null".into() } else { argument.clone() }
        }));
        ssh.arg("true").kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(ssh.status().await);
    }
}

/// Asks the machine's server for 16 bytes each second, for ever, or for so long each such period.
pub(super) async fn call(address: String, stays: Option<(Duration, Duration)>) {
    loop {
        let began = Instant::now();
        if let Ok(mut stream) = TcpStream::connect(&address).await {
            let mut answer = [0; 16];
            let mut ticks = pace(Duration::from_secs(1));
            while stays.is_none_or(|(stay, _)| began.elapsed() < stay) {
                ticks.tick().await;
                if stream.write_all(&[7; 16]).await.is_err() || stream.read_exact(&mut answer).await.is_err() {
                    break;
                }
            }
        }
        let rest = stays.map_or(Duration::from_secs(1), |(_, period)| period.saturating_sub(began.elapsed()));
        sleep(rest).await;
    }
}
