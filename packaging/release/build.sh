#!/bin/sh
# Builds the programs of a release, the same bytes for one commit wherever that is done: build.sh agent|sweeper FOLDER puts them there.
#
# The agent is linked statically with glibc; the sweeper with musl, because it asks the C library for names of hosts, which a static glibc cannot do everywhere.
# The helper that reads GPUs loads the driver's library, and is linked with this machine's own C library.
set -eu
cd "$(dirname "$0")/../.."
. packaging/release/environment.sh
what=$1 out=$2
mkdir -p "$out"
case $what in
agent)
    target=x86_64-unknown-linux-gnu
    cargo build --locked --release --package node-agent --target $target
    RUSTFLAGS=${RUSTFLAGS#-Ctarget-feature=+crt-static } cargo build --locked --release --package node-agent-gpu
    install -m 755 "$CARGO_TARGET_DIR/$target/release/node-agent" "$CARGO_TARGET_DIR/release/node-agent-gpu" "$out/"
    ;;
sweeper)
    target=x86_64-unknown-linux-musl
    command -v musl-gcc >/dev/null || { echo "musl-gcc is missing: run tests/lab/setup.sh release" >&2 && exit 1; }
    CC_x86_64_unknown_linux_musl=musl-gcc cargo build --locked --release --package sweeper --target $target
    install -m 755 "$CARGO_TARGET_DIR/$target/release/sweeper" "$out/"
    ;;
*) echo "usage: build.sh agent|sweeper FOLDER" >&2 && exit 2 ;;
esac
