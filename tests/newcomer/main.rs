//! A second machine for a newcomer, who has one sweeper and no cloud: a micro-VM that does nothing and runs the agent that was built, by the README's own words.
//! `make newcomer` calls it.
//!
//! `newcomer-machine PORT JOIN_TOKEN_FILE AGENT`: prints a line when the agent runs, and keeps the machine on until it is ended itself. `make run` makes no second machine, and its own
//! is never idle: it runs a sweeper.

#![expect(clippy::print_stdout, reason = "whoever called it waits for the line")]

use lab::microvm::{Guest, HOST, MicroVm};
use std::{fs, path::Path, time::Duration};

/// An emulated machine boots in seconds, unless this host is busy.
const BOOT_TIMEOUT: Duration = Duration::from_secs(180);

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, token, agent] = arguments.as_slice() else {
        panic!("usage: newcomer-machine PORT JOIN_TOKEN_FILE AGENT")
    };
    let token = fs::read_to_string(token).expect("the join token can be read");
    // Its CPU is emulated, tens of times slower than a real one: by its usual budget the agent would measure half as often.
    let script = format!(
        "syslogd\nklogd\ncrond\nexport NODE_AGENT_MAX_CPU_PERCENT_OF_HOST=100 NODE_AGENT_STATE_DIR=/run/agent\n\
         NODE_AGENT_SWEEPER_URL=http://{HOST}:{port} NODE_AGENT_JOIN_TOKEN_FILE=/etc/join-token node-agent run 2>/run/agent.log &\n\
         until grep -q 'joined the sweeper' /run/agent.log; do usleep 100000; done\nsay the agent has joined\n\
         mkfifo /tmp/never && exec cat /tmp/never\n"
    );
    let guest =
        Guest::running(&script).with_program("node-agent", Path::new(agent)).with_text("join-token", token.trim());
    let folder = tempfile::tempdir().expect("a folder for the machine");
    let mut machine = MicroVm::boot(folder.path(), &guest);
    machine.said("the agent has joined", BOOT_TIMEOUT).await;
    println!("the second machine's agent has joined");
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(machine.is_running(), "the machine ended: {}", machine.console());
    }
}
