#!/bin/sh
# What the scripts of this folder that look at an agent have in common; it is put before each of them.
set -eu

# Starts `$agent once` with this source, and returns when it measures. By the shell alone: from then on nothing is started but by the script
# itself. $out then holds heartbeat.json and agent.log, whole when `measured` has returned.
measure() {
    mkfifo "$out/log"
    NODE_AGENT_LOG=node_agent=info NODE_AGENT_SOURCE="$1" "$agent" once --interval 1h >"$out/heartbeat.json" 2>"$out/log" &
    agent_pid=$!
    exec 9<"$out/log"
    said=
    until case $said in *'measuring from here on'*) ;; *) false ;; esac; do
        IFS= read -r said <&9 || exit 1
        printf '%s\n' "$said" >>"$out/agent.log"
    done
}

# Ends it, and says so where it had failed: what it said itself is in agent.log by then.
measured() {
    kill -TERM "$agent_pid"
    agent_status=0
    wait "$agent_pid" || agent_status=$?
    while IFS= read -r said <&9; do printf '%s\n' "$said"; done >>"$out/agent.log"
    [ "$agent_status" = 0 ] || {
        echo "the agent ended with $agent_status" >&2
        exit 1
    }
}

# The kernel frees a task when an RCU grace period has passed since it was reaped. Nothing announces that; of 9,300 tasks on a busy host the
# last was freed after 82 ms.
let_go() { sleep 2; }

# cpu_ns_of GROUP: what the cgroup's own counter says, in $cpu_ns.
cpu_ns_of() {
    if [ -e "$1/cpuacct.usage" ]; then
        read -r cpu_ns <"$1/cpuacct.usage"
    else
        read -r _ cpu_us <"$1/cpu.stat" # its first line is usage_usec
        cpu_ns=$((cpu_us * 1000))
    fi
}

# remove GROUP...: removes cgroups. A process that was waited for may be in its cgroup for some milliseconds more.
remove() {
    for group in "$@"; do
        tries=0
        until rmdir "$group" 2>/dev/null; do
            tries=$((tries + 1))
            [ $tries -lt 10 ] || rmdir "$group"
            sleep 1
        done
    done
}
