#!/bin/sh
# Builds sweeper and node agent of the commit that is named, into target/upgrade/COMMIT, from a checkout and with a build folder of its own (a quarter of an hour
# the first time, on two cores), and prints that folder.
set -eu
cd "$(dirname "$0")/../.."

# Of a length that does not change as the repository grows.
commit=$(git rev-parse --short=12 --verify "${1:?usage: build.sh COMMIT}^{commit}")
made=$PWD/target/upgrade/$commit
[ ! -x "$made/node-agent" ] || { echo "$made"; exit 0; }

source=$PWD/target/upgrade/source
rm -rf "$source"
mkdir -p "$source" "$made"
git archive "$commit" | tar -x -C "$source"
ln -s "$PWD/.setup" "$source/.setup"
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR="$PWD/target/upgrade/build"
(cd "$source" && cargo build --locked --workspace --bin sweeper && make --no-print-directory agent) >&2
cp "$CARGO_TARGET_DIR/debug/sweeper" "$made/"
# Last, so that an interrupted run is taken up again.
cp "$CARGO_TARGET_DIR/$host/release/node-agent" "$made/"
echo "$made"
