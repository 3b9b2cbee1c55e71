#!/bin/sh
# Makes a release of the commit that is checked out, into target/release-VERSION: programs, packages, images, lists of what they hold, checksums and their signature.
#
# RELEASE_KEY is the maintainer's SSH key (its file, or that of the public half where an agent holds it); without one the checksums stay unsigned, and it says so.
# RELEASE_PARTS names what is made: "agent sweeper".
set -eu
cd "$(dirname "$0")/../.."
# A debug build, with the environment of everybody else: it is in no package, and what is built for tests stays as it is.
CARGO_TARGET_DIR=target cargo build --locked --workspace --bin command-pages
. packaging/release/environment.sh
parts=${RELEASE_PARTS:-agent sweeper}
[ -z "$(git status --porcelain)" ] || echo "release: the tree has changes that are in no commit: this is a trial" >&2

out=$PWD/target/release-$version
rm -rf "$out"
mkdir -p "$out"
pages=$PWD/target/packages/pages
rm -rf "$pages"
target/debug/command-pages "$pages"

# make PROGRAM TARGET…: all of one program, for each architecture, and its image for all of them.
make() {
    program=$1
    shift
    cp "packaging/systemd/$program.service" "packaging/systemd/$program.sysusers" "$program/$program.example.toml" "$out/"
    for target in "$@"; do
        machine=${target%%-*}
        mkdir -p "$out/$machine"
        packaging/release/build.sh "$program" "$target" "$out/$machine"
        packaging/release/packages.sh "$program" "$target" "$out/$machine" "$pages" "$out"
        packaging/release/sbom.sh "$program" "$target" "$out/$program-$version-$machine.cdx.json"
        case $machine in x86_64) debian=amd64 ;; *) debian=arm64 ;; esac
        # The targets that were made go, and what an image is made of comes, so that paths may have spaces.
        shift
        set -- "$@" "$debian=$out/$machine/$program"
    done
    packaging/release/image.sh "$program" "$out/$program-$version.oci.tar" "$@"
}
for part in $parts; do
    case $part in
    agent) make node-agent x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu ;;
    sweeper) make sweeper x86_64-unknown-linux-musl aarch64-unknown-linux-musl ;;
    *) echo "release: there is no part $part" >&2 && exit 2 ;;
    esac
done
cp LICENSE CHANGELOG.md "$out/"
(cd "$out" && find . -type f ! -name 'SHA256SUMS*' -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
if [ -n "${RELEASE_KEY:-}" ]; then
    ssh-keygen -q -Y sign -n cloud-sweeper-release -f "$RELEASE_KEY" "$out/SHA256SUMS"
else
    echo "release: RELEASE_KEY is not set: SHA256SUMS is NOT signed" >&2
fi
echo "release: $out"
