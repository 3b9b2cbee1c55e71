#!/bin/sh
# Finds, or installs, what compiles Rust to BPF: a compiler with the sources of `core` for exactly that compiler, and bpf-linker.
#
#   toolchain.sh find       prints three lines, cargo=PATH rustc=PATH linker=PATH; without a usable set: one line on stderr, exit 1
#   toolchain.sh packages   prints the distribution's packages that are still missing (none where `find` succeeds)
#   toolchain.sh install    installs the rest as the calling user: rustup's nightly where there is no compiler yet, and bpf-linker into .setup/bin
#
# The order of `find` is fixed: an explicit setting (BPF_CARGO and BPF_RUSTC), rustup's nightly with rust-src, Debian's rustc-web set.
# The compilers are only ever called by their full path: neither rustup's default nor the toolchain of this checkout changes.
set -eu

nightly=nightly-2026-05-20 # rustc 1.97 with LLVM 22, which is what the pinned aya set and bpf-linker fit
llvm=22
linker_version=0.13.0
debian_packages="rustc-web cargo-web libstd-rust-web-dev rust-web-src llvm-$llvm-dev libpolly-$llvm-dev libzstd-dev zlib1g-dev"
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
    echo "node-agent-ebpf/toolchain.sh: $*" >&2
    exit 1
}

# has_core RUSTC: whether the sources that -Zbuild-std needs lie beside this compiler
has_core() {
    [ -x "$1" ] && [ -e "$("$1" --print sysroot)/lib/rustlib/src/rust/library/core/src/lib.rs" ]
}

find_compiler() {
    if [ -n "${BPF_CARGO:-}${BPF_RUSTC:-}" ]; then
        [ -x "${BPF_CARGO:-}" ] && has_core "${BPF_RUSTC:-}" ||
            fail "BPF_CARGO and BPF_RUSTC must both name programs, and the sources of core must lie in that rustc's sysroot"
        cargo=$BPF_CARGO rustc=$BPF_RUSTC
        return 0
    fi
    if command -v rustup >/dev/null; then
        for name in "$nightly" nightly; do
            rustc=$(RUSTUP_AUTO_INSTALL=0 RUSTUP_TOOLCHAIN=$name rustup which rustc 2>/dev/null) || continue
            cargo=$(dirname "$rustc")/cargo
            if has_core "$rustc" && [ -x "$cargo" ]; then return 0; fi
        done
    fi
    cargo=/usr/bin/cargo rustc=/usr/bin/rustc
    # Debian's ordinary rustc is too old; only the set that browsers are built with has the LLVM that bpf-linker speaks.
    has_core $rustc && [ -x $cargo ] && $rustc -vV | grep -q "^LLVM version: $llvm\."
}

find_linker() {
    for linker in "$root/.setup/bin/bpf-linker" "$(command -v bpf-linker || true)" "${CARGO_HOME:-${HOME:-}/.cargo}/bin/bpf-linker"; do
        if [ -x "$linker" ] && "$linker" --version 2>/dev/null | grep -q " $linker_version\$"; then return 0; fi
    done
    return 1
}

has_llvm() {
    [ -n "${LLVM_PREFIX:-}" ] || [ -d "/usr/lib/llvm-$llvm/include/llvm-c" ]
}

case ${1:-} in
find)
    find_compiler || fail "no compiler for BPF: run \`make setup\` (it installs Debian's rustc-web set, or rustup's $nightly with rust-src)"
    find_linker || fail "no bpf-linker $linker_version: run \`make setup\`"
    printf 'cargo=%s\nrustc=%s\nlinker=%s\n' "$cargo" "$rustc" "$linker"
    ;;
packages)
    if find_compiler && { find_linker || has_llvm; }; then exit 0; fi
    command -v apt-cache >/dev/null || exit 0
    # An older release has no such set: then rustup's nightly serves, and `install` says what else is needed.
    [ -n "$(apt-cache madison rustc-web)" ] || exit 0
    for package in $debian_packages; do
        dpkg -s "$package" >/dev/null 2>&1 || echo "$package"
    done
    ;;
install)
    if ! find_compiler; then
        echo "setup: rustup's $nightly with rust-src"
        command -v rustup >/dev/null && rustup toolchain install "$nightly" --profile minimal --component rust-src ||
            fail "rustup cannot install $nightly with rust-src, and this is no Debian with rustc-web: set BPF_CARGO and BPF_RUSTC"
        find_compiler || fail "rustup installed $nightly, but the sources of core are not in it"
    fi
    if ! find_linker; then
        has_llvm || fail "bpf-linker $linker_version is missing and LLVM $llvm to build it with is not here: put its release for this machine on PATH, or set LLVM_PREFIX"
        echo "setup: bpf-linker $linker_version into .setup/bin (about a minute)"
        LLVM_PREFIX=${LLVM_PREFIX:-/usr/lib/llvm-$llvm} cargo install bpf-linker --quiet --version "$linker_version" --locked \
            --root "$root/.setup" --no-default-features --features "llvm-$llvm"
    fi
    ;;
*)
    fail "usage: toolchain.sh find|packages|install"
    ;;
esac
