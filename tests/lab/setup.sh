#!/bin/sh
# Installs what a build needs (setup.sh build), what `make check` needs and every package of the distribution (setup.sh check), what the tests need as well (setup.sh test),
# what the benches do (setup.sh bench), what makes a release (setup.sh release), or what the Terraform modules are checked by (setup.sh terraform). It asks nothing, says what it does, and installs only what is missing: a second run touches nothing. The distribution's packages go
# where they belong, all else into .setup/.
#
# As root it calls apt-get; as a plain user `sudo -n apt-get` where that is allowed; otherwise it prints the command to run, and fails.
set -eu

machete_version=0.9.2
deny_version=0.20.2
deb_version=3.8.0
rpm_version=0.21.1
cyclonedx_version=0.5.9

cd "$(dirname "$0")/../.."
mkdir -p .setup
what=${1:-}
case $what in build | check | test | bench | release | terraform) ;; *)
    echo "usage: setup.sh build|check|test|bench|release|terraform" >&2
    exit 2
    ;;
esac

say() { echo "setup: $*"; }
fail() {
    echo "setup: $*" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

# The distribution's packages that are missing. What a program tells by itself is asked for by its program, so that a machine
# which has it from elsewhere is left alone.
missing_packages() {
    if [ $what = terraform ]; then
        python3 -c 'import venv, ensurepip' 2>/dev/null || /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
        has systemd-analyze || echo systemd
        has node || echo nodejs
        has npm || echo npm
        return 0
    fi
    has cc || echo gcc libc6-dev
    [ $what != bench ] || { has bpftrace || echo bpftrace; has bpftool || echo bpftool; }
    if [ $what = release ]; then
        has musl-gcc || echo musl-tools
        has aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
        has python3 || echo python3-minimal
        has ssh-keygen || echo openssh-client
        has dpkg-deb || echo dpkg
        has lintian || echo lintian
        has rpm || echo rpm
        has rpmlint || echo rpmlint
        has shellcheck || echo shellcheck
        [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
        [ -e /usr/share/zoneinfo ] || echo tzdata
        return 0
    fi
    [ $what != build ] || return 0
    python3 -c 'import venv, ensurepip' 2>/dev/null || /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
    has qemu-system-x86_64 || echo qemu-system-x86
    has qemu-system-aarch64 || echo qemu-system-arm
    has aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    [ -n "$(static_busybox)" ] || echo busybox-static
    has stress-ng || echo stress-ng
    has ip || echo iproute2
    has xz || echo xz-utils
    has systemd-analyze || echo systemd
    has podman || echo podman
    has runc || echo runc
    has setpriv || echo util-linux
    # What takes the manual pages and the completions of the packages.
    has groff || echo groff-base
    has zsh || echo zsh
    has fish || echo fish
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || has initdb || echo postgresql
    # A container engine and a batch system, for the agent to look at.
    has podman || echo podman
    has runc || echo runc
    has containerd || echo containerd
    has slurmctld || echo slurmctld
    has slurmd || echo slurmd
    has srun || echo slurm-client
    has munged || echo munge
    # Another distribution's package database, and what a snap is made of, for the agent to read.
    has rpmbuild || echo rpm
    has mksquashfs || echo squashfs-tools
    # A whole distribution for a micro-VM, and a way into it.
    has debootstrap || echo debootstrap
    has mke2fs || echo e2fsprogs
    has ssh || echo openssh-client
    # An evaluator of IAM policies, a template engine and two checkers of mails are JavaScript.
    has node || echo nodejs
    has npm || echo npm
    # A browser, for what people are sent.
    has chromium || echo chromium
}

# busybox-static replaces busybox: the program is in the same place, but needs no library.
static_busybox() {
    for program in /bin/busybox /usr/bin/busybox; do
        if [ -x $program ] && ! ldd $program >/dev/null 2>&1; then
            echo $program
            return
        fi
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_install() {
    [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

install_packages() {
    has apt-get || fail "this is no Debian: install these, under the names that your distribution has for them, and come back: $*"
    may_install || fail "packages are missing, and this user may not install them; run this, and come back:
    sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    say "installing $* (what apt-get says goes to .setup/apt.log)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null >.setup/apt.log
}

rust_toolchain() {
    has cargo || fail "cargo is missing: install rustup (https://rustup.rs)"
    cargo --version >/dev/null 2>&1 || {
        say "the Rust toolchain that rust-toolchain.toml names"
        rustup toolchain install
    }
}

# A machine that was just made has no package lists yet, and then knows no package.
package_lists() {
    has apt-get && may_install || return 0
    [ -z "$(apt-cache madison gcc 2>/dev/null)" ] || return 0
    say "fetching the package lists"
    as_root apt-get update -q >.setup/apt.log
}

packages() {
    [ $# = 0 ] && return 0
    install_packages "$@" || {
        say "the package lists may be old: once more with new ones"
        as_root apt-get update -q >.setup/apt.log
        install_packages "$@"
    }
}

# What compiles the agent's programs for the kernel. A build can do without: the agent then reads /proc alone.
bpf_toolchain() {
    node-agent-ebpf/toolchain.sh find >/dev/null 2>&1 && return 0
    package_lists
    # shellcheck disable=SC2046 # one word per package
    set -- $(node-agent-ebpf/toolchain.sh packages)
    if [ $what = build ] && [ $# != 0 ] && ! may_install; then
        say "no BPF toolchain, and this user may not install it. To have it, run:
    sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
        return 0
    fi
    packages "$@"
    node-agent-ebpf/toolchain.sh install || [ $what = build ]
}

# python_environment FOLDER REQUIREMENTS
# An environment holds its own place in it: one that was made elsewhere (a checkout that was moved or copied) is made anew.
python_environment() {
    { echo "# $PWD" && cat "tests/lab/$2"; } | cmp -s - ".setup/$1/made-of" && return 0
    say "Python packages of tests/lab/$2 into .setup/$1"
    python=python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || python=/usr/bin/python3
    rm -rf ".setup/$1"
    $python -m venv ".setup/$1"
    ".setup/$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "tests/lab/$2"
    # Last, so that an interrupted run is taken up again.
    { echo "# $PWD" && cat "tests/lab/$2"; } >".setup/$1/made-of"
}

# What tests/lab/node/package-lock.json pins, without any script of a package's own being run.
node_packages() {
    cmp -s tests/lab/node/package-lock.json .setup/node/made-of && return 0
    say "JavaScript packages of tests/lab/node into .setup/node"
    rm -rf .setup/node
    mkdir -p .setup/node
    cp tests/lab/node/package.json tests/lab/node/package-lock.json .setup/node/
    npm ci --prefix .setup/node --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
    # Last, so that an interrupted run is taken up again.
    cp tests/lab/node/package-lock.json .setup/node/made-of
}

# What AWS and Google once answered, and Google's description of its APIs. botocore keeps answers in its source package only; libcloud
# among its tests, which it installs.
recorded_answers() {
    cmp -s tests/lab/recorded.txt .setup/recorded/requirements.txt && return 0
    say "recorded answers of AWS and Google, as tests/lab/recorded.txt pins them, into .setup/recorded"
    rm -rf .setup/recorded .setup/recorded.part
    mkdir -p .setup/recorded.part .setup/recorded/botocore .setup/recorded/libcloud .setup/recorded/gce .setup/recorded/google .setup/recorded/focus
    .setup/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary botocore,focus-validator --ignore-requires-python \
        --dest .setup/recorded.part -r tests/lab/recorded.txt
    tar -xzf .setup/recorded.part/botocore-*.tar.gz -C .setup/recorded/botocore --strip-components=6 --wildcards \
        '*/tests/unit/response_parsing/xml/responses/*-describe-*.xml'
    .setup/venv/bin/python -m zipfile -e .setup/recorded.part/apache_libcloud-*.whl .setup/recorded.part
    cp .setup/recorded.part/libcloud/test/compute/fixtures/ec2/describe_*.xml .setup/recorded/libcloud/
    cp .setup/recorded.part/libcloud/test/compute/fixtures/gce/aggregated_*.json .setup/recorded/gce/
    .setup/venv/bin/python -m zipfile -e .setup/recorded.part/google_api_python_client-*.whl .setup/recorded.part
    for api in compute.v1 monitoring.v3 cloudbilling.v1; do
        cp ".setup/recorded.part/googleapiclient/discovery_cache/documents/$api.json" .setup/recorded/google/
    done
    tar -xzf .setup/recorded.part/focus_validator-*.tar.gz -C .setup/recorded/focus --strip-components=3 --wildcards '*/rules/model-1.2.0.1.json' '*/rules/currency_codes.csv'
    rm -rf .setup/recorded.part
    # Last, so that an interrupted run is taken up again.
    cp tests/lab/recorded.txt .setup/recorded/requirements.txt
}

# The address of the Debian mirror that this machine uses; nothing on another distribution.
debian_mirror() {
    # shellcheck disable=SC2016 # apt-get's own words
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }'
}

# download SUITE ARCHITECTURE PACKAGE: puts it, or nothing, into .setup; of a package that only names the newest kernel, that kernel. Neither suite nor architecture need be this
# machine's own: apt-get gets lists, sources and a cache of its own, and what is configured here stays as it is.
download() {
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || return 0
    suite=$1 architecture=$2 package=$3
    own=$PWD/.setup/apt.part
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e $keys ] && signed=" signed-by=$keys" || signed=
    rm -rf "$own"
    mkdir -p "$own/lists/partial" "$own/cache/archives/partial"
    echo "deb [arch=$architecture$signed] $mirror $suite main" >"$own/sources.list"
    set -- -q -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$own/lists" \
        -o Dir::Cache="$own/cache" -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)"
    apt-get "$@" update >.setup/apt.log || return 0
    named=$(apt-cache "$@" depends "$package" | awk '/Depends: linux-image/ { print $2; exit }')
    (cd .setup && apt-get "$@" download "${named:-$package}" >>apt.log) || true
    rm -rf "$own"
}

# unpack DEB FOLDER: without installing it.
unpack() {
    rm -rf "$2" "$2.part"
    mkdir -p "$2.part"
    if has dpkg; then
        dpkg -x "$1" "$2.part"
    else
        ar p "$1" data.tar.xz | tar -xJ -C "$2.part"
    fi
    mv "$2.part" "$2"
    rm "$1"
}

# cloud_kernel SERIES SUITE ARCHITECTURE FOLDER: a kernel of Debian's own cloud images, the newest of its suite, unpacked and not installed: micro-VMs boot it.
cloud_kernel() {
    folder=.setup/kernels/$4
    ls "$folder"/boot/vmlinuz-* >/dev/null 2>&1 && return 0
    kernel_package() { ls .setup/linux-image-"$1".*-cloud-"$2"*.deb 2>/dev/null | head -n 1; }
    if [ -z "$(kernel_package "$1" "$3")" ] && has apt-get; then
        say "Linux $1 for micro-VMs of $3, of $2, into $folder"
        package_lists
        download "$2" "$3" "linux-image-cloud-$3"
    fi
    deb=$(kernel_package "$1" "$3")
    [ -n "$deb" ] || fail "put the package linux-image-$1.*-cloud-$3 of Debian's suite $2 into .setup/ and come back"
    unpack "$deb" "$folder"
}

# arm_package PACKAGE FOLDER FILE: a package of Debian 12 for 64-bit Arm, unpacked there if that file of it is not there yet.
arm_package() {
    [ -e "$2/$3" ] && return 0
    if ! ls .setup/"$1"_*_arm64.deb >/dev/null 2>&1 && has apt-get; then
        say "$1 for arm64 into $2"
        package_lists
        download bookworm arm64 "$1"
    fi
    deb=$(ls .setup/"$1"_*_arm64.deb 2>/dev/null | head -n 1)
    [ -n "$deb" ] || fail "put the package $1 for arm64 of Debian's suite bookworm into .setup/ and come back"
    unpack "$deb" "$2"
}

# The disk of a whole Debian 12 machine (tests/lab/debian.sh), from the mirror that this machine's own packages come from.
debian_machine() {
    [ -e .setup/machine/disk.ext4 ] && sha256sum <tests/lab/debian.sh | cmp -s - .setup/machine/made-of && return 0
    has apt-get || fail "the disk of a Debian 12 machine is missing: make it by tests/lab/debian.sh on a Debian 12 as .setup/machine and come back"
    mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Identifier: Packages' | awk '$1 == "bookworm" {print $2; exit}')
    [ -n "$mirror" ] || fail "no package source of this machine has Debian 12 (bookworm): tests/lab/debian.sh MIRROR .setup/machine makes the disk from another"
    say "a Debian 12 machine from $mirror into .setup/machine (what debootstrap says goes to .setup/debootstrap.log)"
    as_root tests/lab/debian.sh "$mirror" .setup/machine >.setup/debootstrap.log 2>&1 || fail "it failed: see .setup/debootstrap.log"
    [ "$(id -u)" = 0 ] || as_root chown -R "$(id -u)" .setup/machine
}

# The checker of cloud-init's own files, unpacked and not installed: installed, it would set this machine up at its next start.
cloud_init() {
    [ -d .setup/cloud-init ] && return 0
    has apt-get || fail "put the package cloud-init of Debian 12, unpacked, into .setup/cloud-init and come back"
    package_lists
    say "cloud-init's checker into .setup/cloud-init"
    rm -rf .setup/cloud-init.part
    mkdir .setup/cloud-init.part
    (cd .setup/cloud-init.part && apt-get download -q -o APT::Sandbox::User="$(id -un)" cloud-init && dpkg -x cloud-init_*.deb .)
    mv .setup/cloud-init.part .setup/cloud-init
}

# cargo_tool NAME VERSION
cargo_tool() {
    case " $(".setup/bin/$1" --version 2>/dev/null)" in *" $2") return 0 ;; esac
    say "$1 $2 into .setup/bin"
    # A debug build: it is built once and runs for a second.
    cargo install "$1" --quiet --debug --locked --version "$2" --root .setup
}

# release_tool NAME VERSION: one that compresses whole packages, for which a debug build takes minutes.
release_tool() {
    grep -qs "\"$1 $2 " .setup/.crates2.json && [ -x ".setup/bin/$1" ] && return 0
    say "$1 $2 into .setup/bin"
    CARGO_PROFILE_RELEASE_LTO=off cargo install "$1" --quiet --force --locked --version "$2" --root .setup
}

# Where the kernel describes its tracepoints, which bpftrace reads.
tracefs() {
    ls /sys/kernel/tracing/events >/dev/null 2>&1 || ls /sys/kernel/debug/tracing/events >/dev/null 2>&1 && return 0
    say "mounting tracefs at /sys/kernel/tracing"
    as_root mount -t tracefs nodev /sys/kernel/tracing || fail "run this, and come back:
    sudo mount -t tracefs nodev /sys/kernel/tracing"
}

# The one program that neither Debian nor a registry has: whoever has to install it by hand should hear so at once.
case $what in check | test | terraform) tests/lab/terraform/setup.sh found ;; esac
[ $what = terraform ] || rust_toolchain
# shellcheck disable=SC2046 # one word per package
[ -z "$(missing_packages)" ] || { package_lists && packages $(missing_packages); }
[ $what = terraform ] || bpf_toolchain
if [ $what = terraform ]; then
    node_packages
    tests/lab/terraform/setup.sh
fi
if [ $what = release ]; then
    rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
    # The headers that the sweeper's C code for Arm is compiled with (packaging/release/aarch64-linux-musl-gcc). The library itself comes with Rust's target.
    arm_package musl-dev .setup/musl-arm64 usr/include/aarch64-linux-musl/stdio.h
    release_tool cargo-deb $deb_version
    release_tool cargo-generate-rpm $rpm_version
    release_tool cargo-cyclonedx $cyclonedx_version
fi
if [ $what = bench ]; then
    tracefs
    python_environment venv requirements.txt
    python_environment custodian custodian.txt
fi
if [ $what = check ] || [ $what = test ]; then
    ls "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" >/dev/null 2>&1 || rustup target add aarch64-unknown-linux-gnu
    cargo_tool cargo-machete $machete_version
    cargo_tool cargo-deny $deny_version
fi
if [ $what = test ]; then
    python_environment venv requirements.txt
    python_environment engines engines.txt
    node_packages
    recorded_answers
    cloud_kernel 5.10 bullseye amd64 5.10
    cloud_kernel 6.1 bookworm amd64 6.1
    cloud_kernel 6.12 bookworm-backports amd64 6.12
    cloud_kernel 6.1 bookworm arm64 6.1-arm64
    cloud_kernel 6.12 bookworm-backports arm64 6.12-arm64
    # What micro-VMs of Arm have for a shell.
    arm_package busybox-static .setup/kernels/busybox-arm64 bin/busybox
    debian_machine
    cloud_init
    tests/lab/terraform/setup.sh
fi
