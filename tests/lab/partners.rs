//! Who takes part from outside a machine: they scrape it, send to it, call it, sit at it.

use crate::{pty::Terminal, wait};
use std::{process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
    time::{Instant, Interval, MissedTickBehavior, interval},
};

/// Longest that somebody waits for a prompt, or for a server's first answer.
const TIMEOUT: Duration = Duration::from_secs(120);
const SCRAPE_EVERY: Duration = Duration::from_secs(15);

/// Sends so many bytes each period to whoever connects.
pub async fn send(listener: TcpListener, bytes: usize, period: Duration) {
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
#[must_use]
pub fn pace(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Reads Debian's exporter as Prometheus would, for ever.
///
/// # Panics
///
/// When it does not answer.
pub async fn scrape(address: String) {
    let mut ticks = pace(SCRAPE_EVERY);
    loop {
        ticks.tick().await;
        let answer = reqwest::get(format!("http://{address}/metrics")).await.expect("the exporter answers");
        let metrics = answer.text().await.expect("metrics are text");
        assert!(metrics.contains("node_cpu_seconds_total"), "{metrics}");
    }
}

/// Somebody at a terminal, who types so many keys, or goes on for ever, and stays. `typed` is told when the last of them was, or of one who goes on the first.
///
/// # Panics
///
/// When there is no prompt.
pub async fn sit(command: std::process::Command, keys: Option<u32>, every: Duration, typed: Arc<Notify>) {
    let mut terminal = Terminal::start(&command, 80, 24);
    wait::until("a prompt", TIMEOUT, || {
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
        if left.unwrap_or(0) == 0 {
            typed.notify_one();
        }
    }
    std::future::pending::<()>().await;
}

/// Tries to log in each ten seconds, without a key that is known.
pub async fn knock(machine: std::process::Command) {
    let arguments: Vec<_> = machine.get_args().map(ToOwned::to_owned).collect();
    let mut ticks = pace(Duration::from_secs(10));
    let port = arguments.iter().position(|argument| argument == "-p").and_then(|at| arguments.get(at + 1));
    let port: Option<u16> = port.and_then(|port| port.to_str()?.parse().ok());
    loop {
        ticks.tick().await;
        let mut ssh = tokio::process::Command::new(machine.get_program());
        ssh.args(arguments.iter().map(|argument| {
            let is_key = argument.to_string_lossy().ends_with("/key");
            if is_key { "/dev/null".into() } else { argument.clone() }
        }));
        ssh.arg("true").kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(ssh.status().await);
        // Another one stays for longer than an interval, as many do that only read what the server says of itself.
        if let Some(port) = port
            && let Ok(scanner) = TcpStream::connect(("127.0.0.1", port)).await
        {
            tokio::time::sleep(Duration::from_secs(3)).await;
            drop(scanner);
        }
    }
}

/// Asks the machine's server for 16 bytes each second, for ever; or only for so long at the begin of each such period. Whoever is not answered calls again
/// until they are: a server that is still starting puts nobody off for an hour. `answered` is told of the first answer.
///
/// # Panics
///
/// When nobody answers for two minutes.
pub async fn call(address: String, stays: Option<(Duration, Duration)>, answered: Arc<Notify>) {
    let (stay, period) = stays.unwrap_or((Duration::MAX, Duration::from_secs(1)));
    let mut periods = pace(period);
    loop {
        periods.tick().await;
        wait::until(&format!("an answer at {address}"), TIMEOUT, || async {
            visit(&address, stay, &answered).await.then_some(())
        })
        .await;
    }
}

/// Whether anything was answered.
async fn visit(address: &str, stay: Duration, answered: &Notify) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let (began, mut is_answered) = (Instant::now(), false);
    let (mut answer, mut ticks) = ([0; 16], pace(Duration::from_secs(1)));
    while (!is_answered || began.elapsed() < stay)
        && stream.write_all(&[7; 16]).await.is_ok()
        && stream.read_exact(&mut answer).await.is_ok()
    {
        is_answered = true;
        answered.notify_one();
        ticks.tick().await;
    }
    is_answered
}
