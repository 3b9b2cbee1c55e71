# shellcheck shell=sh
# Sourced by the scripts beside it, in the repository's root: what makes two builds of one commit the same bytes, wherever they are made.

# shellcheck disable=SC2034 # read by who sources this
version=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c 'import json, sys; print(next(package["version"] for package in json.load(sys.stdin)["packages"] if package["name"] == "node-agent"))')
# Every time that is written anywhere is that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

# No path of the machine that builds stands in what it builds.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rust_home=$(rustc --print sysroot)
RUSTFLAGS="-Ctarget-feature=+crt-static --remap-path-prefix=$PWD=/cloud-sweeper --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$rust_home=/rust"
CFLAGS="-ffile-prefix-map=$PWD=/cloud-sweeper -ffile-prefix-map=$cargo_home=/cargo"
export RUSTFLAGS CFLAGS
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=symbols
export CARGO_TARGET_DIR="$PWD/target/packages"
