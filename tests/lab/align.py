"""Stands in for an aligner: joins the cgroup that its last argument names and works there for half a second of CPU time.

As a Snakemake script it has no arguments of its own; then the path comes from the rule's parameters.
"""

import os
import sys
import time

group = snakemake.params.group if "snakemake" in globals() else sys.argv[-1]
os.makedirs(group, exist_ok=True)
with open(os.path.join(group, "cgroup.procs"), "w") as procs:
    procs.write(str(os.getpid()))
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
if "snakemake" in globals():
    open(snakemake.output[0], "w").close()
