#!/bin/sh
# Writes what one program holds, as CycloneDX has it: sbom.sh PROGRAM TARGET FILE
set -eu
cd "$(dirname "$0")/../.."
. packaging/release/environment.sh
program=$1 target=$2 file=$3
command -v cargo-cyclonedx >/dev/null || { echo "cargo-cyclonedx is missing: run tests/lab/setup.sh release" >&2 && exit 1; }
# It writes one beside each manifest of the workspace.
name=sbom-of-$program
trap 'find . -path ./target -prune -o -name "$name.json" -exec rm {} +' EXIT
cargo cyclonedx -qq --format json --spec-version 1.5 --no-build-deps --target "$target" --manifest-path "$program/Cargo.toml" --override-filename "$name"
# No path of the machine that builds.
sed "s|$PWD|/cloud-sweeper|g" "$program/$name.json" >"$file"
