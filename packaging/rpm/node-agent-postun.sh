# $1: how many versions remain; the state of the last one stays.
systemctl daemon-reload >/dev/null 2>&1 || :
if [ "$1" -ge 1 ]; then
    systemctl try-restart node-agent.service >/dev/null 2>&1 || :
else
    # Folders that no package holds: cargo-generate-rpm knows files alone.
    rmdir /usr/share/doc/node-agent /usr/share/licenses/node-agent 2>/dev/null || :
fi
