#!/bin/sh
# Runs all tests of the workspace in two lanes side by side, once everything is built: those that mostly wait, and all others. What the first lane says is shown
# when the second one has ended. Ends with status 1 if a test failed in either.
set -eu
cd "$(dirname "$0")/../.."

# Each waits for most of its time: for machines that boot or are to be quiet, for leases that end, for intervals. Half of a core together.
waiting="real_machine labelled kernels replicas idle_machine identity outage engines containers gpu_host"

# Every other test target there is, so that none is forgotten.
others=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
waiting = sys.argv[1].split()
targets = [target for package in json.load(sys.stdin)["packages"] for target in package["targets"]]
tests = sorted(target["name"] for target in targets if "test" in target["kind"])
missing = [name for name in waiting if name not in tests]
if missing:
    sys.exit(f"tests/lab/run.sh: there is no test {missing}")
print(*(name for name in tests if name not in waiting))' "$waiting")

# shellcheck disable=SC2046 # one word per target
lane() {
    cargo test --locked --workspace --no-fail-fast "$@" $(printf ' --test %s' $names)
}

# This builds the sweeper's program as well, with the features that the tests' own dependencies switch on: `make build` would compile it once more, with others.
cargo test --locked --workspace --no-run
log=$(mktemp)
trap 'rm -f "$log"' EXIT
(names=$waiting && lane) >"$log" 2>&1 &
waiting_lane=$!
failed=0
(names=$others && lane --lib --bins) || failed=1
wait $waiting_lane || failed=1
cat "$log"
cargo test --locked --workspace --doc || failed=1
exit $failed
