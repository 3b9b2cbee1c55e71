#!/bin/sh
# Lays out what the packages of one program hold, and makes its .deb and .rpm: packages.sh PROGRAM TARGET BINARIES PAGES OUT
#
# PROGRAM is node-agent or sweeper; TARGET what it was compiled for, as Rust names it; BINARIES a folder with the finished programs; PAGES what `command-pages` wrote. Twice the same for one commit.
# PACKAGE_VERSION gives the packages another version than the program says, to try upgrades.
set -eu
cd "$(dirname "$0")/../.."
. packaging/release/environment.sh
program=$1 target=$2 binaries=$3 pages=$4 out=$5
package_version=${PACKAGE_VERSION:-$version}
case $program in
node-agent) programs="node-agent node-agent-gpu" ;;
sweeper) programs=sweeper ;;
*) echo "packages.sh: there is no package of $program" >&2 && exit 2 ;;
esac
for tool in cargo-deb cargo-generate-rpm; do
    command -v $tool >/dev/null || { echo "$tool is missing: run tests/lab/setup.sh release" >&2 && exit 1; }
done

stage=target/packages/stage/$program
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/units" "$stage/sysusers" "$stage/etc" "$stage/man" "$stage/doc" "$stage/debian/doc" "$stage/debian/lintian" "$out"
for one in $programs; do install -m 755 "$binaries/$one" "$stage/bin/"; done
# A package's programs are in /usr/bin; and what to type to install it by hand is of no use there.
sed -e 's|/usr/local/bin/|/usr/bin/|' -e '/^#$/d' -e '/^#   /d' "packaging/systemd/$program.service" >"$stage/units/$program.service"
sed -e '/^#$/d' -e '/^#   /d' "packaging/systemd/$program.sysusers" >"$stage/sysusers/$program.conf"
cp "$program/$program.example.toml" "$stage/etc/"
for page in "$pages/$program/man"/*.1; do gzip -9nc "$page" >"$stage/man/$(basename "$page").gz"; done
[ "$program" != node-agent ] || gzip -9nc packaging/node-agent-gpu.1 >"$stage/man/node-agent-gpu.1.gz"
mkdir -p "$stage/completions"
cp -R "$pages/$program/completions/." "$stage/completions/"
mv "$stage/completions/bash/$program.bash" "$stage/completions/bash/$program"
gzip -9nc CHANGELOG.md >"$stage/debian/doc/changelog.gz"
python3 packaging/release/licences.py "$program" "$target" | gzip -9nc >"$stage/doc/THIRD-PARTY-LICENCES.gz"
[ "$program" != sweeper ] || cp packaging/policy.example.toml "$stage/doc/"
cp "packaging/debian/$program.lintian-overrides" "$stage/debian/lintian/$program"
{
    echo "$program ($package_version-1) stable; urgency=medium"
    printf '\n  * What changed is in /usr/share/doc/%s/changelog.gz.\n\n' "$program"
    echo " -- Cloud Sweeper <maintainers@cloud-sweeper.example>  $(date --utc --date "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')"
} | gzip -9nc >"$stage/debian/doc/changelog.Debian.gz"
# What is laid out has the commit's time, whenever that was done.
find "$stage" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

cargo deb --quiet --no-build --no-strip --package "$program" --target "$target" --deb-version "$package_version-1" --output "$out/"
cargo generate-rpm --package "$program" --target "$target" --target-dir target/packages --source-date "$SOURCE_DATE_EPOCH" --payload-compress zstd \
    --set-metadata "version = \"$package_version\"" --output "$out/"
