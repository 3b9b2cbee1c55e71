#!/usr/bin/env bash
# Builds Cloud Sweeper and watches this very host: a sweeper and a node agent in one foreground session. `make run` calls it.
#
# Everything that it writes lies in target/run, or where RUN_DIR says; deleting that folder forgets it all. Settings come from the
# environment as for any start by hand (SWEEPER_…, NODE_AGENT_…, AWS_…): with AWS credentials the sweeper also reads that account.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! node-agent-ebpf/toolchain.sh find >/dev/null 2>&1; then
    echo "run: no BPF toolchain: building an agent that reads /proc alone"
    export BPF_CARGO=none
fi
make --no-print-directory build

host=$(rustc -vV | sed -n 's/^host: //p')
sweeper=target/debug/sweeper
agent=target/$host/release/node-agent
state=${RUN_DIR:-target/run}
mkdir -p "$state"

export SWEEPER_DATA_DIR=${SWEEPER_DATA_DIR:-$state/sweeper}
export SWEEPER_API__LISTEN=${SWEEPER_API__LISTEN:-127.0.0.1:8090}
export NODE_AGENT_STATE_DIR=${NODE_AGENT_STATE_DIR:-$state/agent}
export NODE_AGENT_SWEEPER_URL=${NODE_AGENT_SWEEPER_URL:-http://$SWEEPER_API__LISTEN}
export NODE_AGENT_JOIN_TOKEN_FILE=${NODE_AGENT_JOIN_TOKEN_FILE:-$SWEEPER_DATA_DIR/join-token}

sweeper_pid= agent_pid=
# The agent first, so that the sweeper still takes its last heartbeat. Each closes its files before this script returns.
finish() {
    trap - EXIT INT TERM
    for child in $agent_pid $sweeper_pid; do
        kill -TERM "$child" 2>/dev/null || true
        wait "$child" || true
    done
}
trap finish EXIT
trap 'echo; echo "run: ending both"; finish; exit 0' INT TERM

"$sweeper" serve &
sweeper_pid=$!
until [ -s "$NODE_AGENT_JOIN_TOKEN_FILE" ]; do
    kill -0 "$sweeper_pid" 2>/dev/null || exit 1
    sleep 0.1
done

# Without the right to load eBPF programs the agent reads /proc instead; either way it says here what it can measure.
echo
"$agent" doctor || true
echo
"$agent" run &
agent_pid=$!

cat <<MESSAGE

  The sweeper listens at http://$SWEEPER_API__LISTEN and this host reports to it. Ctrl-C ends both.
  In another terminal, from this folder:

    export SWEEPER_DATA_DIR=$SWEEPER_DATA_DIR
    $sweeper sweep        one sweep now
    $sweeper findings     what it has found so far
    $agent once   one heartbeat of this host, as JSON

  Everything that this session writes lies in $state.

MESSAGE

status=0
wait -n || status=$?
echo "run: one of the two ended (status $status); ending the other" >&2
exit 1
