//! Both sides of each clause of the definition.

use super::*;

/// A process of root's in a unit of the system, and what the distribution says of it.
#[derive(Clone)]
struct Case {
    file: Option<&'static str>,
    is_own_file: bool,
    own_units: &'static [&'static str],
    ships_crontabs: bool,
    uid: u32,
    path: Option<&'static str>,
}

impl Origin for Case {
    fn file_name(&mut self) -> Option<String> {
        self.file.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned())
    }

    fn is_own_file(&mut self) -> bool {
        self.is_own_file
    }

    fn is_own_unit(&mut self, unit: &str) -> bool {
        self.own_units.contains(&unit)
    }

    fn ships_crontabs(&mut self) -> bool {
        self.ships_crontabs
    }
}

const DAEMON: Case = Case {
    file: Some("/usr/sbin/chronyd"),
    is_own_file: true,
    own_units: &["cron.service", "apt-daily.service", "policy-routes@ens5.service"],
    ships_crontabs: true,
    uid: 0,
    path: Some("/system.slice/chrony.service"),
};
const IN_CRON: Case = Case { file: Some("/usr/bin/dash"), path: Some("/system.slice/cron.service"), ..DAEMON };
/// Where systemd puts an instance of a template.
const IN_ITS_SLICE: &str = r"/system.slice/system-policy\x2droutes.slice/policy-routes@ens5.service";
const IN_APT: Case =
    Case { file: Some("/usr/bin/python3.11"), path: Some("/system.slice/apt-daily.service"), ..DAEMON };

fn class_of(case: &Case) -> Class {
    let process = Traits {
        uid: case.uid,
        is_kernel_thread: false,
        is_own: false,
        cgroup_path: case.path,
        is_upkeep_container: false,
    };
    classify(&workload_rules::built_in().housekeeping, &process, &mut case.clone())
}

#[test]
fn what_the_distribution_ships_and_a_list_names_is_housekeeping() {
    for case in [
        DAEMON,
        Case { uid: 106, ..DAEMON },
        Case { file: Some("/usr/lib/systemd/systemd-journald"), ..DAEMON },
        Case { file: Some("/usr/bin/udevadm"), ..DAEMON },
        Case { file: Some("/usr/lib/systemd/systemd"), path: Some("/init.scope"), ..DAEMON },
        Case { file: Some("/usr/bin/kmod"), path: Some("/"), ..DAEMON },
        IN_APT,
        Case { file: Some("/usr/bin/dash"), path: Some("/system.slice/policy-routes@ens5.service"), ..DAEMON },
        Case { file: Some("/usr/bin/dash"), path: Some(IN_ITS_SLICE), ..DAEMON },
        IN_CRON,
        Case { file: Some("/usr/bin/find"), ..IN_CRON },
        // What a container runtime runs in its own unit to hold and start containers.
        Case {
            file: Some("/usr/bin/containerd-shim-runc-v2"),
            path: Some("/system.slice/containerd.service"),
            ..DAEMON
        },
        Case { file: Some("/usr/sbin/runc"), path: Some("/runtime.slice/containerd.service"), ..DAEMON },
        Case { file: Some("/usr/sbin/xtables-nft-multi"), path: Some("/system.slice/kubelet.service"), ..DAEMON },
        // A daemon that is listed needs no unit of the distribution's.
        Case { path: Some("/system.slice/my-own-chrony.service"), ..DAEMON },
    ] {
        assert_eq!(class_of(&case), Class::Housekeeping, "{:?} in {:?}", case.file, case.path);
    }
}

#[test]
fn whatever_one_clause_does_not_hold_for_is_workload() {
    for case in [
        // a file that nobody knows, whatever it is called
        Case { file: None, ..DAEMON },
        Case { file: None, ..IN_APT },
        Case { is_own_file: false, ..DAEMON },
        Case { is_own_file: false, ..IN_APT },
        // the distribution's, and not listed
        Case { file: Some("/usr/sbin/nginx"), ..DAEMON },
        Case { file: Some("/usr/bin/dash"), ..DAEMON },
        Case { file: Some("/usr/lib/postgresql/15/bin/postgres"), ..DAEMON },
        // people, and users that nobody knows
        Case { uid: 1000, ..DAEMON },
        Case { uid: u32::MAX, ..DAEMON },
        // places
        Case { path: None, ..DAEMON },
        Case { path: Some("/user.slice/user-0.slice/session-1.scope"), ..DAEMON },
        Case { path: Some("/docker/0123456789ab"), ..DAEMON },
        Case { path: Some("/system.slice/slurmstepd.scope/job_17/step_0"), ..DAEMON },
        Case { path: Some("/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123.scope"), ..DAEMON },
        // parts of a runtime outside its unit, other programs in it, and a runtime that no package brought
        Case { file: Some("/usr/sbin/runc"), ..DAEMON },
        Case { file: Some("/usr/sbin/runc"), path: Some("/user.slice/user-0.slice/containerd.service"), ..DAEMON },
        Case { file: Some("/usr/sbin/docker-proxy"), path: Some("/system.slice/docker.service"), ..DAEMON },
        Case { file: Some("/usr/bin/dash"), path: Some("/system.slice/containerd.service"), ..DAEMON },
        Case {
            is_own_file: false,
            file: Some("/usr/sbin/runc"),
            path: Some("/system.slice/containerd.service"),
            ..DAEMON
        },
        // units that somebody wrote, changed, or made up at run time; units below units
        Case { own_units: &[], ..IN_APT },
        Case { path: Some("/system.slice/apt-daily.service/inner"), ..IN_APT },
        Case { path: Some("/system.slice/system-mine.slice/policy-routes@ens5.service"), ..IN_APT },
        Case { path: Some(r"/system.slice/system-policy\x2droutes.slice/apt-daily.service"), ..IN_APT },
        Case { path: Some(r"/system.slice/system-policy\x2droutes.slice/policy-routes@ens5.service/inner"), ..IN_APT },
        Case { path: Some("/workload.slice/apt-daily.service"), ..IN_APT },
        Case { path: Some("/system.slice/train.service"), own_units: &["train.service"], ..IN_APT },
        // cron, as soon as anybody has a table of his own
        Case { ships_crontabs: false, ..IN_CRON },
        Case { own_units: &[], ..IN_CRON },
        Case { is_own_file: false, ..IN_CRON },
        Case { path: Some("/system.slice/atd.service"), own_units: &["atd.service"], ..IN_CRON },
        // what user data, start-up scripts and remote commands leave behind
        Case { path: Some("/system.slice/cloud-final.service"), own_units: &["cloud-final.service"], ..IN_APT },
        Case {
            path: Some("/system.slice/amazon-ssm-agent.service"),
            own_units: &["amazon-ssm-agent.service"],
            ..IN_APT
        },
        Case { path: Some("/system.slice/rc-local.service"), own_units: &["rc-local.service"], ..IN_APT },
    ] {
        assert_eq!(class_of(&case), Class::Workload, "{:?} in {:?}", case.file, case.path);
    }
}

#[test]
fn the_kernel_and_the_agent_are_known_by_the_kernels_own_word() {
    let process =
        Traits { uid: 0, is_kernel_thread: true, is_own: false, cgroup_path: None, is_upkeep_container: false };
    let rules = &workload_rules::built_in().housekeeping;
    let nobody = || Case { file: None, ..DAEMON };
    assert_eq!(classify(rules, &process, &mut nobody()), Class::Kernel);
    assert_eq!(
        classify(rules, &Traits { is_kernel_thread: false, is_own: true, ..process }, &mut nobody()),
        Class::Own
    );
}

#[test]
fn a_container_is_housekeeping_by_kubelets_word_alone() {
    let rules = &workload_rules::built_in().housekeeping;
    let path = Some("/kubepods.slice/kubepods-pod1.slice/cri-containerd-0123456789ab.scope");
    for (is_upkeep_container, is_own, expected) in
        [(true, false, Class::Housekeeping), (false, false, Class::Workload), (true, true, Class::Own)]
    {
        // Files and users of an image are not the machine's.
        let process = Traits { uid: 65_534, is_kernel_thread: false, is_own, cgroup_path: path, is_upkeep_container };
        assert_eq!(classify(rules, &process, &mut Case { file: None, ..DAEMON }), expected);
    }
}

#[test]
fn rules_without_a_word_make_nothing_housekeeping() {
    let process =
        Traits { uid: 0, is_kernel_thread: false, is_own: false, cgroup_path: DAEMON.path, is_upkeep_container: false };
    assert_eq!(classify(&Housekeeping::default(), &process, &mut DAEMON.clone()), Class::Workload);
}
