//! What each capability measures, and what a reader can do when it does not: plain data for `doctor`.

use heartbeat::wire::CapabilityStatus;

const AS_FOR_EBPF: &str = "as for ebpf";

/// What a capability measures, in words.
#[must_use]
pub fn meaning(capability: &str) -> &'static str {
    match capability {
        "accelerators" => "whether every device that computes beside the CPUs is read",
        "blocked_io" => "time blocked on block I/O, by workload",
        "process_events" => "processes started, programs executed, processes ended",
        "call_counts" => "read and write system calls, by workload",
        "inbound_peer_owners" => "which program holds a listening port",
        "inbound_peers" => "listening ports and their peers on other machines",
        "cgroup_controllers" => "memory and throttled CPU time of cgroups",
        "cgroup_cpu" => "whether CPU time that no task's own counters show is taken up from its cgroup's",
        "cgroups" => "which processes belong together",
        "containers" => "names, namespaces and owners of containers, and by them which are housekeeping",
        "cpu_split" => "CPU time in user and in kernel mode, by workload",
        "direct_reclaim" => "memory that tasks must reclaim by themselves, by workload",
        "exit_status" => "exit codes and signals, by workload",
        "faults" => "page faults, by workload",
        "host_cpu" => "CPU time of the whole host",
        "host_disk" => "bytes and operations of the host's disks",
        "disk_io" => "bytes to and from storage, by workload",
        "ebpf" => "the kernel's own counters of every process",
        "gpu" => "work of the GPUs",
        "host_oom" => "kills by the out-of-memory killer, whole host",
        "host_memory" => "memory of the whole host",
        "host_paging" => "major faults and direct reclaim, whole host",
        "host_swap" => "pages to and from swap",
        "memory_peak" => "peak of resident memory, by workload",
        "memory_peak_of_exited" => "the same, of processes that ended in the interval",
        "network" => "bytes over the network without loopback, by workload",
        "kill_switch" => "whether collection is stopped by a file",
        "self_budget" => "whether the agent does less to stay within its own budget",
        "pipelines" => "runs of pipelines, their tasks and tools",
        "privileges" => "what the agent may still do, once it measures",
        "run_queue_delay" => "time waiting for a CPU, by workload",
        "switches" => "context switches, by workload",
        "syscall_classes" => "system calls by class, by workload",
        "host_network" => "bytes over the host's interfaces",
        "host_memory_peak" => "most memory in use within an interval, whole host",
        "interfaces" => "whether the host's totals hold every network device's traffic",
        "peer_owners" => "which program holds a connection or a UDP port",
        "peers" => "who exchanges data with this machine, in both directions, by program and port",
        "rdma" => "bytes over RDMA adapters (InfiniBand, RoCE, EFA), past the sockets",
        "interactive_sessions" => "sessions with a terminal, and when one last took input",
        "pressure" => "time in which tasks waited for CPU, memory or I/O",
        "provenance" => "which executables are the distribution's own: nothing else is housekeeping",
        "crontabs" => "whether cron's jobs are all the distribution's own",
        "oom_kills" => "kills by the out-of-memory killer, by workload",
        "rules" => "the rules by which processes are judged",
        "schedules" => "how many timers and crontabs exist",
        "short_lived_processes" => "CPU time of processes that live and end within an interval",
        "taskstats" => "the kernel's records of processes that ended, in place of eBPF",
        "timers" => "when systemd's timers elapse next",
        "tracepoints" => "forks by eBPF without type information, in place of the whole of it",
        "task_states" => "states of tasks and when they ran last, by workload",
        "timed_waits" => "who sleeps until a timer wakes it, by workload",
        "spool" => "unsent heartbeats on disk",
        "tasks" => "CPU time of processes, by workload",
        _ => "",
    }
}

/// What the reader can do about a capability; empty when nothing needs doing.
#[must_use]
pub fn remedy(capability: &str, status: CapabilityStatus, reason: &str) -> &'static str {
    let by_choice = reason.contains("by configuration");
    match (status, capability) {
        (CapabilityStatus::Ok | CapabilityStatus::NotApplicable, _) => "",
        (_, "rules") => "correct the file; `node-agent rules check FILE` tells the same before it is used",
        (CapabilityStatus::Unsupported, "gpu") => "none in this version; verdicts about this host stay unknown",
        (CapabilityStatus::Unsupported, "accelerators" | "rdma") => {
            "none in this version; verdicts about this host stay unknown"
        }
        (CapabilityStatus::Unsupported, "interfaces") => {
            "none in this version, but for workloads' own network bytes, which are counted in every network namespace"
        }
        (CapabilityStatus::Denied, "interfaces") => {
            "give the agent the host's network (hostNetwork: true, --network=host)"
        }
        (_, "accelerators") => "as for gpu",
        (_, "gpu") => "see that nvidia-smi works, and that node-agent-gpu lies beside the agent",
        (CapabilityStatus::Denied, "interactive_sessions" | "inbound_peer_owners" | "peer_owners") => {
            "set keep_ptrace = true, and run the agent as root or with CAP_SYS_PTRACE"
        }
        (CapabilityStatus::Unsupported, "pressure") => {
            "psi=1 on the kernel's command line, where it was built with CONFIG_PSI"
        }
        (
            _,
            "process_events"
            | "short_lived_processes"
            | "oom_kills"
            | "exit_status"
            | "direct_reclaim"
            | "pipelines"
            | "task_states"
            | "timed_waits",
        ) => AS_FOR_EBPF,
        (CapabilityStatus::Unsupported, "provenance") => {
            "none in this version without dpkg's or rpm's database: name this machine's own daemons in `paths` of the rules"
        }
        (_, "provenance") if reason.contains("transaction") => {
            "wait for rpm to end; if none runs, any installation, or `rpmdb --rebuilddb`, writes back what was left"
        }
        (CapabilityStatus::Denied, "provenance") => {
            "make the package database readable to the agent, and writable by nobody but root"
        }
        (_, "provenance") => "see that `rpm --verifydb` finds no fault; `rpmdb --rebuilddb` makes the database anew",
        (CapabilityStatus::Denied, "containers") => {
            "let the agent open the runtime's socket (CAP_DAC_OVERRIDE, or root), and give it a token that may get nodes/pods"
        }
        (_, "containers") => "see that what the reason names answers, or switch it off: containers = false",
        (_, "spool") => "make room on the disk that holds state_dir, or make it writable",
        (_, "ebpf") if by_choice => "set source = \"auto\"",
        (CapabilityStatus::Unsupported, "tracepoints" | "taskstats") if by_choice => "set source = \"auto\"",
        (CapabilityStatus::Denied, "tracepoints") => "run the agent as root, or with CAP_BPF and CAP_PERFMON",
        (CapabilityStatus::Denied, "taskstats") => "run the agent as root, or with CAP_NET_ADMIN",
        (CapabilityStatus::Denied, "ebpf") => "run the agent as root, or with CAP_BPF and CAP_PERFMON",
        (CapabilityStatus::Denied, "disk_io") => "run the agent as root, or with CAP_SYS_PTRACE",
        (CapabilityStatus::Denied, _) => "run the agent as root",
        (CapabilityStatus::Unsupported, "ebpf") => {
            "a kernel with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF; all current distributions' kernels have both"
        }
        (CapabilityStatus::Unsupported, "memory_peak_of_exited") => "Linux 6.16 or later, with eBPF",
        (CapabilityStatus::Unsupported, _) => "a kernel that has what the reason names",
        (CapabilityStatus::Broken | CapabilityStatus::Unspecified, _) => {
            "report it, with the output of `node-agent doctor --output json`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_has_a_remedy_and_what_is_has_none() {
        for capability in
            ["ebpf", "process_events", "containers", "disk_io", "gpu", "tasks", "one that is not known here"]
        {
            for status in [CapabilityStatus::Denied, CapabilityStatus::Unsupported, CapabilityStatus::Broken] {
                assert_ne!(remedy(capability, status, "some reason"), "", "{capability} {status:?}");
            }
            assert_eq!(remedy(capability, CapabilityStatus::Ok, ""), "");
        }
    }
}
