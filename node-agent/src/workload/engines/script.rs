//! Plain scripts: a file that an interpreter runs, and that starts several programs.

use super::{Program, Runs, argv};

/// Its name on the wire.
pub const NAME: &str = "script";
/// A script that started fewer programs is no pipeline, and is not listed.
pub const MIN_TASKS: u64 = 2;
/// Nor is one that was over sooner, in nanoseconds: machines run thousands of helpers that are scripts.
pub const MIN_LIFETIME_NS: u64 = 1_000_000_000;

/// The pipeline's name if the program is a script.
#[must_use]
pub fn pipeline(program: &Program) -> Option<String> {
    match &program.runs {
        Runs::Script(path) if !path.starts_with(b"/dev/") && !path.starts_with(b"/proc/") => {
            Some(argv::text(argv::base(path)))
        }
        Runs::Module(_) | Runs::Jar(_) | Runs::Class(_) => Some(program.name.clone()),
        _ => None,
    }
}

/// Whether a program only starts others: it names no task while another one is known.
#[must_use]
pub fn is_wrapper(comm: &str) -> bool {
    const WRAPPERS: [&str; 20] = [
        "sh",
        "dash",
        "bash",
        "ash",
        "ksh",
        "zsh",
        "env",
        "nice",
        "time",
        "timeout",
        "nohup",
        "setsid",
        "stdbuf",
        "ionice",
        "taskset",
        "sudo",
        "jspawnhelper",
        "tee",
        "busybox",
        "xargs",
    ];
    WRAPPERS.contains(&comm)
}
