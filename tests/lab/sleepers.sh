# Processes that sleep, some of them until a timer wakes them, each in a cgroup of its own, as the agent tells of them.
#
#   sleepers.sh AGENT STATES FOLDER
#
# AGENT and STATES are programs (states.c). It needs a POSIX shell (dash, busybox), the right to load eBPF and to make cgroups. FOLDER then holds heartbeat.json,
# agent.log, and counters: lines of a name and a number of seconds since boot, or of a name and a path.
agent=$1 states=$2 out=$3

if [ -d /sys/fs/cgroup/cpuacct ]; then tree=/sys/fs/cgroup/cpuacct; else tree=/sys/fs/cgroup; fi
uptime() { read -r up _ </proc/uptime; echo "$1 $up"; }

uptime began >"$out/counters"
pids=
for state in nap poll lock wait poll-for-ever; do
    mkdir "$tree/sleepers-$state-$$"
    sh -c 'echo $$ >"$1/cgroup.procs"; exec "$2" "$3"' sh "$tree/sleepers-$state-$$" "$states" "$state" >"$out/$state" &
    pids="$pids $!"
    until [ -s "$out/$state" ] && grep -q '^[0-9]* (states) S' "/proc/$!/stat"; do
        kill -0 $!
        sleep 0.1
    done
    echo "$state /sleepers-$state-$$" >>"$out/counters"
done
measure ebpf
uptime asleep >>"$out/counters"
sleep 2
measured
# shellcheck disable=SC2086 # one word per process
kill -9 $pids
for state in nap poll lock wait poll-for-ever; do remove "$tree/sleepers-$state-$$"; done
