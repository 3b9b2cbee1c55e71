#!/bin/sh
# in_group.sh GROUP COMMAND...: becomes the command, inside a cgroup of its own, whose counters then tell what the command used.
set -eu
group=$1
shift
[ -d "$group" ] || mkdir "$group"
echo $$ >"$group/cgroup.procs"
exec "$@"
