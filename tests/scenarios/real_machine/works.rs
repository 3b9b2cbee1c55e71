//! The kinds of work: how each begins and ends on the machine, and what must be said of it.

use lab::{
    debian::{Added, HOST},
    image,
};
use std::path::Path;

/// Port of the machine on which the low-rate server answers.
pub(super) const SERVER_PORT: u16 = 7000;

/// Who takes part from outside the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// Nobody: a command on the machine begins it.
    Nobody,
    /// Somebody who starts this program by ssh, without a terminal.
    Ssh(&'static str),
    /// Somebody at a terminal, by ssh, who types for some seconds and then stays without a word.
    Typist,
    /// A client of the machine's server, who sends some bytes each second.
    Client,
}

/// What must be said of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The machine is active, by a row whose key begins so.
    Active(&'static str),
    /// The same, or the machine waits, for something that is named so.
    Waits(&'static str, &'static str),
}

/// One kind of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) kind: &'static str,
    pub(super) start: &'static str,
    pub(super) stop: &'static str,
    pub(super) outside: Outside,
    pub(super) expected: Expected,
}

const fn work(kind: &'static str, start: &'static str, stop: &'static str, row: &'static str) -> Work {
    Work { kind, start, stop, outside: Outside::Nobody, expected: Expected::Active(row) }
}

const KILL: &str = "pkill -x work || :";

macro_rules! run_image {
    () => {
        "docker run -d --net=host --security-opt apparmor=unconfined --name ecs-agent amazon/amazon-ecs-agent"
    };
}
macro_rules! run_ecs_agent {
    () => {
        concat!("docker load -q -i /var/cache/ecs/ecs-agent.tar; ", run_image!())
    };
}

pub(super) const WORKS: [Work; 20] = [
    work(
        "a script `logrotate` as root in system.slice",
        "systemctl start nightly",
        "systemctl stop nightly",
        "/system.slice/nightly.service",
    ),
    work("a program `vector`", "systemctl start vector", "systemctl stop vector", "/system.slice/vector.service"),
    work("a program `node-agent`", "systemctl start fold", "systemctl stop fold", "/system.slice/fold.service"),
    work(
        "a program `systemd-render`",
        "systemctl start render",
        "systemctl stop render",
        "/system.slice/render.service",
    ),
    work(
        "a program `node-agent-gpu` below a `node-agent`",
        "systemctl start train",
        "systemctl stop train",
        "/system.slice/train.service",
    ),
    work(
        "a crontab of shell built-ins",
        "echo '@reboot while :; do :; done' | crontab -; rm -f /run/crond.reboot; systemctl restart cron",
        "crontab -r; systemctl kill -s 9 cron; systemctl restart cron",
        "/system.slice/cron.service",
    ),
    work(
        "a program that renames itself to `chronyd`",
        "systemctl start archive",
        "systemctl stop archive",
        "/system.slice/archive.service",
    ),
    work(
        "a transient unit with the name of a shipped one",
        "systemd-run -q --unit=sysstat /opt/lab/work burn",
        "systemctl stop sysstat",
        "/system.slice/sysstat.service",
    ),
    work(
        "a shipped unit with a drop-in",
        "mkdir -p /run/systemd/system/e2scrub_all.service.d; \
         printf '[Service]\\nExecStart=\\nExecStart=/opt/lab/work burn\\n' >/run/systemd/system/e2scrub_all.service.d/own.conf; \
         systemctl daemon-reload; systemctl start --no-block e2scrub_all; until pgrep -x work; do sleep 0.1; done",
        "systemctl stop e2scrub_all; rm -r /run/systemd/system/e2scrub_all.service.d; systemctl daemon-reload",
        "/system.slice/e2scrub_all.service",
    ),
    work(
        "a container job",
        "ctr run -d --rootfs /opt/lab/container job /work burn",
        "ctr task rm -f job; ctr container rm job",
        "/default/job",
    ),
    work(
        "another image in the name of ECS's agent",
        concat!(
            "docker commit -p=false ecs-agent amazon/amazon-ecs-agent; docker rm -f ecs-agent; ",
            run_image!(),
            " burn"
        ),
        concat!("docker rm -f ecs-agent; ", run_ecs_agent!()),
        "/system.slice/docker-",
    ),
    work(
        "a job by systemd-run",
        "systemd-run -q --unit=adhoc /opt/lab/work burn",
        "systemctl stop adhoc",
        "/system.slice/adhoc.service",
    ),
    work(
        "a job by at",
        "cd /; echo 'exec /opt/lab/work burn' | at -M now; until pgrep -x work; do sleep 0.1; done",
        KILL,
        "/system.slice/atd.service",
    ),
    Work {
        kind: "a job by ssh",
        // With the session comes a manager of the user's units, whose own start is more work than the job.
        start: "until pgrep -x work && systemctl is-active user@0; do sleep 0.5; done; sleep 2",
        stop: KILL,
        outside: Outside::Ssh("/opt/lab/work burn"),
        expected: Expected::Active("/user.slice/user-0.slice/session-"),
    },
    work("a memory-mapped scan", "systemctl start scan", "systemctl stop scan", "/system.slice/scan.service"),
    work("a transfer of 6 KiB/s", "systemctl start fetch", "systemctl stop fetch", "/system.slice/fetch.service"),
    // Its daemons' own start is more work than the step.
    Work {
        kind: "a Slurm step",
        start: "systemctl start munge slurmctld slurmd; until [ \"$(sinfo -h -o %T)\" = idle ]; do sleep 0.2; done; \
         systemd-run -q --unit=submit srun -v /opt/lab/work burn; \
         until pgrep -xf '/opt/lab/work burn' || ! systemctl is-active submit; do sleep 0.2; done; sleep 4",
        stop: "pkill -9 -x work || :; systemctl kill -s 9 submit slurmd slurmctld munge; pkill -9 slurmstepd || :; \
         systemctl stop submit slurmd slurmctld munge debian_slurmstepd.scope || :",
        outside: Outside::Nobody,
        // Slurm's own daemons may work more than the step does at first: they are no step, and do not count as one.
        expected: Expected::Waits("/system.slice/debian_slurmstepd.scope/job_", "\"batch_step\""),
    },
    Work {
        kind: "a low-rate server with a client outside",
        start: "systemctl start serve",
        stop: "systemctl stop serve",
        outside: Outside::Client,
        expected: Expected::Waits("/system.slice/serve.service", "\"peers\""),
    },
    Work {
        kind: "a Snakemake run that waits",
        start: "systemctl start pipeline",
        stop: "systemctl stop pipeline",
        outside: Outside::Nobody,
        expected: Expected::Waits("/system.slice/pipeline.service", "\"snakemake\""),
    },
    Work {
        kind: "somebody at a terminal",
        start: "until loginctl list-sessions --no-legend | grep -q .; do sleep 0.2; done",
        stop: "loginctl terminate-user root || :",
        outside: Outside::Typist,
        expected: Expected::Waits("/user.slice/user-0.slice/session-", "\"session\""),
    },
];

/// As Amazon's package loads and starts ECS's own agent.
pub(super) const RUN_ECS_AGENT: &str = run_ecs_agent!();

/// A tenth of a CPU in a shell, by commands of its own alone.
const LOGROTATE: &str = "#!/bin/bash
mkfifo /run/nightly
exec 3<>/run/nightly
while :; do
    for ((count = 0; count < 1000; count++)); do :; done
    read -r -t 0.2 never <&3
done
";

/// An engine as the rules know it by its script's name: it has started a job, and waits for it.
const SNAKEMAKE: &str = "#!/usr/bin/python3
import os
os.spawnlp(os.P_WAIT, 'sleep', 'sleep', '100000')
";

const PARENT: &str = "#!/bin/bash
/opt/lab/node-agent-gpu burn &
wait
";

/// A machine of ECS: Docker as far as it goes without modules of the kernel, and the agent with the right to ask it (docs/operations.md).
const DOCKER: &str = r#"{"iptables": false, "ip6tables": false, "bridge": "none", "storage-driver": "vfs"}"#;
/// As docs/operations.md says for machines of ECS: the agent starts before Docker does, and asks only whom it is told of or found then.
const CONTAINERS: &str = "[Service]
Environment=NODE_AGENT_CONTAINERS=true
Environment=NODE_AGENT_DOCKER_SOCKET=/run/docker.sock
AmbientCapabilities=CAP_DAC_OVERRIDE
CapabilityBoundingSet=CAP_DAC_OVERRIDE
";

/// What the works need on the machine. `program` is tests/lab/work.c, `sender_port` where this host sends slowly; files are made in `folder`.
#[must_use]
pub(super) fn added(program: &Path, sender_port: u16, folder: &Path) -> Added {
    // A stand-in for Amazon's image, which cannot be had here: what it takes in all the time would be work in any other container.
    let words = ["fetch", HOST, &sender_port.to_string()];
    let ecs_agent = image::archive(folder, program, &words, "amazon/amazon-ecs-agent:latest");
    let fetch = format!("/opt/lab/work fetch {HOST} {sender_port}");
    let serve = format!("/opt/lab/work serve {SERVER_PORT}");
    let units = [
        ("nightly", "/opt/lab/logrotate"),
        ("vector", "/opt/lab/vector burn"),
        ("fold", "/opt/lab/node-agent burn"),
        ("render", "/opt/lab/systemd-render burn"),
        ("train", "/opt/lab/parent/node-agent"),
        ("archive", "/opt/lab/work renamed chronyd"),
        ("scan", "/opt/lab/work scan /usr/bin/containerd"),
        ("fetch", &fetch),
        ("serve", &serve),
        ("pipeline", "/opt/lab/snakemake --snakefile /opt/lab/Snakefile"),
    ];
    let programs = ["work", "vector", "node-agent", "systemd-render", "node-agent-gpu", "container/work", "idle/work"];
    let added = programs
        .into_iter()
        .fold(Added::default(), |added, name| added.with_copy(&format!("/opt/lab/{name}"), program))
        .with_copy("/var/cache/ecs/ecs-agent.tar", &ecs_agent)
        .with_text("/etc/docker/daemon.json", DOCKER)
        .with_text("/etc/systemd/system/node-agent.service.d/containers.conf", CONTAINERS)
        .with_text("/opt/lab/logrotate", LOGROTATE)
        .with_text("/opt/lab/parent/node-agent", PARENT)
        .with_text("/opt/lab/snakemake", SNAKEMAKE)
        .with_text("/opt/lab/Snakefile", "rule all:\n    shell: 'sleep 100000'\n")
        .with_text("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v2\nConstrainCores=no\n")
        .with_text("/etc/slurm/slurm.conf", include_str!("slurm.conf"));
    units.into_iter().fold(added, |added, (name, command)| {
        added.with_text(&format!("/etc/systemd/system/{name}.service"), &format!("[Service]\nExecStart={command}\n"))
    })
}
