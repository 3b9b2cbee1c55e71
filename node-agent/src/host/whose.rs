//! How the host's signals ask whose work a process or a socket is; who samples answers.

use crate::{procfs::process::Identity, workload::Class};

/// Says whose work is done.
pub trait Attribute {
    /// By a process, of which `/proc` shows this.
    fn of_process(&mut self, pid: u32, process: &Identity) -> Class;

    /// In the cgroup of this id in the unified tree, if all that runs there is of one class and whatever was opened
    /// there in this role stays there.
    fn of_cgroup(&mut self, id: u64, role: Role) -> Option<InCgroup>;

    /// The path of the cgroup of this id in the unified tree, whatever runs there.
    fn path_of_cgroup(&mut self, id: u64) -> Option<String>;
}

/// What a socket is to those who opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// They listen at it.
    Listens {
        /// The TCP port.
        port: u16,
    },
    /// They accepted it, and may have handed it on.
    Accepted,
    /// It leads from them to somebody else.
    Connects,
}

/// Who opened something in a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCgroup {
    /// Executable name of the busiest process there.
    pub command: String,
    /// Whose work is done there.
    pub class: Class,
    /// The cgroup's path.
    pub path: String,
}

/// Whoever says that.
pub type Whose<'a> = dyn Attribute + 'a;

/// What knows processes alone.
impl<F: FnMut(u32, &Identity) -> Class> Attribute for F {
    fn of_process(&mut self, pid: u32, process: &Identity) -> Class {
        self(pid, process)
    }

    fn of_cgroup(&mut self, _: u64, _: Role) -> Option<InCgroup> {
        None
    }

    fn path_of_cgroup(&mut self, _: u64) -> Option<String> {
        None
    }
}
