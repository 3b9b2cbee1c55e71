#!/usr/bin/env bash
# A newcomer's path, timed: a bare Debian 12 (debootstrap), what the README says to have beforehand, a fresh clone, `make run`; then a second machine with the agent that was built,
# which does nothing, and the README's own commands until it is the first finding. path.sh FOLDER, as root on a Debian 12 with rustup; `make newcomer` calls it. FOLDER must not exist; the clone
# stays in it, and `rm -r` of it removes everything: mounts are made in a namespace of their own.
#
# The Debian shares kernel, clock and network with this machine, and no package, no compiled file and no registry's cache. Rust's toolchain is this machine's own, read-only:
# it stands for rustup, whose download is not timed. The second machine is a micro-VM of this checkout's laboratory.
set -euo pipefail

root=$(realpath -m "${1:?usage: path.sh FOLDER}")
port=${NEWCOMER_PORT:-8090}
cd "$(dirname "$0")/../.."
fail() {
    echo "newcomer: $*" >&2
    exit 1
}
inside() {
    env -i HOME=/root PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
        RUSTUP_AUTO_INSTALL=0 SWEEPER_VERDICT__IDLE_AFTER=2m SWEEPER_API__LISTEN=127.0.0.1:$port "${@:2}" chroot "$root" sh -ec "$1"
}
if [ "${2:-}" = run ]; then
    inside 'cd /root/cloud-sweeper && exec make run'
    exit
fi

[ "$(id -u)" = 0 ] || fail "it makes a Debian and mounts: run it as root"
[ ! -e "$root" ] || fail "$root exists: give a folder that does not, or remove it"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
command -v rustup >/dev/null || fail "rustup is missing: https://rustup.rs"

if [ "${NEWCOMER_INSIDE:-}" != yes ]; then
    NEWCOMER_INSIDE=yes exec unshare --mount --propagation private "$0" "$root"
fi

# Lines of one form, for people and programs: seconds since the clone began, and what was reached.
began=$(date +%s)
reached() { printf '%6d s  %s\n' $(($(date +%s) - began)) "$*"; }

sources=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" && $2 ~ /^bookworm/ { print $3, $2 }' | sort -u)
mirror=$(echo "$sources" | awk '$2 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || fail "no package source of this machine has Debian 12 (bookworm)"
echo "newcomer: a bare Debian 12 into $root"
mkdir -p "$root"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 || fail "it failed: see $root.log"
echo "$sources" | while read -r address suite; do echo "deb $address $suite main"; done >"$root/etc/apt/sources.list"
# How this machine reaches package sources and registries: certificates of its own and resolver.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
chroot "$root" update-ca-certificates >/dev/null 2>&1
for place in proc sys dev; do mount --rbind /$place "$root/$place"; done
mkdir -p "$root/root/.rustup" "$root/root/.cargo/bin"
mount --bind -o ro "$(rustup show home)" "$root/root/.rustup"
mount --bind -o ro "$(dirname "$(command -v rustup)")" "$root/root/.cargo/bin"
mkdir "$root/origin"
mount --bind -o ro "$(git rev-parse --show-toplevel)" "$root/origin"

echo "newcomer: git and make, as the README asks for"
inside 'apt-get update -q && apt-get install -y -q --no-install-recommends git make' >>"$root.log" 2>&1 || fail "it failed: see $root.log"

began=$(date +%s)
inside 'git clone --quiet file:///origin /root/cloud-sweeper'
reached "cloned: $(git rev-parse --short HEAD)"

# Each in a session of its own, which is ended as a whole.
machine=
setsid "$0" "$root" run >"$root.run" 2>&1 &
run=$!
finish() {
    for session in $machine $run; do pkill -INT --session "$session" 2>/dev/null || true; done
    wait 2>/dev/null || true
    echo "newcomer: what make run printed is in $root.run"
}
trap finish EXIT

shell() { inside "cd /root/cloud-sweeper && target/debug/sweeper $*" SWEEPER_DATA_DIR=target/run/sweeper; }
until_true() {
    local limit=$1 what=$2
    shift 2
    local end=$(($(date +%s) + limit))
    until "$@" >/dev/null 2>&1; do
        kill -0 $run 2>/dev/null || fail "make run ended: see $root.run"
        [ "$(date +%s)" -lt $end ] || fail "not within $limit s: $what"
        sleep 1
    done
    reached "$what"
}
until_true 900 "the compiler of the kernel's programs is installed" test -x "$root/root/cloud-sweeper/.setup/bin/bpf-linker"
until_true 3600 "the agent is built" test -x "$root/root/cloud-sweeper/target/x86_64-unknown-linux-gnu/release/node-agent"
until_true 3600 "the sweeper is built and listens" grep -q 'The sweeper listens at' "$root.run"
reports() { shell nodes | grep -q "$(hostname)"; }
until_true 120 "this machine is among the nodes that report" reports

setsid target/debug/newcomer-machine "$port" "$root/root/cloud-sweeper/target/run/sweeper/join-token" "$root/root/cloud-sweeper/target/x86_64-unknown-linux-gnu/release/node-agent" \
    >"$root.machine" 2>&1 &
machine=$!
until_true 240 "a second machine, which does nothing, runs the agent" grep -q 'has joined' "$root.machine"
# A machine that has just booted is judged after verdict.boot_grace.
found() { shell sweep >/dev/null; shell findings | grep -q 'f-[0-9a-f]'; }
until_true 1800 "the first finding" found
shell findings
