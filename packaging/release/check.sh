#!/bin/sh
# Makes the release of this commit twice, in two folders of different names, and compares: check.sh [PART…] (agent, sweeper; both if none is named). It needs twice the time and the disk of a release.
set -eu
cd "$(dirname "$0")/../.."
export RELEASE_PARTS="${*:-agent sweeper}"
unset RELEASE_KEY
[ -z "$(git status --porcelain)" ] || { echo "check: commit first: what is compared is a commit" >&2 && exit 1; }
work=$PWD/target/reproduced
rm -rf "$work"
mkdir -p "$work"
for name in one another-folder; do
    git clone --quiet --no-hardlinks . "$work/$name"
    ln -s "$PWD/.setup" "$work/$name/.setup"
    (cd "$work/$name" && PATH=$work/$name/.setup/bin:$PATH packaging/release/release.sh)
    mv "$work/$name"/target/release-* "$work/release-of-$name"
    rm -rf "${work:?}/$name"
done
diff --recursive "$work/release-of-one" "$work/release-of-another-folder"
cat "$work/release-of-one/SHA256SUMS"
echo "check: $RELEASE_PARTS: two builds in two folders are the same bytes"
