# A mixed load in a cgroup of its own, seen by the agent and by every other counter that the kernel keeps of it.
#
#   mixed_load.sh AGENT LOAD THREAD_EXEC FOLDER DISK INTERFACE ADDRESS PORT [STRESS]
#
# AGENT, LOAD and THREAD_EXEC are programs (load.c, thread_exec.c). DISK is a file or a block device that may be overwritten. At ADDRESS:PORT, reached over INTERFACE,
# `load serve` waits. With STRESS, which is stress-ng, its stressors run besides, in a second cgroup. Two more hold processes that lived
# before the agent measured and that one of their threads takes over then: who leaves, and who stays.
#
# It needs a POSIX shell (dash, busybox), awk, the right to load eBPF and to make cgroups. FOLDER then holds heartbeat.json,
# agent.log, and counters: lines of a name and a number or path.
agent=$1 load=$2 thread_exec=$3 out=$4 disk=$5 interface=$6 address=$7 port=$8 stress=${9:-}

if [ -d /sys/fs/cgroup/cpuacct ]; then
    tree=/sys/fs/cgroup/cpuacct io=/sys/fs/cgroup/blkio
else
    tree=/sys/fs/cgroup io=/sys/fs/cgroup
    echo "+io" >$tree/cgroup.subtree_control
fi
known=mixed-load-$$ wild=mixed-stress-$$
leave=thread-exec-leave-$$ stay=thread-exec-stay-$$
mkdir -p $tree/$known $tree/$wild $io/$known $io/$wild $tree/$leave $tree/$stay
# Version 1 keeps these counters of a disk only once a limit is set for it: one that nothing reaches.
if [ $io != $tree ]; then
    for device in /sys/block/*/device; do
        for group in $known $wild; do
            echo "$(cat "${device%/device}/dev") 1000000000000" >$io/$group/blkio.throttle.read_bps_device
        done
    done
fi
# Each is read once: who reads a second time may find the first writer still there, and get its end for a line.
mkfifo "$out/done" "$out/wild_done" "$out/end_known" "$out/end_wild"

# thread_execs GROUP leave|stay: says what it has to say to GROUP.said, and does what comes next for each line from GROUP.told.
thread_execs() {
    mkfifo "$out/$1.said" "$out/$1.told"
    sh -c 'echo $$ >"$1/cgroup.procs"; exec "$2" watched 20 "$3" "$4" "$5" >"$6.said" <"$6.told"' \
        sh "$tree/$1" "$thread_exec" "$2" "$address" "$port" "$out/$1" &
}
thread_execs $leave leave
leave_pid=$!
exec 3<"$out/$leave.said" 4>"$out/$leave.told"
thread_execs $stay stay
stay_pid=$!
exec 5<"$out/$stay.said" 6>"$out/$stay.told"
read -r _ <&3
read -r _ <&5

measure ebpf

for group in $leave $stay; do
    cpu_ns_of $tree/$group
    echo "$group before_cpu $cpu_ns"
done >"$out/groups"
echo >&4
read -r _ <&3
echo >&6
read -r _ <&5

traffic() { awk -v "of=$interface:" '{ sub(":", ": ") } $1 == of { print "'"$1"'_received", $2; print "'"$1"'_sent", $10;
    print "'"$1"'_packets_received", $3; print "'"$1"'_packets_sent", $11 }' /proc/net/dev; }
traffic before >"$out/counters"

# The shells stay in their cgroups until the sample is taken: their CPU time is in the cgroups' counters, too.
sh -c '
    echo $$ >"$1/cgroup.procs"; echo $$ >"$2/cgroup.procs"
    load=$3
    "$load" storm 6000 >>"$7/wraps"
    "$load" threads 40
    "$load" exec 20
    "$8" once 20
    "$load" disk "$4" 67108864
    "$load" talk "$5" "$6" 33554432 >>"$7/wraps"
    echo >"$7/done"
    read -r _ <"$7/end_known"
' sh $tree/$known $io/$known "$load" "$disk" "$address" "$port" "$out" "$thread_exec" &
known_pid=$!
read -r _ <"$out/done"
traffic after >>"$out/counters"

if [ -n "$stress" ]; then
    sh -c '
        echo $$ >"$1/cgroup.procs"; echo $$ >"$2/cgroup.procs"
        "$3" --quiet --temp-path "$4" --timeout 6 --cpu 1 --vm 1 --vm-bytes 64M --hdd 1 --hdd-bytes 64M --hdd-opts direct \
            --sock 1 --fork 1 --switch 1
        echo >"$4/wild_done"
        read -r _ <"$4/end_wild"
    ' sh $tree/$wild $io/$wild "$stress" "$out" &
    wild_pid=$!
    read -r _ <"$out/wild_done"
fi

let_go
for group in $known $wild $leave $stay; do
    echo "$group path /$group"
    cpu_ns_of $tree/$group
    echo "$group cpu $cpu_ns"
done >>"$out/groups"
for group in $known $wild; do
    if [ $io != $tree ]; then
        awk -v "group=$group" '$2 == "Read" { read += $3 } $2 == "Write" { written += $3 }
            END { print group, "read", read + 0; print group, "written", written + 0 }' \
            $io/$group/blkio.throttle.io_service_bytes
    else
        tr ' ' '\n' <$io/$group/io.stat | awk -F= -v "group=$group" '$1 == "rbytes" { read += $2 } $1 == "wbytes" { written += $2 }
            END { print group, "read", read + 0; print group, "written", written + 0 }'
    fi
done >>"$out/groups"
sed "s/^$known /known_/; s/^$wild /wild_/; s/^$leave /leave_/; s/^$stay /stay_/" "$out/groups" >>"$out/counters"
cat "$out/wraps" >>"$out/counters"

measured
echo >&4
echo >&6
echo >"$out/end_known"
wait "$leave_pid" "$stay_pid" "$known_pid"
if [ -n "$stress" ]; then
    echo >"$out/end_wild"
    wait "$wild_pid"
fi
remove $tree/$known $tree/$wild $tree/$leave $tree/$stay
[ $io = $tree ] || remove $io/$known $io/$wild
