#!/bin/sh
# Makes the agent's packages in two versions from the agent that `make agent` has built, lets lintian and rpm judge the newer ones, and tries them on a Debian 12.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/target/packages/tried
rm -rf "$out"
mkdir -p "$out/old" "$out/new" "$out/bin"
target=$(rustc -vV | sed -n 's/^host: //p')
built=target/$target/release
for program in node-agent node-agent-gpu; do strip -o "$out/bin/$program" "$built/$program"; done
target/debug/command-pages "$out/pages"
PACKAGE_VERSION=0.0.9 packaging/release/packages.sh node-agent "$target" "$out/bin" "$out/pages" "$out/old"
packaging/release/packages.sh node-agent "$target" "$out/bin" "$out/pages" "$out/new"

shellcheck packaging/debian/*/postinst packaging/debian/*/prerm packaging/debian/*/postrm
shellcheck --shell=sh packaging/rpm/*.sh
shellcheck --external-sources packaging/release/*.sh
lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$out"/new/*.deb
rpm --query --package --list --nosignature "$out"/new/*.rpm | grep -q '^/usr/lib/systemd/system/node-agent.service$'
target/debug/packages-test "$out"/old/*.deb "$out"/new/*.deb
