# Processes whose end the agent's programs do not see, and a process that moves from one cgroup to another, as the agent and the cgroups' own counters tell of them.
#
#   lost_ends.sh AGENT LOAD LOSE FOLDER
#
# AGENT, LOAD and LOSE are programs (load.c, lose.c). It needs a POSIX shell (dash, busybox), the right to load eBPF and to make cgroups. FOLDER
# then holds heartbeat.json and agent.log, and the same of a second agent under the names moved.heartbeat.json and moved.agent.log, and counters: lines of a
# name and a number or path.
agent=$1 load=$2 lose=$3 out=$4

if [ -d /sys/fs/cgroup/cpuacct ]; then tree=/sys/fs/cgroup/cpuacct; else tree=/sys/fs/cgroup; fi
own=$tree/lost-script-$$ lost=$tree/lost-$$ from=$tree/moved-from-$$ to=$tree/moved-to-$$
mkdir "$own" "$lost" "$lost/gone" "$from" "$to"
# In version 2 the root's own processes are in no counter.
echo $$ >"$own/cgroup.procs"
cp "$load" "$out/lost-one"
cp "$load" "$out/lost-two"

cpu_line() {
    cpu_ns_of "$1"
    echo "$2 $cpu_ns"
}
# within GROUP PROGRAM...: runs it inside, from the shell on that becomes it. What that used before it was there, another cgroup's counter has, and the agent counts it
# where the process is: it goes to the file `before`, in nanoseconds.
within() {
    # shellcheck disable=SC2016 # expanded by the shell that moves
    sh -c 'echo $$ >"$1/cgroup.procs"; read -r used _ </proc/self/schedstat; echo "$used" >>"$2"; shift 3; exec "$@"' \
        sh "$1" "$out/before" "$@"
}
# before_line NAME: what all of them used before, and forgets it.
before_line() {
    before=0
    while read -r used; do before=$((before + used)); done <"$out/before"
    echo "$1 $before"
    rm "$out/before"
}

measure ebpf
within "$lost" "$out/lost-one" burn 14000
within "$lost" "$load" burn 700
within "$lost/gone" "$out/lost-two" burn 7500
let_go
{
    echo "lost_path ${lost#"$tree"}"
    before_line lost_before
    echo "lost_one_burned 14000"
    echo "lost_two_burned 7500"
    echo "lost_one $("$lose" "$agent_pid" lost-one)"
    echo "lost_two $("$lose" "$agent_pid" lost-two)"
} >"$out/counters"
rmdir "$lost/gone"
cpu_line "$lost" lost_cpu >>"$out/counters"
measured

rm "$out/log"
mv "$out/heartbeat.json" "$out/lost.heartbeat.json"
mv "$out/agent.log" "$out/lost.agent.log"
measure ebpf
within "$from" "$load" move 3000 "$to" 1500
let_go
{
    before_line moved_before
    echo "from_path ${from#"$tree"}"
    echo "to_path ${to#"$tree"}"
    cpu_line "$from" from_cpu
    cpu_line "$to" to_cpu
} >>"$out/counters"
measured
mv "$out/heartbeat.json" "$out/moved.heartbeat.json"

# In version 2 a cgroup with processes cannot be removed, and a script cannot leave its own last.
echo $$ >"$tree/cgroup.procs"
remove "$lost" "$from" "$to" "$own"
