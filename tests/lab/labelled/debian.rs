//! Scenarios on a whole Debian 12.

use super::{INTERACTIVE_AFTER, Jobs, Partner, Scenario, Truth, Week, debian};
use std::time::Duration;

const COMPUTES: &str = "systemd-run -q --unit=adhoc /opt/lab/states burn";
const STOPS: &str = "systemctl stop adhoc";
/// A server of the machine's user, on the port that this host reaches.
const SERVES: &str = "systemd-run -q --unit=server /usr/bin/python3 /opt/lab/server.py";

/// Runs a program as ECS's agent has the container of a job made, and waits for it.
macro_rules! job {
    ($program:literal, $name:literal) => {
        concat!(
            "(systemd-run -q --scope --slice=ecstasks-TASK.slice --unit=docker-CONTAINER ",
            $program,
            " </dev/null >/dev/null 2>&1 &); until pgrep -x ",
            $name,
            "; do sleep 0.2; done"
        )
    };
}

/// That server lives.
const SERVED: &str = "systemctl is-active server";

pub(super) const SCENARIOS: [Scenario; 28] = [
    debian("a Debian left alone", Truth::Idle, COMPUTES, STOPS),
    Scenario { partner: Partner::Scraper, ..debian("an exporter that is scraped", Truth::Idle, COMPUTES, STOPS) },
    Scenario {
        // Until they have ended.
        extra: Duration::from_secs(60),
        ..debian(
            "apt's timers and log rotation",
            Truth::Idle,
            COMPUTES,
            "systemctl stop adhoc; systemctl start --no-block apt-daily logrotate dpkg-db-backup",
        )
    },
    Scenario {
        partner: Partner::Stranger,
        // Its server begins to listen when the agent has given away the right to see who holds which socket.
        ..debian("strangers who try to log in", Truth::Idle, COMPUTES, "systemctl stop adhoc; systemctl restart ssh")
    },
    Scenario {
        partner: Partner::Stranger,
        // As on an Ubuntu: systemd listens for ssh's server when the agent starts.
        extra: Duration::from_secs(30),
        ..debian(
            "strangers at a port that systemd holds",
            Truth::Idle,
            COMPUTES,
            "systemctl stop adhoc; systemctl disable --now ssh; systemctl enable --now ssh.socket; systemctl restart node-agent",
        )
        .holding("systemctl is-active ssh.socket; ! systemctl is-active ssh")
    },
    debian(
        "a container engine without containers",
        Truth::Idle,
        COMPUTES,
        "systemctl stop adhoc; systemctl start docker",
    ),
    debian(
        "an idle container",
        Truth::Idle,
        COMPUTES,
        "systemctl stop adhoc; ctr run -d --rootfs /opt/lab/idle idle /work pause",
    ),
    Scenario {
        partner: Partner::TerminalLeft,
        extra: INTERACTIVE_AFTER.saturating_sub(super::IDLE_AFTER),
        ..debian("a terminal left open", Truth::Idle, COMPUTES, STOPS)
    },
    debian(
        "a Python server that nobody calls",
        Truth::Idle,
        COMPUTES,
        "systemctl stop adhoc; systemd-run -q --unit=server /usr/bin/python3 /opt/lab/server.py",
    ),
    debian(
        "a notebook's kernel that nobody uses",
        Truth::Idle,
        COMPUTES,
        "systemctl stop adhoc; systemd-run -q --unit=kernel /usr/bin/python3 /opt/lab/kernel.py",
    ),
    debian(
        "a job by at that has ended",
        Truth::Idle,
        "cd /; echo 'exec /opt/lab/states burn' | at -M now; until pgrep -x states; do sleep 0.1; done",
        "pkill -x states",
    ),
    Scenario {
        extra: Duration::from_secs(60),
        ..debian(
            "a batch system without a job",
            Truth::Idle,
            COMPUTES,
            "systemctl stop adhoc; systemctl start munge slurmctld slurmd",
        )
    },
    Scenario { partner: Partner::Typist, ..debian("somebody who types", Truth::Works, "", ":") },
    Scenario {
        partner: Partner::Client,
        ..debian("a server with a slow client", Truth::Waits, "", SERVES).holding(SERVED)
    },
    Scenario {
        partner: Partner::HourlyClient,
        ..debian("a server with a client an hour", Truth::Waits, "", SERVES).holding(SERVED)
    },
    debian(
        "a workflow's head that waits for children elsewhere",
        Truth::Waits,
        "",
        "systemd-run -q --unit=head /usr/bin/python3 /opt/lab/head.py HOST TRICKLE",
    )
    .holding("systemctl is-active head"),
    Scenario {
        partner: Partner::Ssh("nohup setsid /opt/lab/work burn >/dev/null 2>&1 &"),
        ..debian("a computation whose person has left", Truth::Works, "", "until pgrep -x work; do sleep 0.5; done")
            .holding("pgrep -x work")
    },
    Scenario {
        week: Week::Nightly,
        ..debian(
            "a nightly job of a user's crontab",
            Truth::Waits,
            COMPUTES,
            "systemctl stop adhoc; echo '0 3 * * * /opt/lab/nightly' | crontab -",
        )
        .holding("crontab -l")
    },
    Scenario {
        week: Week::Nightly,
        ..debian(
            "a nightly job of a timer",
            Truth::Waits,
            COMPUTES,
            "systemctl stop adhoc; systemd-run -q --unit=nightly --on-calendar=03:00 /opt/lab/work burn",
        )
        .holding("systemctl is-active nightly.timer")
    },
    debian("a script that sleeps between its jobs", Truth::Waits, "", "systemd-run -q --unit=loop /opt/lab/loop")
        .holding("systemctl is-active loop"),
    debian(
        "a memory-mapped scan",
        Truth::Works,
        "",
        "systemd-run -q --unit=scan /opt/lab/work scan /usr/bin/containerd",
    )
    .holding("systemctl is-active scan"),
    debian(
        "thrash at a memory limit",
        Truth::Works,
        "",
        "systemd-run -q --unit=thrash -p MemoryMax=4M -p MemorySwapMax=0 /opt/lab/work scan /usr/sbin/dockerd",
    )
    .holding("systemctl is-active thrash"),
    debian("a container that works", Truth::Works, "", "ctr run -d --rootfs /opt/lab/container job /work burn")
        .holding("pgrep -x work"),
    debian(
        "a pipeline's task that sleeps for ever",
        Truth::StuckTask,
        "",
        "systemctl start pipeline; until pgrep -xf 'sleep 100000'; do sleep 0.2; done",
    )
    .holding("pgrep -xf 'sleep 100000'"),
    debian(
        "a worker in the tail of a queue of AWS Batch",
        Truth::Idle,
        job!("/opt/lab/states burn", "states"),
        "pkill -x states",
    )
    .with_job(Jobs::Tail),
    debian("a job of AWS Batch that works", Truth::Works, "", job!("/opt/lab/work fetch HOST SENDER", "work"))
        .with_job(Jobs::Runs)
        .holding("pgrep -x work"),
    debian("a job of AWS Batch that sleeps for ever", Truth::StuckTask, "", job!("/usr/bin/sleep 100000", "sleep"))
        .with_job(Jobs::Runs)
        .holding("pgrep -xf '/usr/bin/sleep 100000'"),
    debian("the last child of an array that hangs", Truth::StuckTask, "", job!("/opt/lab/states deadlock", "states"))
        .with_job(Jobs::LastOfArray)
        .holding("pgrep -x states"),
];
