//! Where a process stands in the host's cgroup trees, in one path. ◇
//!
//! A host may have the unified tree and version 1 trees at once. systemd then puts its units into both, and an engine that knows only version 1
//! puts its containers there: in the unified tree their processes seem to run in the engine's own unit.

use workload_rules::Housekeeping;

const ROOT: &str = "/";

/// The path that tells more: the one of version 1 if it means people, containers or batch systems and the unified one does not, or if the
/// unified one is the root.
#[must_use]
pub fn telling<'a>(rules: &Housekeeping, unified: &'a str, v1: &'a str) -> &'a str {
    let is_excluded = |path: &str| path.split('/').any(|segment| rules.is_excluded(segment));
    if unified == ROOT || (is_excluded(v1) && !is_excluded(unified)) { v1 } else { unified }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_not_lost_behind_its_engines_unit() {
        let rules = &workload_rules::built_in().housekeeping;
        const ENGINE: &str = "/system.slice/containerd.service";
        for (unified, v1, expected) in [
            (ENGINE, "/docker/0123456789ab", "/docker/0123456789ab"),
            (ENGINE, "/kubepods/burstable/pod1/2", "/kubepods/burstable/pod1/2"),
            (ENGINE, "/system.slice", ENGINE),
            (ENGINE, "/", ENGINE),
            ("/", "/x", "/x"),
            ("/", "/", "/"),
            (
                "/user.slice/user-0.slice/session-1.scope",
                "/slurm/uid_1/job_2",
                "/user.slice/user-0.slice/session-1.scope",
            ),
        ] {
            assert_eq!(telling(rules, unified, v1), expected, "{unified} {v1}");
        }
    }
}
