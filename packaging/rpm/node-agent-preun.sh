# $1: how many versions remain.
if [ "$1" -eq 0 ]; then
    systemctl --no-reload disable --now node-agent.service >/dev/null 2>&1 || :
fi
