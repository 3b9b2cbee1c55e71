//! The machines of scenarios: how each is booted, put to work and left.

use super::{Machine, Partner, SCALE, Scenario, Site, worker::Worker};
use crate::{
    binaries,
    debian::{Added, Debian},
    microvm::{Guest, MicroVm},
    partners::{call, knock, scrape, sit},
};
use heartbeat::NodeId;
use serde_json::Value;
use std::{path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

/// Longest that a machine may take to be left.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(300);
/// So many heartbeats it works before it is left: boot grace is over then, and there are enough samples to fill a week with.
const WORKS_FOR: usize = 22;
const EXPORTER_PORT: u16 = 9100;
/// Of the Python server.
const SERVER_PORT: u16 = 7000;

/// A machine that runs.
pub(super) struct Started {
    kind: Kind,
    worker: Option<Worker>,
}

enum Kind {
    Micro(Box<MicroVm>),
    Debian(Box<Debian>),
}

/// What the scripts of micro-VMs are written in: the agent, whose last words are on the console if it fails; wait for so many more of its heartbeats; start a program and wait until it runs.
const WORDS: &str = r#"
agent() { NODE_AGENT_LOG=node_agent=debug node-agent --config /etc/agent.toml run 2>>/run/agent.log || tail -n 5 /run/agent.log >/dev/console; }
sent() { grep -c 'has stored heartbeats' /run/agent.log || :; }
beats() { wanted=$(($(sent) + $1)); until [ "$(sent)" -ge "$wanted" ]; do usleep 200000; done; }
begin() { "$@" & until grep -qx "$1" "/proc/$!/comm"; do usleep 50000; done; }
"#;
/// Starts a program in the container of the job, as ECS's agent has it made, and waits until it runs.
const JOB: &str = r#"
job() {
    group=/sys/fs/cgroup/ecs/TASK/CONTAINER
    mkdir -p $group
    (echo 0 >$group/cgroup.procs; exec "$@") & until grep -qx "$1" "/proc/$!/comm"; do usleep 50000; done
}
"#;
const SERVER: &str = "import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)
socketserver.ThreadingTCPServer.daemon_threads = True
socketserver.ThreadingTCPServer(('0.0.0.0', 7000), Echo).serve_forever()
";
/// A notebook's kernel asks each second whether its parent lives.
const KERNEL: &str = "import os, time
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(1)
";
const HEAD: &str = "import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while connection.recv(64):
    pass
";
/// An engine as the rules know it by its script's name: it has started a task, and waits for it.
const SNAKEMAKE: &str = "#!/usr/bin/python3
import os
os.spawnlp(os.P_WAIT, 'sleep', 'sleep', '100000')
";

fn micro(scenario: &Scenario, worker: Option<&Worker>, cpus: u32, site: &Site, folder: &Path) -> MicroVm {
    let hostname = scenario.hostname();
    let works = if scenario.works.is_empty() {
        String::new()
    } else {
        format!("say works $(cut -d' ' -f1 /proc/uptime)\n{}\nbeats {WORKS_FOR}\n", scenario.works)
    };
    // The script becomes another program: as long as a script runs that has started something, its machine waits.
    let metadata =
        worker.map(|worker| format!("export AWS_EC2_METADATA_SERVICE_ENDPOINT={}\n{JOB}", worker.endpoint()));
    let metadata = metadata.unwrap_or_default();
    let script = format!(
        "set -e\nhostname {hostname}\nmkdir -p /opt /var/spool/cron/crontabs\n: >/run/agent.log\n{WORDS}{metadata}\nagent &\nbeats 1\n{works}{}\n\
         say left $(cut -d' ' -f1 /proc/uptime)\nexec work pause\n",
        scenario.leaves
    );
    let machine_id = uuid::Uuid::new_v4().simple().to_string();
    let config = site.agent_config(&format!("join_token = \"{}\"\nstate_dir = \"/run/agent\"\n", site.join_token()));
    let [work, states] = site.programs();
    let script = filled(&script, worker, site);
    let guest = Guest::running(&script)
        .with_more_cpus(cpus - 1)
        .with_program("node-agent", &binaries::node_agent())
        .with_program("work", work)
        .with_program("states", states)
        .with_text("agent.toml", &config)
        .with_text("machine-id", &machine_id);
    MicroVm::boot(&folder.join("machine"), &guest)
}

/// Commands with what the site and the cloud know in them.
fn filled(commands: &str, worker: Option<&Worker>, site: &Site) -> String {
    let commands = site.filled(commands);
    worker.map_or_else(|| commands.clone(), |worker| worker.filled(&commands))
}

async fn debian(scenario: &Scenario, worker: Option<&Worker>, site: &Site, folder: &Path) -> Debian {
    let [work, states] = site.programs();
    let metadata = worker.map(|worker| {
        let endpoint = worker.endpoint();
        (
            "/etc/systemd/system/node-agent.service.d/metadata.conf",
            format!("[Service]\nEnvironment=AWS_EC2_METADATA_SERVICE_ENDPOINT={endpoint}\n"),
        )
    });
    let added = ["work", "container/work", "idle/work"]
        .into_iter()
        .fold(Added::default(), |added, name| added.with_copy(&format!("/opt/lab/{name}"), work))
        .with_copy("/opt/lab/states", states)
        .with_text("/etc/hostname", &format!("{}\n", scenario.hostname()))
        // Machines that start from one image at once would make the same one for themselves.
        .with_text("/etc/machine-id", &format!("{}\n", uuid::Uuid::new_v4().simple()))
        .with_text(
            "/etc/docker/daemon.json",
            r#"{"iptables": false, "ip6tables": false, "bridge": "none", "storage-driver": "vfs"}"#,
        )
        .with_text("/etc/slurm/slurm.conf", include_str!("../../scenarios/real_machine/slurm.conf"))
        .with_text("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v2\nConstrainCores=no\n")
        .with_text("/opt/lab/server.py", SERVER)
        .with_text("/opt/lab/kernel.py", KERNEL)
        .with_text("/opt/lab/head.py", HEAD)
        .with_text("/opt/lab/loop", "#!/bin/sh\nwhile :; do sleep 3600; /opt/lab/work burn; done\n")
        .with_text("/opt/lab/snakemake", SNAKEMAKE)
        .with_text("/opt/lab/Snakefile", "rule all:\n    shell: 'sleep 100000'\n")
        .with_text(
            "/etc/systemd/system/pipeline.service",
            "[Service]\nExecStart=/opt/lab/snakemake --snakefile /opt/lab/Snakefile\n",
        );
    let added = metadata.into_iter().fold(added, |added, (path, text)| added.with_text(path, &text));
    let token = site.join_token();
    Debian::boot(&folder.join("machine"), &site.agent_config(""), &token, &added, &[EXPORTER_PORT, SERVER_PORT]).await
}

impl Started {
    pub(super) async fn boot(scenario: &Scenario, site: &Site, folder: &Path) -> Self {
        let worker = Worker::start(scenario, site).await;
        let kind = match scenario.machine {
            Machine::Micro { cpus } => Kind::Micro(Box::new(micro(scenario, worker.as_ref(), cpus, site, folder))),
            Machine::Debian => Kind::Debian(Box::new(debian(scenario, worker.as_ref(), site, folder).await)),
        };
        Self { kind, worker }
    }

    /// Whether a finding is of the job on it.
    pub(super) fn is_of_its_job(&self, finding: &Value) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.has(finding))
    }

    pub(super) fn console(&self) -> String {
        match &self.kind {
            Kind::Micro(machine) => machine.console(),
            Kind::Debian(machine) => machine.console(),
        }
    }

    pub(super) fn is_running(&mut self) -> bool {
        match &mut self.kind {
            Kind::Micro(machine) => machine.is_running(),
            Kind::Debian(machine) => machine.is_running(),
        }
    }

    /// Sees to it that the label is still true.
    ///
    /// # Panics
    ///
    /// When it is not: what was said of the machine was said of another one.
    pub(super) async fn holds(&mut self, scenario: &Scenario) {
        if let (Kind::Debian(machine), false) = (&mut self.kind, scenario.holds.is_empty()) {
            let _ = machine.run(&and_uptime(scenario.holds)).await;
        }
    }

    /// Puts it to work, and leaves it. Returns when both were, in nanoseconds since its boot.
    pub(super) async fn leave(
        &mut self,
        scenario: &Scenario,
        site: &Site,
        node: &NodeId,
        partners: &mut JoinSet<()>,
    ) -> (Option<u64>, u64) {
        let worker = self.worker.as_ref();
        let left = match &mut self.kind {
            Kind::Micro(machine) => {
                let works = if scenario.works.is_empty() {
                    None
                } else {
                    Some(uptime_ns(&machine.said("works", LEAVE_TIMEOUT).await))
                };
                (works, uptime_ns(&machine.said("left", LEAVE_TIMEOUT).await))
            }
            Kind::Debian(machine) => {
                let mut works = None;
                // What an emulated CPU is still starting is none of the scenario's: in one run it went on for half a minute after the machine was left. A unit that
                // failed makes this end with a status of its own.
                machine.run("systemctl is-system-running --wait || :").await;
                if scenario.partner == Partner::Scraper {
                    partners.spawn(scrape(machine.address(EXPORTER_PORT)));
                }
                if let Partner::Ssh(program) = scenario.partner {
                    let mut ssh = tokio::process::Command::from(machine.ssh());
                    let done = ssh.arg(program).stdin(Stdio::null()).status().await.expect("ssh starts");
                    assert!(done.success(), "ssh: {done}");
                }
                if !scenario.works.is_empty() {
                    works = Some(uptime_ns(&machine.run(&and_uptime(&filled(scenario.works, worker, site))).await));
                    site.more_heartbeats(node, WORKS_FOR).await;
                }
                let typed = Arc::new(Notify::new());
                let sits = |keys, every| sit(machine.ssh(), keys, every, Arc::clone(&typed));
                match scenario.partner {
                    Partner::TerminalLeft => drop(partners.spawn(sits(Some(16), Duration::from_millis(500)))),
                    Partner::Typist => drop(partners.spawn(sits(None, Duration::from_secs(20)))),
                    Partner::Stranger => drop(partners.spawn(knock(machine.ssh()))),
                    _ => {}
                }
                if matches!(scenario.partner, Partner::TerminalLeft | Partner::Typist) {
                    timeout(LEAVE_TIMEOUT, typed.notified()).await.expect("somebody types");
                }
                let left = uptime_ns(&machine.run(&and_uptime(&filled(scenario.leaves, worker, site))).await);
                let stays = (Duration::from_secs(4), Duration::from_secs(3_600 / u64::from(SCALE)));
                let stays = (scenario.partner == Partner::HourlyClient).then_some(stays);
                if matches!(scenario.partner, Partner::Client | Partner::HourlyClient) {
                    let answered = Arc::new(Notify::new());
                    partners.spawn(call(machine.address(SERVER_PORT), stays, Arc::clone(&answered)));
                    timeout(LEAVE_TIMEOUT, answered.notified()).await.expect("the server answers");
                }
                (works, left)
            }
        };
        if let Some(worker) = worker {
            worker.leave(site).await;
        }
        left
    }
}

/// These commands, each of which must succeed, and then the uptime.
fn and_uptime(commands: &str) -> String {
    format!("set -e; {{ {commands}; }} >/dev/null; cut -d' ' -f1 /proc/uptime")
}

/// Reads `left 12.34`, or an uptime alone, as nanoseconds.
fn uptime_ns(said: &str) -> u64 {
    let uptime = said.split_whitespace().last().and_then(|last| last.split_once('.'));
    let (seconds, hundredths) = uptime.unwrap_or_else(|| panic!("no uptime: {said}"));
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|error| panic!("{error}: {said}"));
    (number(seconds) * 100 + number(hundredths)) * 10_000_000
}
