//! A real Debian 12 machine is found idle when it is left alone, with all that the distribution and an operator run on it; and each kind of work on
//! it is seen within one interval, whatever it calls itself and whoever starts it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the table is read while it grows: it takes minutes")]

mod site;
mod stuck;
mod works;

use lab::{
    binaries,
    debian::Debian,
    debian::HOST,
    partners::{call, scrape, send, sit},
    sweeper::Sweeper,
    wait,
};
use model::Verdict;
use site::{Seen, Site};
use std::{fmt::Write as _, sync::Arc, time::Duration};
use sweeper::store::Store;
use tokio::{
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout},
};
use works::{Expected, Outside, RUN_ECS_AGENT, SERVER_PORT, WORKS, Work};

const EXPORTER_PORT: u16 = 9100;
/// Of those that were due each 2 s, 15 of 31 heartbeats were made while this host was busy; each 4 s, all of them.
const INTERVAL: Duration = Duration::from_secs(4);
/// So long must what waits be quiet before it is judged.
const WAITS_FOR: Duration = Duration::from_secs(12);
/// How long what waits may stay unseen, on a busy host.
const WAITS_WITHIN: Duration = Duration::from_secs(150);
/// How long a heartbeat of an emulated machine may take from its end to the database.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the end of a work may echo: systemd keeps a user's manager for 10 s after the last session, and a container that Docker is slow to name is
/// asked for again after 14 s, and after 30.
const QUIET_WITHIN: Duration = Duration::from_secs(40);
/// systemd is asked anew a minute after the last time at the earliest, and answers slowly on an emulated machine.
const TIMERS_WITHIN: Duration = Duration::from_secs(100);
/// From the end of the machine's start to the agent's first heartbeat: to load programs takes an emulated machine seconds, a busy one a minute.
const STARTS_WITHIN: Duration = Duration::from_secs(180);
/// From the end of its start until the machine is found idle: what an emulated machine does after its start, and the window twice.
const IDLE_WITHIN: Duration = Duration::from_secs(150);

/// Who runs on the machine, and what its journal says of the last minutes: without it nobody knows whether a work that was not seen was there.
const ACCOUNT: &str = "ps -eo pid,ppid,stat,etimes,cputimes,cgroup:60,args --no-headers | grep -v ' \\[.*\\]$'; \
                       systemctl --no-pager --no-legend list-units --failed; ss -Hltn; \
                       journalctl --no-pager --quiet --output=short-monotonic --since='5 minutes ago'";

const SWEEPER_CONFIG: &str = r#"
[aws]
enabled = "no"
[pricing]
source = "none"
[verdict]
boot_grace = "5s"
# Two scrapes.
idle_after = "30s"
lookback = "10m"
stuck_after = "20s"
# An emulated machine may lose some seconds when this host is busy.
missed_heartbeats = 10
# An emulated CPU is tens of times slower than a real one: a scrape takes a second of it, and the watcher of an idle container, whose 2 ms a
# second would be none on a real one, is at the threshold. Both are ten times what they are elsewhere.
workload_cpu_threshold_ns_per_s = 20_000_000
housekeeping_cpu_budget_ns_per_s = 500_000_000
[sweep]
# The scenario sweeps by hand.
schedule = "0 0 0 1 1 *"
"#;

/// One line of the table.
struct Line {
    kind: &'static str,
    seen: Option<Seen>,
    expected: String,
    fault: Option<String>,
}

impl Line {
    fn text(&self) -> String {
        let seen = self.seen.as_ref();
        let verdict = seen.map_or("-", |seen| seen.verdict.as_str());
        let because = seen.map_or("-", |seen| seen.because.as_str());
        let row = seen.and_then(|seen| seen.row.as_deref()).unwrap_or("-");
        let fault = self.fault.as_ref().map_or_else(|| "ok".to_owned(), |fault| format!("FAILS: {fault}"));
        format!("{} | {verdict} | {because} | {row} | expected {} | {fault}", self.kind, self.expected)
    }
}

impl Site {
    /// Sweeps until the machine is found idle; what is said of it at last, if it is not.
    async fn found_idle(&mut self, booted: Instant) -> Line {
        let mut line = Line { kind: "left alone", seen: None, expected: "idle".into(), fault: None };
        let sweeper = &self.sweeper;
        let found = wait::until("a sweep at the end of that time", 2 * IDLE_WITHIN, || async move {
            let report = sweeper.json(&["sweep"]).await;
            if let Some(finding) = report["findings"].as_array().unwrap().first() {
                return Some(Ok(finding.clone()));
            }
            let why = report["unknown"]
                .as_array()
                .unwrap()
                .iter()
                .chain(report["waiting"].as_array().unwrap())
                .next()
                .map_or_else(
                    || format!("active: {}", report["counts"]),
                    |machine| format!("{}: {}", machine["verdict"], machine["why"]),
                );
            (booted.elapsed() >= IDLE_WITHIN).then_some(Err(why))
        })
        .await;
        let why = match found {
            Ok(finding) => {
                line.expected = format!("idle, found {} s after its start", booted.elapsed().as_secs());
                assert_eq!(finding["class"], "idle_node", "{finding:#}");
                assert_eq!(finding["verdict"], "idle", "{finding:#}");
                return line;
            }
            Err(why) => why,
        };
        let now = self.now().await;
        line.seen = Some(self.seen(now, WAITS_FOR, TIMEOUT, |_| true).await);
        line.fault = Some(format!("not idle within {IDLE_WITHIN:?}; {why}"));
        line
    }

    async fn now(&mut self) -> u64 {
        self.run(":").await
    }

    async fn do_work(&mut self, work: &Work) -> Line {
        let mut outside = JoinSet::new();
        match work.outside {
            Outside::Nobody | Outside::Client => {}
            Outside::Ssh(program) => {
                let mut command = tokio::process::Command::from(self.machine.ssh());
                command.arg(program).kill_on_drop(true).stdin(std::process::Stdio::null());
                outside.spawn(async move { drop(command.status().await) });
            }
            Outside::Typist => {
                let typed = Arc::new(Notify::new());
                outside.spawn(sit(self.machine.ssh(), Some(16), Duration::from_millis(500), typed));
            }
        }
        let began = self.run(work.start).await;
        if work.outside == Outside::Client {
            outside.spawn(call(self.machine.address(SERVER_PORT), None, Arc::default()));
        }
        let line = match work.expected {
            Expected::Active(row) => {
                let first = self.seen(began, Duration::from_nanos(1), TIMEOUT, |_| true).await;
                // Whoever begins it may do more in that interval: its own row must show all the same.
                let is_its_own = |seen: &Seen| {
                    seen.verdict == Verdict::Active && seen.row.as_ref().is_some_and(|key| key.starts_with(row))
                };
                let seen = self.seen(began, Duration::from_nanos(1), TIMEOUT, is_its_own).await;
                let is_it = first.verdict == Verdict::Active && is_its_own(&seen);
                let fault = (!is_it).then(|| "not seen within one interval".to_owned());
                Line { kind: work.kind, seen: Some(seen), expected: format!("active by {row}"), fault }
            }
            Expected::Waits(row, what) => {
                let its_own = |seen: &Seen| seen.row.as_ref().is_some_and(|key| key.starts_with(row));
                let is_seen = |seen: &Seen| (seen.verdict == Verdict::Active && its_own(seen)) || seen.waits_for(what);
                let seen = self.seen(began, WAITS_FOR, WAITS_WITHIN, is_seen).await;
                let is_it = is_seen(&seen);
                let fault = (!is_it).then(|| "neither work nor what it waits for is seen".to_owned());
                let expected = format!("active by {row}, or waiting for {what}");
                Line { kind: work.kind, seen: Some(seen), expected, fault }
            }
        };
        if line.fault.is_some() {
            eprintln!("{}: what the machine itself says of it:\n{}", work.kind, self.machine.run(ACCOUNT).await);
        }
        outside.shutdown().await;
        let ended = self.run(work.stop).await;
        // The next one must be seen by itself.
        let after =
            self.seen(ended, Duration::from_nanos(1), QUIET_WITHIN, |seen| seen.verdict != Verdict::Active).await;
        if after.verdict == Verdict::Active {
            let fault = line.fault.map_or_else(String::new, |fault| format!("{fault}; "));
            let still = format!("{fault}and then not quiet: {} by {:?}", after.because, after.row);
            return Line { fault: Some(still), ..line };
        }
        line
    }
}

#[tokio::test]
async fn a_debian_machine_is_idle_when_left_alone_and_each_kind_of_work_on_it_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), SWEEPER_CONFIG, &[]).await;
    let sender = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let work = binaries::compiled("work.c", folder.path());
    let added = works::added(&work, sender.local_addr().unwrap().port(), folder.path());
    // An emulated CPU is tens of times slower than a real one: kept to its budget, the agent would sample half as often.
    let agent = format!(
        "sweeper_url = \"http://{HOST}:{}\"\nidentity = \"host\"\ninterval = \"{}s\"\nmax_cpu_percent_of_host = 100\n",
        sweeper.port(),
        INTERVAL.as_secs()
    );
    let (home, token) = (folder.path().join("machine"), sweeper.join_token());
    let machine = Debian::boot(&home, &agent, &token, &added, &[EXPORTER_PORT, SERVER_PORT]).await;
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    let mut site = Site { sweeper, machine, store };

    site.counts_by_programs(STARTS_WITHIN).await;
    let mut operator = JoinSet::new();
    operator.spawn(scrape(site.machine.address(EXPORTER_PORT)));
    // 6 KiB a second.
    operator.spawn(send(sender, 2048, Duration::from_millis(333)));
    site.run("ctr run -d --rootfs /opt/lab/idle idle /work pause").await;
    site.run("systemctl start docker").await;
    site.run(RUN_ECS_AGENT).await;
    let booted = Instant::now();

    let mut lines = vec![site.found_idle(booted).await];
    eprintln!("{}", lines[0].text());
    site.finds_a_stuck_task().await;
    site.run("systemd-run --quiet --unit later --on-active=1h true").await;
    for work in &WORKS {
        let line = site.do_work(work).await;
        eprintln!("{}", line.text());
        lines.push(line);
        assert!(timeout(Duration::ZERO, operator.join_next()).await.is_err(), "scraper and sender go on");
    }
    assert_eq!(site.tells_timers("later.timer", TIMERS_WITHIN).await, Ok(()));
    let mut table = String::new();
    for line in &lines {
        writeln!(table, "{}", line.text()).unwrap();
    }
    let failed = lines.iter().filter(|line| line.fault.is_some()).count();
    assert_eq!(failed, 0, "{failed} of {} fail:\n{table}", lines.len());
}
