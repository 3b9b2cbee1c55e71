# Short-lived processes in a cgroup of their own, seen by the agent and by the kernel's own counters of that cgroup.
#
#   short_lived.sh AGENT COUNT exec|names FOLDER [SOURCE]
#
# exec:  COUNT processes that each run /bin/true
# names: COUNT processes that each end under a name of their own
#
# It needs a POSIX shell (dash, busybox), the right to make a cgroup, what SOURCE (ebpf unless given) needs, and nothing else. FOLDER
# then holds heartbeat.json (what `node-agent once` printed), agent.log, threads (the status of each of the agent's threads),
# and counters, with two lines: the cgroup's path, and its CPU time in nanoseconds.
agent=$1 count=$2 kind=$3 out=$4 source=${5:-ebpf}

if [ -d /sys/fs/cgroup/cpuacct ]; then tree=/sys/fs/cgroup/cpuacct; else tree=/sys/fs/cgroup; fi
group=$tree/short-lived-$$
mkdir "$group"
mkfifo "$out/started" "$out/end"

measure "$source"

# Who starts them stays in the cgroup until the sample is taken: its CPU time is in the cgroup's counters, too.
sh -c '
    echo $$ >"$1/cgroup.procs"
    i=0
    if [ "$3" = exec ]; then
        while [ $i -lt "$2" ]; do /bin/true; i=$((i + 1)); done
    else
        while [ $i -lt "$2" ]; do (echo "name-$i" >/proc/self/comm); i=$((i + 1)); done
    fi
    echo >"$4/started"
    read -r _ <"$4/end"
' sh "$group" "$count" "$kind" "$out" &
parent_pid=$!
read -r _ <"$out/started"

let_go
cpu_ns_of "$group"
# By the shell alone: another process would be one more in the agent's counters.
for thread in /proc/"$agent_pid"/task/*/status; do
    while IFS= read -r line; do printf '%s\n' "$line"; done <"$thread"
done >"$out/threads"
measured
echo >"$out/end"
wait "$parent_pid"
remove "$group"
printf '%s\n%s\n' "${group#"$tree"}" "$cpu_ns" >"$out/counters"
