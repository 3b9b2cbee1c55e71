#!/bin/sh
# Judges .rpm files by what rpm says they hold, and by rpmlint: check.sh FILE…
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "check: $*" >&2 && exit 1; }
# ask FILE FORMAT
ask() { rpm --query --package --nosignature --queryformat "$2" "$1"; }
[ $# != 0 ] || fail "no .rpm is named"
for file; do
    name=$(ask "$file" '%{NAME}')
    files=$(ask "$file" '[%{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEMODES:perms} %{FILENAMES}\n]')
    # All is root's, and nobody else may write to it; what can be executed are the programs alone.
    wrong=$(echo "$files" | grep -v -E '^root:root (-rwxr-xr-x /usr/bin/|-rw-r--r-- )' || true)
    [ -z "$wrong" ] || fail "$file: $wrong"
    for path in "/usr/bin/$name" "/usr/lib/systemd/system/$name.service" "/usr/lib/sysusers.d/$name.conf" "/etc/cloud-sweeper/$name.example.toml" \
        "/usr/share/man/man1/$name.1.gz" "/usr/share/licenses/$name/LICENSE" "/usr/share/doc/$name/THIRD-PARTY-LICENCES.gz"; do
        echo "$files" | grep -q " $path\$" || fail "$file has no $path"
    done
    # What an upgrade must not overwrite.
    ask "$file" '[%{FILEFLAGS:fflags} %{FILENAMES}\n]' | grep -q "^cn /etc/cloud-sweeper/$name.example.toml\$" || fail "$file: its example is no configuration file"
    for script in POSTIN PREUN POSTUN; do
        [ "$(ask "$file" "%{$script}")" != "(none)" ] || fail "$file has no script $script"
    done
done
rpmlint --config packaging/rpm/rpmlint.toml "$@"
