//! Scenarios in micro-VMs: nothing runs there but what they start.

use super::{Machine, Scenario, Truth, Week, micro};
use std::time::Duration;

/// A person's computation: a whole CPU, until it is killed.
const COMPUTES: &str = "states burn &";
const STOPS: &str = "killall -9 states";

pub(super) const SCENARIOS: [Scenario; 22] = [
    micro("nothing but the system", Truth::Idle, "", ""),
    micro("a computation that ended", Truth::Idle, COMPUTES, STOPS),
    micro("system daemons alone", Truth::Idle, COMPUTES, "killall -9 states; syslogd; klogd; crond"),
    micro("a process that sleeps for ever", Truth::Idle, COMPUTES, "killall -9 states; states wait &"),
    micro("memory that is held and never read", Truth::Idle, COMPUTES, "killall -9 states; states hold 200000000 &"),
    micro("a computation that was stopped", Truth::Idle, COMPUTES, "killall -STOP states"),
    micro("a server that nobody calls", Truth::Idle, COMPUTES, "killall -9 states; httpd -p 8080 -h /tmp"),
    micro("two processes that wait for each other", Truth::Idle, COMPUTES, "killall -9 states; states deadlock &"),
    micro("a process in uninterruptible sleep", Truth::Idle, COMPUTES, "killall -9 states; states vfork &"),
    micro("children that nobody reads", Truth::Idle, COMPUTES, "killall -9 states; states zombies &"),
    Scenario {
        // A second after its last heartbeat at the latest it is back: its own start is no gap.
        extra: Duration::from_secs(30),
        ..micro(
            "an agent that was killed and came back",
            Truth::Idle,
            COMPUTES,
            "killall -9 states; sleep 10; killall -9 node-agent; agent &",
        )
    },
    Scenario {
        extra: Duration::from_secs(30),
        ..micro(
            "a clock that was set back and forth",
            Truth::Idle,
            COMPUTES,
            "killall -9 states; sleep 10; now=$(date +%s); date -s @$((now - 5)); sleep 6; date -s @$(($(date +%s) + 5))",
        )
    },
    Scenario {
        machine: Machine::Micro { cpus: 24 },
        ..micro("one busy CPU of twenty-four", Truth::Works, "", "states burn & sleep 1; pidof states")
    },
    micro("a spin without a call", Truth::Works, "", "states spin & sleep 1; pidof states"),
    micro("a computation in memory alone", Truth::Works, "", "states sum 100000000 & sleep 1; pidof states"),
    micro("a slow download", Truth::Works, "", "work fetch HOST SENDER &"),
    micro("a trickle of forty bytes a second", Truth::Waits, "", "work fetch HOST TRICKLE &"),
    micro("short tools, one after the other", Truth::Works, "", "sh -c 'while :; do /bin/true; usleep 100000; done' &"),
    micro(
        "a loop of a shell's that sleeps between its jobs",
        Truth::Waits,
        "",
        "sh -c 'while :; do sleep 3600; work burn; done' &",
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
        "sh -c 'while :; do sh -c \"exit 3\"; sleep 1; done' &",
    ),
    micro(
        "an agent killed in the middle of work",
        Truth::Works,
        "",
        "work burn & sleep 10; killall -9 node-agent; agent &",
    ),
];
