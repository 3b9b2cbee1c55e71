# A process that asks for memory makes the kernel kill another one, in another cgroup below the same limit.
#
#   oom.sh AGENT FOLDER
#
# It needs a POSIX shell (dash, busybox) with dd, the right to load eBPF and to make cgroups, and no swap. FOLDER then holds
# heartbeat.json, agent.log, and counters: lines of a name and a number or path.
agent=$1 out=$2
if [ -d /sys/fs/cgroup/memory ]; then
    memory=/sys/fs/cgroup/memory rows=/sys/fs/cgroup/cpuacct
    limit=memory.limit_in_bytes usage=memory.usage_in_bytes events=memory.oom_control
else
    memory=/sys/fs/cgroup rows=/sys/fs/cgroup
    limit=memory.max usage=memory.current events=memory.events
    echo +memory >$memory/cgroup.subtree_control
fi
parent=oom-$$
mkdir -p $memory/$parent $rows/$parent
[ $memory != $rows ] || echo +memory >$memory/$parent/cgroup.subtree_control
for group in victim sibling; do mkdir -p $memory/$parent/$group $rows/$parent/$group; done
echo 67108864 >$memory/$parent/$limit
mkfifo "$out/held"
exec 3<>"$out/held"

measure ebpf

# dd fills a buffer of so much, and waits: nobody reads what it writes.
inside='echo $$ >"$1/cgroup.procs"; echo $$ >"$2/cgroup.procs"; exec dd if=/dev/zero of="$3" bs="$4" count=1'
sh -c "$inside" sh $memory/$parent/victim $rows/$parent/victim "$out/held" 48M 2>"$out/victim.log" &
victim_pid=$!
until [ "$(cat $memory/$parent/victim/$usage)" -ge 50331648 ]; do
    kill -0 "$victim_pid"
    sleep 0.1
done
sh -c "$inside" sh $memory/$parent/sibling $rows/$parent/sibling /dev/null 32M 2>"$out/sibling.log"
status=0
wait "$victim_pid" || status=$?

let_go
{
    echo "status $status"
    for group in victim sibling; do
        echo "${group}_path /$parent/$group"
        sed -n "s/^oom_kill /${group}_kills /p" $memory/$parent/$group/$events
    done
} >"$out/counters"
measured
for tree in $memory $rows; do
    [ ! -d $tree/$parent ] || remove $tree/$parent/victim $tree/$parent/sibling $tree/$parent
done
