#!/bin/sh
# Lays Terraform's providers out as a mirror on disk, without a cloud behind them (provider.py): .setup/terraform. tests/lab/setup.sh calls it. Only what is missing is made.
# With the argument `found` it says whether Terraform is there, and makes nothing.
#
# Terraform itself is not packaged by Debian, and nothing here fetches it from its publisher: it must be there.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/lab/terraform
made=.setup/terraform

say() { echo "setup: $*"; }
fail() {
    echo "setup: $*" >&2
    exit 1
}

# Inputs that are checked, `terraform test` with its mocks and overrides: 1.9 has all that the modules use.
command -v terraform >/dev/null 2>&1 || fail "terraform is missing: install 1.9 or newer as https://developer.hashicorp.com/terraform/install says, and come back"
version=$(terraform version -json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["terraform_version"])')
platform=$(terraform version -json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["platform"])')
case $version in
0.* | 1.[0-8].*) fail "terraform $version is too old: install 1.9 or newer as https://developer.hashicorp.com/terraform/install says, and come back" ;;
esac
[ "${1:-}" != found ] || exit 0

# The place of the checkout is part of what is made, so that one which was moved is made anew.
stamp() { echo "# $PWD $platform" && cat $here/requirements.txt $here/package-lock.json $here/schema.py $here/setup.sh; }
stamp | cmp -s - $made/made-of && exit 0

mkdir -p $made
if ! { echo "# $PWD" && cat $here/requirements.txt; } | cmp -s - $made/venv/made-of; then
    say "Python packages of $here/requirements.txt into $made/venv"
    python=python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || python=/usr/bin/python3
    rm -rf $made/venv
    $python -m venv $made/venv
    $made/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $here/requirements.txt
    # Last, so that an interrupted run is taken up again.
    { echo "# $PWD" && cat $here/requirements.txt; } >$made/venv/made-of
fi

say "the providers' schemas, as $here/package-lock.json pins them, into $made (700 MB of packages, which are deleted again)"
rm -rf $made/node $made/mirror
mkdir -p $made/node
cp $here/package.json $here/package-lock.json $made/node/
npm ci --prefix $made/node --ignore-scripts --omit=peer --legacy-peer-deps --no-audit --no-fund --loglevel=error >/dev/null
for name in aws google; do
    said=$($made/venv/bin/python $here/schema.py $made/node/node_modules/@cdktf/provider-$name $made/$name.json)
    version=${said%%:*}
    folder=$made/mirror/registry.terraform.io/hashicorp/$name/$version/$platform
    mkdir -p "$folder"
    program=$folder/terraform-provider-${name}_v$version
    printf '#!/bin/sh\nSCHEMA=%s exec %s %s "$@"\n' "$PWD/$made/$name.json" "$PWD/$made/venv/bin/python" "$PWD/$here/provider.py" >"$program"
    chmod 755 "$program"
done
rm -rf $made/node

# Nothing but the mirror is asked for a provider, and nobody for a newer Terraform.
cat >$made/terraform.rc <<RC
disable_checkpoint = true
provider_installation {
  filesystem_mirror { path = "$PWD/$made/mirror" }
}
RC
stamp >$made/made-of
