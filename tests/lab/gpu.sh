#!/bin/sh
# gpu.sh FOLDER [SECONDS]
#
# On a machine with an NVIDIA GPU that nobody else uses: holds what the agent says of the GPU to what was really run there. FOLDER has `node-agent`, `node-agent-gpu` and
# `gpu_load` (tests/lab/gpu_load.c); each load is measured for so long (15 s). Prints one line per load. It needs root, and leaves nothing behind.
set -eu
folder=$(cd "$1" && pwd)
seconds=${2:-15}
scratch=$(mktemp -d)
load=
trap '[ -z "$load" ] || kill "$load" 2>/dev/null || :; rm -rf "$scratch"' EXIT

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
uname -r
printf '%-34s %10s %10s %8s %10s %9s %8s %s\n' load 'ran %' 'agent %' 'now %' 'memory MiB' processes 'power W' 'whose'

# measure NAME BUSY_MS EVERY_MS MEGABYTES; without a load if that is empty
measure() {
    name=$1
    load=
    if [ -n "$2" ]; then
        "$folder/gpu_load" "$2" "$3" $((seconds + 8)) "$4" >"$scratch/load" &
        load=$!
        until grep -q ready "$scratch/load"; do
            kill -0 "$load"
            sleep 0.1
        done
    else
        echo '{"busy_ns":0,"elapsed_ns":1}' >"$scratch/load"
    fi
    sleep 2
    "$folder/node-agent" once --interval "${seconds}s" >"$scratch/heartbeat" 2>"$scratch/log" || cat "$scratch/log"
    [ -z "$load" ] || wait "$load"
    load=
    python3 - "$name" "$scratch/load" "$scratch/heartbeat" <<'END'
import json, sys
name, load, heartbeat = sys.argv[1], open(sys.argv[2]).read(), open(sys.argv[3]).read()
truth = json.loads(load[load.index("{"):])
beat = json.loads(heartbeat[heartbeat.index("{"):])
interval = beat["interval"]
length = interval["end_boottime_ns"] - interval["start_boottime_ns"]
coverage = {one["name"]: one for one in beat["coverage"]["capabilities"]}["gpu"]
if coverage["status"] != "CAPABILITY_STATUS_OK":
    sys.exit(f"{name}: the GPU was not read: {coverage}")
for gpu in beat["gpus"]:
    print("%-34s %10.2f %10.2f %8s %10d %9s %8.1f %s" % (
        name, 100 * truth["busy_ns"] / truth["elapsed_ns"], 100 * gpu["busy_ns"] / length, gpu["utilization_percent"],
        gpu["memory_used_bytes"] >> 20, gpu["processes"], (gpu.get("power_mw") or 0) / 1000, " ".join(gpu["workloads"])))
END
}

measure 'nothing' '' '' ''
measure '4 GiB held, and nothing run' 0 1000 4096
measure 'all the time' 1000 1000 16
measure '500 ms of each 1,000' 500 1000 16
measure '100 ms of each 1,000' 100 1000 16
measure '100 ms of each 1,370' 100 1370 16
measure '10 ms of each 1,000' 10 1000 16
measure '1 ms of each 10' 1 10 16
measure '20 ms of each 5,000' 20 5000 16
