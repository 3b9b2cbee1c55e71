# $1: how many versions remain.
if [ "$1" -eq 0 ]; then
    systemctl --no-reload disable --now sweeper.service >/dev/null 2>&1 || :
fi
