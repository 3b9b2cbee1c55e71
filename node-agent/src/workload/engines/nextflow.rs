//! Nextflow: a Java program that runs each task as `/bin/bash -ue .command.run` in a folder of its own, and in it
//! `/bin/bash -ue /work/ab/cdef…/.command.sh`: <https://github.com/nextflow-io/nextflow>, `BashWrapperBuilder` and
//! `LocalTaskHandler`.
//!
//! No command line bears a process's name. The folder does for a task: Nextflow itself shows its beginning as `[ab/cdef01]`.

use super::{Program, Runs, argv};

/// Its name on the wire.
pub const NAME: &str = "nextflow";
/// Nextflow shows that many characters of the folder's second part.
const SHOWN: usize = 6;

/// `ab/cdef01` from the path of a task's script.
pub(super) fn task_name(program: &Program) -> Option<String> {
    let Runs::Script(path) = &program.runs else { return None };
    let mut parts = path.rsplit(|byte| *byte == b'/');
    if !matches!(parts.next()?, b".command.sh" | b".command.run") {
        return None;
    }
    let (rest, first) = (parts.next()?, parts.next()?);
    let is_hash = first.len() == 2 && first.iter().chain(rest).all(u8::is_ascii_hexdigit);
    is_hash.then(|| argv::text(&[first, rest.get(..SHOWN).unwrap_or(rest)].join(&b'/')))
}
