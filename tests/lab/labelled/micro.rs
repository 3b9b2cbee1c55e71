//! Scenarios in micro-VMs: nothing runs there but what they start.

use super::{IDLE_AFTER, Jobs, Machine, SPINNING_AFTER, Scenario, Truth, Week, micro};
use std::time::Duration;

/// A person's computation: a whole CPU, until it is killed.
const COMPUTES: &str = "begin states burn";
const STOPS: &str = "killall -9 states";

pub(super) const SCENARIOS: [Scenario; 25] = [
    micro("nothing but the system", Truth::Idle, "", ""),
    micro("a computation that ended", Truth::Idle, COMPUTES, STOPS),
    micro("system daemons alone", Truth::Idle, COMPUTES, "killall -9 states; syslogd; klogd; crond"),
    micro("a process that sleeps for ever", Truth::Idle, COMPUTES, "killall -9 states; begin states wait"),
    micro(
        "memory that is held and never read",
        Truth::Idle,
        COMPUTES,
        "killall -9 states; begin states hold 200000000",
    ),
    micro("a computation that was stopped", Truth::Idle, COMPUTES, "killall -STOP states"),
    micro("a server that nobody calls", Truth::Idle, COMPUTES, "killall -9 states; httpd -p 8080 -h /tmp"),
    micro("two processes that wait for each other", Truth::Idle, COMPUTES, "killall -9 states; begin states deadlock"),
    micro("a process in uninterruptible sleep", Truth::Idle, COMPUTES, "killall -9 states; begin states vfork"),
    micro("children that nobody reads", Truth::Idle, COMPUTES, "killall -9 states; begin states zombies"),
    Scenario {
        // Where it takes longer than two intervals to come back, the window begins then.
        extra: Duration::from_secs(30),
        ..micro(
            "an agent that was killed and came back",
            Truth::Idle,
            COMPUTES,
            "killall -9 states; beats 5; killall -9 node-agent; agent &",
        )
    },
    Scenario {
        extra: Duration::from_secs(30),
        ..micro(
            "a clock that was set back and forth",
            Truth::Idle,
            COMPUTES,
            "killall -9 states; beats 5; date -s @$(($(date +%s) - 5)); beats 3; date -s @$(($(date +%s) + 5))",
        )
    },
    Scenario {
        machine: Machine::Micro { cpus: 24 },
        ..micro("one busy CPU of twenty-four", Truth::Works, "", "begin states burn")
    },
    micro("a spin without a call", Truth::Works, "", "begin states spin"),
    micro("a computation in memory alone", Truth::Works, "", "begin states sum 100000000"),
    micro("a slow download", Truth::Works, "", "begin work fetch HOST SENDER"),
    micro("a trickle of forty bytes a second", Truth::Waits, "", "begin work fetch HOST TRICKLE"),
    micro(
        "short tools, one after the other",
        Truth::Works,
        "",
        "begin sh -c 'while :; do /bin/true; usleep 100000; done'",
    ),
    micro(
        "a loop of a shell's that sleeps between its jobs",
        Truth::Waits,
        "",
        "begin sh -c 'while :; do sleep 3600; work burn; done'",
    ),
    Scenario {
        week: Week::Nightly,
        ..micro(
            "a nightly job of a crontab",
            Truth::Waits,
            COMPUTES,
            "killall -9 states; mkdir -p /etc/cron.d; echo '0 3 * * * root /opt/nightly' >/etc/cron.d/nightly; crond",
        )
    },
    micro(
        "a service that fails and is started again",
        Truth::Works,
        "",
        "begin sh -c 'while :; do sh -c \"exit 3\"; sleep 1; done'",
    ),
    micro(
        "an agent killed in the middle of work",
        Truth::Works,
        "",
        "begin work burn; beats 5; killall -9 node-agent; agent &",
    ),
    micro("a worker that AWS Batch does not end", Truth::Idle, "job states burn", STOPS).with_job(Jobs::Over),
    micro("a job of AWS Batch that waits for a peer", Truth::Waits, "", "job work fetch HOST TRICKLE")
        .with_job(Jobs::Runs),
    Scenario {
        extra: SPINNING_AFTER.saturating_sub(IDLE_AFTER),
        ..micro("a job of AWS Batch that loops for ever", Truth::Loops, "", "job states spin").with_job(Jobs::Runs)
    },
];
