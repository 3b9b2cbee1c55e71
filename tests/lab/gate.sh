#!/bin/sh
# `make test`: all that CI runs. What only the tests need (kernels, a Debian machine, Python packages) is fetched while checks and builds go on: that is minutes of
# waiting.
set -eu
cd "$(dirname "$0")/../.."

tests/lab/setup.sh check
# In a group of its own, which ends with this script whatever ends it.
setsid tests/lab/setup.sh test &
fetching=$!
trap 'kill -- -$fetching 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"${MAKE:-make}" check agent agent-arm
cargo test --locked --workspace --no-run
wait $fetching
trap - EXIT
# Two minutes, before the tests: they share nothing, but would slow each other down.
tests/lab/terraform/check.sh
tests/lab/run.sh
