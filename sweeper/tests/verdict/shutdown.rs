//! Which work on a machine that was being stopped its own shutdown may have been.

use crate::node::{Node, bump, wall};
use heartbeat::wire;
use sweeper::verdict::is_no_shutdown;

fn works(node: &mut Node) {
    bump(&mut node.workload.cpu_ns, 20_000_000_000);
    bump(&mut node.counters.cpu_busy_ns, 20_000_000_000);
}

fn is_typed_on(node: &mut Node) {
    let last_input_unix_ms = Some(wall(node.end_s - 5));
    node.interactive_sessions = Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms });
}

#[test]
fn what_the_last_heartbeat_alone_shows_may_have_been_the_shutdown() {
    let shows = |change: fn(&mut Node), then: usize| {
        let mut node = Node::new();
        node.interactive_sessions = Some(wire::InteractiveSessions::default());
        node.quiet(3).pass(change).quiet(then);
        is_no_shutdown(&node.case())
    };
    assert!(!shows(|_| {}, 0) && !shows(|_| {}, 2), "nothing ran");
    assert!(!shows(works, 0), "services that end use CPU time");
    assert!(shows(works, 1), "the agent went on");
    assert!(shows(is_typed_on, 0), "no service types");
    assert!(!is_no_shutdown(&Node::new().case()), "nothing was reported");
}
