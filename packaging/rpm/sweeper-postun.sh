# $1: how many versions remain; the state of the last one stays.
systemctl daemon-reload >/dev/null 2>&1 || :
if [ "$1" -ge 1 ]; then
    systemctl try-restart sweeper.service >/dev/null 2>&1 || :
else
    # Folders that no package holds: cargo-generate-rpm knows files alone.
    rmdir /usr/share/doc/sweeper /usr/share/licenses/sweeper 2>/dev/null || :
fi
