//! A cgroup for one process, in every tree that an agent looks at.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::PathBuf};

/// Cgroups of one name; they are removed with this value, once their processes have ended.
#[derive(Debug)]
pub struct Enclosure {
    cgroups: Vec<PathBuf>,
}

impl Enclosure {
    /// Makes cgroups whose names end with `name`, and moves the process into them.
    ///
    /// # Panics
    ///
    /// When this user may make no cgroups: tests that need them need root.
    #[must_use]
    pub fn around(pid: u32, name: &[u8]) -> Self {
        let name = [format!("lab-{}-", std::process::id()).as_bytes(), name].concat();
        let enclose = |tree: PathBuf| {
            let cgroup = tree.join(OsStr::from_bytes(&name));
            fs::create_dir(&cgroup).expect("a cgroup can be made (run the tests as root)");
            fs::write(cgroup.join("cgroup.procs"), pid.to_string()).expect("a process can be moved");
            cgroup
        };
        Self { cgroups: trees().into_iter().map(enclose).collect() }
    }
}

/// Where cgroups can be made that an agent looks at.
fn trees() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts can be read");
    let tree = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let (kind, options) = (right.split(' ').next()?, right.split(' ').nth(2)?);
        let wanted = |option| option == "cpuacct" || option == "pids";
        let wanted = kind == "cgroup2" || kind == "cgroup" && options.split(',').any(wanted);
        wanted.then(|| PathBuf::from(left.split(' ').nth(4).unwrap_or_default()))
    };
    mounts.lines().filter_map(tree).collect()
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        for cgroup in &self.cgroups {
            let _ = fs::remove_dir(cgroup);
        }
    }
}
