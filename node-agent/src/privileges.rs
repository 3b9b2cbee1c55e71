//! What the agent may do, and how it drops that once everything is attached, before it touches the network.
//!
//! Loading and attaching need `CAP_BPF` and `CAP_PERFMON`, the kernel's records of processes that ended `CAP_NET_ADMIN`, and to see whether
//! users have crontabs takes `CAP_DAC_READ_SEARCH`. Reading what was
//! attached needs nothing: with a map's or an iterator's descriptor in hand, every system call of a sample works without any
//! capability (tried on Linux 6.1 with `kernel.unprivileged_bpf_disabled` at 0, 1 and 2, and on 6.18 with it at 2; since
//! <https://git.kernel.org/linus/c8644cd0efe7> only loading and creating are refused). An older kernel may refuse; so a rehearsal
//! without effective rights comes first, and where it fails `CAP_BPF` is kept, and said so.
//!
//! Capabilities belong to threads. This is done while there is but one; [`Rights`] is read from all of them.

use crate::coverage::{Capabilities, Status};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    no_new_privs, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::{fs, io};

/// What the agent asks for at one time or another; others have numbers.
const NAMES: [(CapabilitySet, &str); 6] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
];
/// `_LINUX_CAPABILITY_U32S_3` times 32.
const MOST: u32 = 64;

/// What is left to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Permitted, effective, inheritable or ambient in any thread.
    held: CapabilitySet,
    /// What was to be kept, and why.
    kept: (CapabilitySet, String),
    /// Nothing can be regained through a program that is executed.
    bounded: bool,
    /// Executing a program can add none.
    no_new_privileges: bool,
    /// What went wrong.
    failure: Option<String>,
}

/// Drops everything but `keep` (`why` says what for) and, where `is_usable` fails without it, `CAP_BPF`.
///
/// Nothing is added: what of `keep` the agent does not have, it does not get.
pub fn drop_rights(keep: CapabilitySet, why: &str, mut is_usable: impl FnMut() -> bool) -> Rights {
    let mut kept = (CapabilitySet::empty(), String::new());
    let lowered = lower(keep, &mut is_usable).map(|(left, needs_bpf)| {
        kept = (left, why.to_owned());
        if needs_bpf {
            kept.1 = format!("{why} (this kernel refuses to read eBPF maps without CAP_BPF)").trim_start().to_owned();
        }
    });
    let mut rights = of_all_threads().unwrap_or_else(|error| Rights {
        held: CapabilitySet::empty(),
        kept: (CapabilitySet::empty(), String::new()),
        bounded: false,
        no_new_privileges: false,
        failure: Some(format!("/proc/self/task cannot be read: {error}")),
    });
    rights.kept = kept;
    if let Err(error) = lowered {
        rights.failure = Some(format!("the kernel refuses to take rights away: {error}"));
    }
    rights
}

/// For a thread that needs no right at all.
pub fn drop_in_this_thread() {
    keep_in_this_thread(CapabilitySet::empty());
}

/// For a thread, or a process that has but one, that needs these alone, if it has them.
pub fn keep_in_this_thread(keep: CapabilitySet) {
    // The thread that drops everything for all looks at the outcome of every thread.
    let _ = lower(keep, &mut || true);
}

fn lower(keep: CapabilitySet, is_usable: &mut impl FnMut() -> bool) -> io::Result<(CapabilitySet, bool)> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    for number in 0..MOST {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            // Takes CAP_SETPCAP.
            Ok(true) if remove_capability_from_bounding_set(one).is_err() => break,
            Ok(_) => {}
            // The kernel knows no such number, and none beyond it.
            Err(_) => break,
        }
    }
    let had = capabilities(None)?.permitted;
    let mut left = had & keep;
    let set = |effective, permitted| {
        set_capabilities(None, CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() })
    };
    set(left, had & (keep | CapabilitySet::BPF))?;
    let needs_bpf = !is_usable() && had.contains(CapabilitySet::BPF);
    if needs_bpf {
        left |= CapabilitySet::BPF;
    }
    set(left, left)?;
    Ok((left, needs_bpf))
}

fn of_all_threads() -> io::Result<Rights> {
    let mut rights = Rights {
        held: CapabilitySet::empty(),
        kept: (CapabilitySet::empty(), String::new()),
        bounded: true,
        no_new_privileges: no_new_privs()?,
        failure: None,
    };
    for thread in fs::read_dir("/proc/self/task")? {
        match fs::read_to_string(thread?.path().join("status")) {
            Ok(status) => rights.add_thread(&status),
            // It has ended in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rights)
}

impl Rights {
    fn add_thread(&mut self, status: &str) {
        let set = |name: &str| {
            let hex = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            // What cannot be read is held, until proven otherwise.
            CapabilitySet::from_bits_retain(
                hex.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(u64::MAX),
            )
        };
        self.held |= set("CapPrm") | set("CapEff") | set("CapInh") | set("CapAmb");
        self.bounded &= set("CapBnd").is_empty();
        self.no_new_privileges &= status.lines().any(|line| line.split_ascii_whitespace().eq(["NoNewPrivs:", "1"]));
    }

    /// States the capability `privileges`.
    pub fn state(&self, capabilities: &mut Capabilities) {
        let (status, reason) = self.verdict();
        capabilities.set("privileges", status, reason);
    }

    fn verdict(&self) -> (Status, String) {
        if let Some(failure) = &self.failure {
            return (Status::Broken, failure.clone());
        }
        let too_many = self.held.difference(self.kept.0);
        if !too_many.is_empty() {
            return (Status::Broken, format!("a thread still holds {}", names(too_many)));
        }
        if !self.no_new_privileges {
            return (Status::Broken, "no_new_privs is not set in every thread".to_owned());
        }
        let kept = if self.held.is_empty() {
            "none are left".to_owned()
        } else {
            format!("only {} is left, {}", names(self.held), self.kept.1)
        };
        let bounding = if self.bounded { "" } else { "; the bounding set stays, which taking away needs CAP_SETPCAP" };
        (Status::Ok, format!("{kept}{bounding}"))
    }
}

fn names(set: CapabilitySet) -> String {
    let one = |number: u32| {
        let one = CapabilitySet::from_bits_retain(1 << number);
        set.contains(one).then(|| {
            let name = NAMES.into_iter().find(|(of, _)| *of == one).map(|(_, name)| name.to_owned());
            name.unwrap_or_else(|| format!("capability {number}"))
        })
    };
    (0..MOST).filter_map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                        CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n";

    fn of(statuses: &[&str], kept: CapabilitySet) -> (Status, String) {
        let mut rights = Rights {
            held: CapabilitySet::empty(),
            kept: (kept, "for a reason".to_owned()),
            bounded: true,
            no_new_privileges: true,
            failure: None,
        };
        for status in statuses {
            rights.add_thread(status);
        }
        rights.verdict()
    }

    #[test]
    fn one_thread_that_holds_a_right_is_one_too_many() {
        let bpf = NONE.replace("CapPrm:\t0000000000000000", "CapPrm:\t0000008000000000");
        assert_eq!(of(&[NONE, NONE], CapabilitySet::empty()), (Status::Ok, "none are left".to_owned()));
        let held = (Status::Broken, "a thread still holds CAP_BPF".to_owned());
        assert_eq!(of(&[NONE, &bpf], CapabilitySet::empty()), held);
        let kept = (Status::Ok, "only CAP_BPF is left, for a reason".to_owned());
        assert_eq!(of(&[NONE, &bpf], CapabilitySet::BPF), kept);
    }

    #[test]
    fn what_cannot_be_read_counts_as_held() {
        assert_eq!(of(&["Name:\tx\n"], CapabilitySet::empty()).0, Status::Broken);
        let may_gain = NONE.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0");
        assert_eq!(of(&[&may_gain], CapabilitySet::empty()).0, Status::Broken);
    }

    #[test]
    fn a_bounding_set_that_stays_is_mentioned() {
        let wide = NONE.replace("CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff");
        let (status, reason) = of(&[&wide], CapabilitySet::empty());
        assert!(status == Status::Ok && reason.contains("CAP_SETPCAP"), "{reason}");
    }

    #[test]
    fn a_right_without_a_name_has_a_number() {
        assert_eq!(names(CapabilitySet::SYS_PTRACE | CapabilitySet::CHOWN), "capability 0, CAP_SYS_PTRACE");
    }

    #[test]
    fn a_thread_can_drop_everything_for_good() {
        let after = std::thread::spawn(|| {
            drop_in_this_thread();
            (capabilities(None), no_new_privs())
        });
        let (held, no_new) = after.join().unwrap_or((Err(rustix::io::Errno::PERM), Ok(false)));
        assert!(held.is_ok_and(|held| (held.permitted | held.effective | held.inheritable).is_empty()));
        assert_eq!(no_new, Ok(true));
    }
}
