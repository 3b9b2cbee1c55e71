# $1: how many versions are installed now. As the distribution's presets say, a service is off until somebody enables it: systemctl enable --now node-agent
systemd-sysusers node-agent.conf || :
systemctl daemon-reload >/dev/null 2>&1 || :
if [ "$1" -eq 1 ]; then
    systemctl --no-reload preset node-agent.service >/dev/null 2>&1 || :
fi
