//! Whose a process is, and whose a socket that no process shows.

use super::{TaskCounters, add::OriginOf};
use crate::{
    host::{
        runtime::Containers,
        shipped::Shipped,
        whose::{Attribute, InCgroup, Role},
    },
    procfs::{
        cgroups::{Cgroups, id_of},
        process::Identity,
    },
    workload::{Class, Rows, Traits, classify},
};
use node_agent_ebpf::hierarchy;
use std::path::Path;
use workload_rules::{Housekeeping, guardrails::NEVER_UNITS};

/// What this sample knows already.
pub(super) struct Known<'a> {
    pub(super) rules: &'a Housekeeping,
    pub(super) shipped: &'a mut Shipped,
    pub(super) containers: &'a mut Containers,
    pub(super) task_counters: &'a TaskCounters,
    pub(super) cgroups: &'a Cgroups,
    pub(super) rows: &'a Rows,
}

impl Known<'_> {
    /// Where the unified tree is mounted, if it is the only one.
    fn unified_root(&self) -> Option<&Path> {
        let mounts = self.cgroups.mounts();
        mounts.v2().filter(|_| mounts.is_only_v2())
    }
}

impl Attribute for Known<'_> {
    fn of_process(&mut self, pid: u32, process: &Identity) -> Class {
        // What the kernel remembers can be read without rights; `/proc` shows it of one's own processes.
        let executable = match self.task_counters {
            TaskCounters::Ebpf(object) => object.executable_of(pid).unwrap_or(process.executable),
            TaskCounters::Proc(_) => process.executable,
        };
        let traits = Traits {
            uid: process.uid,
            is_kernel_thread: false,
            is_own: pid == std::process::id(),
            cgroup_path: process.cgroup_path.as_deref(),
            is_upkeep_container: process
                .cgroup_path
                .as_deref()
                .is_some_and(|path| self.containers.is_upkeep(self.rules, path)),
        };
        classify(self.rules, &traits, &mut OriginOf { shipped: &mut *self.shipped, executable })
    }

    fn of_cgroup(&mut self, id: u64, role: Role) -> Option<InCgroup> {
        let path = self.cgroups.only_path(hierarchy::V2, id);
        if let Role::Listens { port } = role
            && (path == Some(INIT) || self.unified_root().is_some_and(|root| is_a_socket_unit_of_ssh(root, id)))
            && self.rules.names.contains(SSHD)
            && self.shipped.has_ssh_at(port)
        {
            return Some(InCgroup { command: SSHD.to_owned(), class: Class::Housekeeping, path: INIT.to_owned() });
        }
        let path = path?;
        if !keeps_its_sockets(path, role) {
            return None;
        }
        let mut living = self.rows.iter().filter(|(_, key, row)| *key == path && row.activity.live_processes > 0);
        let (class, _, row) = living.next()?;
        let command = row.top_command.clone();
        living.next().is_none().then(|| InCgroup { command, class, path: path.to_owned() })
    }

    fn path_of_cgroup(&mut self, id: u64) -> Option<String> {
        self.cgroups.only_path(hierarchy::V2, id).map(str::to_owned)
    }
}

/// Where process 1 runs.
const INIT: &str = "/init.scope";
/// The file's name of ssh's server.
const SSHD: &str = "sshd";
/// Units of ssh's server.
const LISTENS_FOR_ITSELF: [&str; 2] = ["ssh", "sshd"];

/// Whether this cgroup is that of ssh's socket unit. Where systemd can filter by cgroup it has a helper open the port there
/// (`socket_address_listen_in_cgroup`); nothing lives in it afterwards, so that its path is no row's.
fn is_a_socket_unit_of_ssh(root: &Path, id: u64) -> bool {
    LISTENS_FOR_ITSELF.into_iter().any(|name| {
        let unit = root.join(format!("system.slice/{name}.socket"));
        id_of(&unit).is_ok_and(|found| found == id)
    })
}

/// Whether a socket that was opened in a cgroup stays with what runs there. Process 1 listens for services that it starts elsewhere, and
/// some services hand what they accept to processes that move: ssh's to a session, an engine's to a container. What listens for ssh is its own program all the same, where
/// an engine's listeners are those of its containers: an agent that starts before sshd does would else take each stranger who knocks for somebody's peer.
fn keeps_its_sockets(path: &str, role: Role) -> bool {
    let unit = path.rsplit('/').next().unwrap_or_default();
    let base = unit.rsplit_once('.').map_or(unit, |(name, _)| name).split('@').next().unwrap_or_default();
    let hands_on = match role {
        Role::Connects => false,
        Role::Listens { .. } => NEVER_UNITS.contains(&base) && !LISTENS_FOR_ITSELF.contains(&base),
        Role::Accepted => NEVER_UNITS.contains(&base),
    };
    !matches!(path, "/" | INIT) && !hands_on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_unit_of_ssh_is_told_by_its_cgroup_and_by_no_other_of_that_name() {
        let root = tempfile::tempdir().expect("a folder");
        let made = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(&path).expect("a folder");
            id_of(&path).expect("its inode")
        };
        let ids = ["system.slice/ssh.socket", "system.slice/cockpit.socket", "user.slice/ssh.socket"].map(made);
        assert_eq!(ids.map(|id| is_a_socket_unit_of_ssh(root.path(), id)), [true, false, false]);
        let fedoras = made("system.slice/sshd.socket");
        assert!(is_a_socket_unit_of_ssh(root.path(), fedoras) && !is_a_socket_unit_of_ssh(root.path(), 0));
    }

    #[test]
    fn what_hands_its_sockets_on_says_nothing_of_them() {
        use Role::{Accepted, Connects};
        const LISTENS: Role = Role::Listens { port: 22 };
        for (path, role, expected) in [
            ("/system.slice/prometheus-node-exporter.service", Accepted, true),
            ("/system.slice/prometheus-node-exporter.service", LISTENS, true),
            ("/system.slice/chrony.service", Connects, true),
            ("/system.slice/amazon-ssm-agent.service", Connects, true),
            ("/system.slice/ssh.service", Accepted, false),
            ("/system.slice/ssh.service", LISTENS, true),
            ("/system.slice/sshd.service", LISTENS, true),
            ("/system.slice/ssh@1.service", Accepted, false),
            ("/system.slice/docker.service", Accepted, false),
            ("/system.slice/docker.service", LISTENS, false),
            ("/system.slice/containerd.service", LISTENS, false),
            ("/init.scope", Accepted, false),
            ("/init.scope", LISTENS, false),
            ("/init.scope", Connects, false),
            ("/", Connects, false),
        ] {
            assert_eq!(keeps_its_sockets(path, role), expected, "{path} {role:?}");
        }
    }
}
