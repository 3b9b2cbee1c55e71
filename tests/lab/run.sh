#!/bin/sh
# Runs all tests of the workspace in three lanes side by side, once everything is built: whole machines that are emulated, those that mostly wait, and all others. What the first
# two say is shown when the last one has ended. Ends with status 1 if a test failed in any.
set -eu
cd "$(dirname "$0")/../.."

# Each emulates a CPU.
machines="real_machine labelled kernels"
# Each waits for most of its time: for leases that end, for intervals, for databases that are away, for containers. Eight of a target's tests at once, where otherwise there are as many
# as CPUs: the longest, `actions`, takes 12 minutes so beside the other lanes, and took 21.
waiting="actions approvals delivery faults batch saturday replicas idle_machine identity outage live_sample engines containers gpu_host"

# Every other test target there is, so that none is forgotten.
others=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
named = sys.argv[1].split()
targets = [target for package in json.load(sys.stdin)["packages"] for target in package["targets"]]
tests = sorted(target["name"] for target in targets if "test" in target["kind"])
missing = [name for name in named if name not in tests]
if missing:
    sys.exit(f"tests/lab/run.sh: there is no test {missing}")
print(*(name for name in tests if name not in named))' "$machines $waiting")

# shellcheck disable=SC2046 # one word per target
lane() {
    cargo test --locked --workspace --no-fail-fast "$@" $(printf ' --test %s' $names)
}

# This builds the sweeper's program as well, with the features that the tests' own dependencies switch on: `make build` would compile it once more, with others.
cargo test --locked --workspace --no-run
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
(names=$machines && lane) >"$logs/machines" 2>&1 &
machines_lane=$!
(names=$waiting && export RUST_TEST_THREADS=8 && lane) >"$logs/waiting" 2>&1 &
waiting_lane=$!
failed=0
(names=$others && lane --lib --bins) || failed=1
for lane in $machines_lane $waiting_lane; do
    wait "$lane" || failed=1
done
cat "$logs/waiting" "$logs/machines"
cargo test --locked --workspace --doc || failed=1
exit $failed
