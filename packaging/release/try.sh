#!/bin/sh
# Makes the packages of a release's programs in two versions, lets lintian, rpm and rpmlint judge the newer ones, and tries them on a Debian 12: try.sh [PACKAGE…]
#
# PACKAGE is node-agent.deb, node-agent.rpm, sweeper.deb or sweeper.rpm; all of them if none is named. The sweeper's are tried with the agent's beside them.
set -eu
cd "$(dirname "$0")/../.."
[ $# != 0 ] || set -- node-agent.deb node-agent.rpm sweeper.deb sweeper.rpm
out=$PWD/target/packages/tried
rm -rf "$out"
mkdir -p "$out/old" "$out/new"
target/debug/command-pages "$out/pages"

# make PROGRAM TARGET: the same program as of two versions.
make() {
    packaging/release/build.sh "$1" "$2" "$out/bin"
    PACKAGE_VERSION=0.0.9 packaging/release/packages.sh "$1" "$2" "$out/bin" "$out/pages" "$out/old"
    packaging/release/packages.sh "$1" "$2" "$out/bin" "$out/pages" "$out/new"
}
make node-agent x86_64-unknown-linux-gnu
case $* in *sweeper*) make sweeper x86_64-unknown-linux-musl ;; esac

shellcheck packaging/debian/*/postinst packaging/debian/*/prerm packaging/debian/*/postrm
shellcheck --shell=sh packaging/rpm/*.sh
shellcheck --external-sources packaging/release/*.sh packaging/release/aarch64-linux-musl-gcc
lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$out"/new/*.deb
packaging/rpm/check.sh "$out"/new/*.rpm
target/debug/packages-test "$out/old" "$out/new" "$@"
