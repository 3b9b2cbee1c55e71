# A mixed load in a cgroup of its own, seen by the agent and by every other book that the kernel keeps of it.
#
#   ledger_truth.sh AGENT LOAD FOLDER DISK INTERFACE ADDRESS PORT [STRESS]
#
# AGENT and LOAD are programs (load.c). DISK is a file or a block device that may be overwritten. At ADDRESS:PORT, reached over INTERFACE,
# `load serve` waits. With STRESS, which is stress-ng, its stressors run besides, in a second cgroup.
#
# It needs a POSIX shell (dash, busybox), awk, the right to load eBPF and to make cgroups. FOLDER then holds heartbeat.json,
# agent.log, and books: lines of a name and a number or path.
agent=$1 load=$2 out=$3 disk=$4 interface=$5 address=$6 port=$7 stress=${8:-}

if [ -d /sys/fs/cgroup/cpuacct ]; then
    tree=/sys/fs/cgroup/cpuacct io=/sys/fs/cgroup/blkio
else
    tree=/sys/fs/cgroup io=/sys/fs/cgroup
    echo "+io" >$tree/cgroup.subtree_control
fi
known=ledger-truth-$$ wild=ledger-stress-$$
mkdir -p $tree/$known $tree/$wild $io/$known $io/$wild
# Version 1 keeps these books of a disk only once a limit is set for it: one that nothing reaches.
if [ $io != $tree ]; then
    for device in /sys/block/*/device; do
        for group in $known $wild; do
            echo "$(cat "${device%/device}/dev") 1000000000000" >$io/$group/blkio.throttle.read_bps_device
        done
    done
fi
mkfifo "$out/done" "$out/end_known" "$out/end_wild"

measure ebpf

traffic() { awk -v "of=$interface:" '{ sub(":", ": ") } $1 == of { print "'"$1"'_received", $2; print "'"$1"'_sent", $10;
    print "'"$1"'_packets_received", $3; print "'"$1"'_packets_sent", $11 }' /proc/net/dev; }
traffic before >"$out/books"

# The shells stay in their cgroups until the reading is done: their CPU time is in the cgroups' books, too.
sh -c '
    echo $$ >"$1/cgroup.procs"; echo $$ >"$2/cgroup.procs"
    load=$3
    "$load" storm 6000 >>"$7/wraps"
    "$load" threads 40
    "$load" exec 20
    "$load" disk "$4" 67108864
    "$load" talk "$5" "$6" 33554432
    echo >"$7/done"
    read -r _ <"$7/end_known"
' sh $tree/$known $io/$known "$load" "$disk" "$address" "$port" "$out" &
known_pid=$!
read -r _ <"$out/done"
traffic after >>"$out/books"

if [ -n "$stress" ]; then
    sh -c '
        echo $$ >"$1/cgroup.procs"; echo $$ >"$2/cgroup.procs"
        "$3" --quiet --temp-path "$4" --timeout 6 --cpu 1 --vm 1 --vm-bytes 64M --hdd 1 --hdd-bytes 64M --hdd-opts direct \
            --sock 1 --fork 1 --switch 1
        echo >"$4/done"
        read -r _ <"$4/end_wild"
    ' sh $tree/$wild $io/$wild "$stress" "$out" &
    wild_pid=$!
    read -r _ <"$out/done"
fi

let_go
for group in $known $wild; do
    echo "$group path /$group"
    if [ -e $tree/$group/cpuacct.usage ]; then
        read -r cpu_ns <$tree/$group/cpuacct.usage
        awk -v "group=$group" '$2 == "Read" { read += $3 } $2 == "Write" { written += $3 }
            END { print group, "read", read + 0; print group, "written", written + 0 }' \
            $io/$group/blkio.throttle.io_service_bytes
    else
        read -r _ cpu_us <$tree/$group/cpu.stat # its first line is usage_usec
        cpu_ns=$((cpu_us * 1000))
        tr ' ' '\n' <$io/$group/io.stat | awk -F= -v "group=$group" '$1 == "rbytes" { read += $2 } $1 == "wbytes" { written += $2 }
            END { print group, "read", read + 0; print group, "written", written + 0 }'
    fi
    echo "$group cpu $cpu_ns"
done | sed "s/^$known /known_/; s/^$wild /wild_/" >>"$out/books"
cat "$out/wraps" >>"$out/books"

measured
echo >"$out/end_known"
wait "$known_pid"
if [ -n "$stress" ]; then
    echo >"$out/end_wild"
    wait "$wild_pid"
fi
rmdir $tree/$known $tree/$wild
[ $io = $tree ] || rmdir $io/$known $io/$wild
