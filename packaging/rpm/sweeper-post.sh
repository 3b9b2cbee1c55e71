# $1: how many versions are installed now. As the distribution's presets say, a service is off until somebody enables it: systemctl enable --now sweeper
systemd-sysusers sweeper.conf || :
systemctl daemon-reload >/dev/null 2>&1 || :
if [ "$1" -eq 1 ]; then
    systemctl --no-reload preset sweeper.service >/dev/null 2>&1 || :
fi
