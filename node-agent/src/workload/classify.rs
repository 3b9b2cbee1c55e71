//! To which class a process belongs.
//!
//! A process is housekeeping if and only if it is no kernel thread and not this agent, a system user runs it, its
//! cgroup is known and belongs to no person, container or batch system, and one of these holds: its executable name is on the
//! list, its unit is one that distributions ship for their own upkeep, or it is a scheduler's own wrapper. Children do not
//! inherit: what housekeeping starts is judged by itself. All else is workload.

use heartbeat::wire;
use workload_rules::Housekeeping;

/// Whose work a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Work that somebody wants.
    Workload,
    /// Would run on a machine that nobody uses.
    Housekeeping,
    /// A kernel thread.
    Kernel,
    /// This agent.
    Own,
}

impl Class {
    /// As the contract has it.
    #[must_use]
    pub const fn to_wire(self) -> wire::Class {
        match self {
            Self::Workload => wire::Class::Workload,
            Self::Housekeeping => wire::Class::Housekeeping,
            Self::Kernel => wire::Class::Kernel,
            Self::Own => wire::Class::Self_,
        }
    }
}

/// What a process is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits<'a> {
    /// Executable name, as the kernel cuts it.
    pub name: &'a str,
    /// Executable name of the parent.
    pub parent: &'a str,
    /// The user.
    pub uid: u32,
    /// The kernel says that it is its own thread.
    pub is_kernel_thread: bool,
    /// A process of this agent.
    pub is_own: bool,
    /// `None` if it is not known: the cgroup is gone, or the kernel does not tell.
    pub cgroup_path: Option<&'a str>,
}

/// The class of a process by these rules.
#[must_use]
pub fn classify(rules: &Housekeeping, process: &Traits<'_>) -> Class {
    if process.is_kernel_thread {
        return Class::Kernel;
    }
    if process.is_own || is_own_helper(process) {
        return Class::Own;
    }
    let Some(path) = process.cgroup_path else { return Class::Workload };
    if process.uid >= rules.first_personal_uid || path.split('/').any(|segment| rules.is_foreign(segment)) {
        return Class::Workload;
    }
    let is_listed = rules.names.contains(process.name)
        || rules.name_prefixes.iter().any(|prefix| process.name.starts_with(prefix.as_str()));
    let is_wrapper = rules.schedulers.contains(process.parent) && rules.scheduler_wrappers.contains(process.name);
    if is_listed || is_wrapper || is_upkeep_unit(rules, path) { Class::Housekeeping } else { Class::Workload }
}

/// What the agent starts where there is a GPU.
fn is_own_helper(process: &Traits<'_>) -> bool {
    process.name == "node-agent-gpu" && process.parent == "node-agent"
}

fn is_upkeep_unit(rules: &Housekeeping, path: &str) -> bool {
    rules.unit_parents.iter().filter_map(|parent| path.strip_prefix(parent.as_str())).any(|unit| {
        // An instance of a template is written `name@instance.service`.
        let template =
            unit.split_once('@').and_then(|(name, rest)| Some(format!("{name}@.{}", rest.rsplit_once('.')?.1)));
        rules.units.contains(unit) || template.is_some_and(|template| rules.units.contains(&template))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Option<&str> = Some("/");

    fn of(name: &str, parent: &str, uid: u32, cgroup_path: Option<&str>) -> Class {
        let rules = workload_rules::built_in();
        classify(
            &rules.housekeeping,
            &Traits { name, parent, uid, is_kernel_thread: false, is_own: false, cgroup_path },
        )
    }

    #[test]
    fn what_runs_on_a_machine_that_nobody_uses_is_housekeeping() {
        for (name, parent, uid, path) in [
            ("systemd", "swapper/0", 0, "/init.scope"),
            ("systemd-journal", "systemd", 0, "/system.slice/systemd-journald.service"),
            ("systemd-resolve", "systemd", 101, "/system.slice/systemd-resolved.service"),
            ("systemd-timesyn", "systemd", 997, "/system.slice/systemd-timesyncd.service"),
            ("dbus-daemon", "systemd", 100, "/system.slice/dbus.service"),
            ("sshd", "systemd", 0, "/system.slice/ssh.service"),
            ("agetty", "systemd", 0, "/system.slice/system-getty.slice/getty@tty1.service"),
            ("chronyd", "systemd", 106, "/system.slice/chrony.service"),
            ("rsyslogd", "systemd", 0, "/system.slice/rsyslog.service"),
            ("amazon-ssm-agen", "systemd", 0, "/system.slice/amazon-ssm-agent.service"),
            ("ssm-agent-worke", "amazon-ssm-agen", 0, "/system.slice/amazon-ssm-agent.service"),
            ("google_guest_ag", "systemd", 0, "/system.slice/google-guest-agent.service"),
            ("cron", "systemd", 0, "/system.slice/cron.service"),
            ("sh", "cron", 0, "/system.slice/cron.service"),
            ("run-parts", "sh", 0, "/system.slice/cron.service"),
            ("apt-get", "apt.systemd.dai", 0, "/system.slice/apt-daily.service"),
            ("sh", "systemd", 0, "/system.slice/logrotate.service"),
            ("sh", "x", 0, "/system.slice/policy-routes@ens5.service"),
            ("init", "swapper/0", 0, "/"),
            ("syslogd", "init", 0, "/"),
            ("crond", "init", 0, "/"),
            ("udhcpc", "init", 0, "/"),
        ] {
            assert_eq!(of(name, parent, uid, Some(path)), Class::Housekeeping, "{name} in {path}");
        }
    }

    #[test]
    fn what_is_not_surely_housekeeping_is_workload() {
        for (name, parent, uid, path) in [
            ("python3", "systemd", 0, Some("/system.slice/train.service")),
            ("bash", "sshd", 1000, Some("/user.slice/user-1000.slice/session-3.scope")),
            // a person's processes never count as housekeeping, whatever they call themselves
            ("chronyd", "bash", 1000, ROOT),
            ("chronyd", "bash", 0, Some("/user.slice/user-0.slice/session-1.scope")),
            ("systemd", "systemd", 1000, Some("/user.slice/user-1000.slice/user@1000.service/init.scope")),
            ("sshd", "sshd", 0, Some("/user.slice/user-1000.slice/session-3.scope")),
            // containers bring their own cron and syslog
            ("cron", "init", 0, Some("/docker/0123456789ab")),
            ("crond", "init", 0, Some("/system.slice/docker-0123456789ab.scope")),
            ("rsyslogd", "tini", 0, Some("/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123.scope")),
            ("init", "x", 0, Some("/lxc.payload.web")),
            ("logrotate", "x", 0, Some("/system.slice/slurmstepd.scope/job_17/step_0/user/task_0")),
            ("sleep", "x", 0, Some("/ecs/0123/4567")),
            // what housekeeping starts is judged by itself
            ("backup.sh", "sh", 0, Some("/system.slice/cron.service")),
            ("python3", "cron", 0, Some("/system.slice/cron.service")),
            ("sh", "sh", 0, Some("/system.slice/cron.service")),
            ("sh", "cron", 1000, Some("/system.slice/cron.service")),
            ("sh", "init", 0, ROOT),
            ("busybox", "init", 0, ROOT),
            ("sleep", "init", 0, ROOT),
            // what user data, start-up scripts and remote commands leave behind
            ("python3", "sh", 0, Some("/system.slice/cloud-final.service")),
            ("sh", "cloud-init", 0, Some("/system.slice/cloud-config.service")),
            ("python3", "sh", 0, Some("/system.slice/amazon-ssm-agent.service")),
            ("sh", "ssm-document-wo", 0, Some("/system.slice/amazon-ssm-agent.service")),
            ("python3", "sh", 0, Some("/system.slice/snap.amazon-ssm-agent.amazon-ssm-agent.service")),
            ("python3", "bash", 0, Some("/system.slice/google-startup-scripts.service")),
            ("python3", "bash", 0, Some("/system.slice/google-shutdown-scripts.service")),
            ("sh", "google_osconfig", 0, Some("/system.slice/google-osconfig-agent.service")),
            ("python3", "init", 0, Some("/system.slice/google-guest-agent.service")),
            // no unit of the distribution, but one below somebody else's slice
            ("sh", "systemd", 0, Some("/workload.slice/logrotate.service")),
            ("sh", "systemd", 0, Some("/system.slice/logrotate.service/inner")),
            // a cgroup that nobody can name
            ("chronyd", "systemd", 0, None),
            ("", "", 0, ROOT),
        ] {
            assert_eq!(of(name, parent, uid, path), Class::Workload, "{name} in {path:?}");
        }
    }

    #[test]
    fn the_kernel_and_the_agent_know_themselves() {
        let process = Traits {
            name: "kworker/0:1",
            parent: "kthreadd",
            uid: 0,
            is_kernel_thread: true,
            is_own: false,
            cgroup_path: None,
        };
        let rules = &workload_rules::built_in().housekeeping;
        assert_eq!(classify(rules, &process), Class::Kernel);
        assert_eq!(classify(rules, &Traits { is_kernel_thread: false, is_own: true, ..process }), Class::Own);
        assert_eq!(of("node-agent-gpu", "node-agent", 0, Some("/kubepods/pod1")), Class::Own);
        assert_eq!(of("node-agent-gpu", "bash", 0, ROOT), Class::Workload);
        // A name alone makes no kernel thread.
        assert_eq!(of("kworker/0:1", "kthreadd", 0, ROOT), Class::Workload);
    }

    #[test]
    fn the_kernel_keeps_as_much_of_a_name_as_rules_may_hold() {
        assert_eq!(workload_rules::floor::MAX_PROGRAM_BYTES + 1, node_agent_ebpf::COMM_BYTES);
    }

    #[test]
    fn rules_without_a_word_make_nothing_housekeeping() {
        let process = Traits {
            name: "systemd",
            parent: "",
            uid: 0,
            is_kernel_thread: false,
            is_own: false,
            cgroup_path: Some("/init.scope"),
        };
        assert_eq!(classify(&Housekeeping::default(), &process), Class::Workload);
    }
}
