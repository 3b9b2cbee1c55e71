#!/bin/sh
# Builds a program of a release, the same bytes for one commit wherever that is done: build.sh node-agent|sweeper TARGET FOLDER puts it there; with the agent, its helper for GPUs.
#
# The agent is linked statically with glibc; the sweeper with musl, because it asks the C library for names of hosts, which a static glibc cannot do everywhere.
# The helper that reads GPUs loads the driver's library, and is linked with Debian 12's C library.
set -eu
cd "$(dirname "$0")/../.."
. packaging/release/environment.sh
program=$1 target=$2 out=$3
# No program tells when it was made, and every crate that calls a C compiler is compiled anew, with all that needs it, when this changes: compilers get one and the same time.
export SOURCE_DATE_EPOCH=0
mkdir -p "$out"
built=$CARGO_TARGET_DIR/$target/release
missing() { echo "$1 is missing: run tests/lab/setup.sh release" >&2 && exit 1; }
case $program in
node-agent)
    if [ "${target%%-*}" = aarch64 ]; then
        command -v aarch64-linux-gnu-gcc >/dev/null || missing aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    fi
    # As `make agent` does.
    set -- --config 'profile.release.lto="thin"' --package
    cargo build --locked --release "$@" node-agent --target "$target"
    install -m 755 "$built/node-agent" "$out/"
    RUSTFLAGS=${RUSTFLAGS#-Ctarget-feature=+crt-static } cargo build --locked --release "$@" node-agent-gpu --target "$target"
    install -m 755 "$built/node-agent-gpu" "$out/"
    ;;
sweeper)
    if [ "${target%%-*}" = aarch64 ]; then
        command -v aarch64-linux-gnu-gcc >/dev/null || missing aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
        export CC_aarch64_unknown_linux_musl="$PWD/packaging/release/aarch64-linux-musl-gcc"
    else
        command -v musl-gcc >/dev/null || missing musl-gcc
        export CC_x86_64_unknown_linux_musl=musl-gcc
    fi
    cargo build --locked --release --package sweeper --target "$target"
    install -m 755 "$built/sweeper" "$out/"
    ;;
*) echo "usage: build.sh node-agent|sweeper TARGET FOLDER" >&2 && exit 2 ;;
esac
