//! Snakemake: a Python program that runs a rule's `shell` by bash, its `script` as a copy in a folder of its own, and its `run` by a second
//! Snakemake with `--target-jobs`: <https://github.com/snakemake/snakemake>, `executors/local.py` and `script/__init__.py`.
//!
//! Only the last kind bears the rule's name on a command line; the others are named by what they run.

use super::{Program, Runs};

/// Its name on the wire.
pub const NAME: &str = "snakemake";
/// What Python's `tempfile` puts before a script's name: `tmp` and eight characters.
const COPY_PREFIX: usize = 11;

/// `align.py` from `/x/.snakemake/scripts/tmpoh20ecec.align.py`.
pub(super) fn own_name(path: &[u8]) -> Option<&[u8]> {
    let at = path.windows(b"/.snakemake/scripts/".len()).rposition(|part| part == b"/.snakemake/scripts/")?;
    let name = path.get(at + b"/.snakemake/scripts/".len()..)?;
    let (prefix, rest) = name.split_at_checked(COPY_PREFIX)?;
    (prefix.starts_with(b"tmp")).then(|| rest.strip_prefix(b".")).flatten().filter(|name| !name.is_empty())
}

pub(super) fn task_name(program: &Program) -> Option<String> {
    let Runs::Script(path) = &program.runs else { return None };
    own_name(path).map(|_| program.name.clone())
}
