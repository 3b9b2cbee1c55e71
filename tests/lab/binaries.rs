//! Where the product's own binaries lie. They are built by `make build`, never by a scenario: what is tested is what ships.

use crate::kernels::Architecture;
use std::{
    env,
    env::consts::ARCH,
    path::{Path, PathBuf},
    process::Command,
};

/// The root of the checkout.
#[must_use]
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests' folder lies in the checkout")
}

fn built(parts: &[&str]) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from);
    let path = parts.iter().fold(target, |path, part| path.join(part));
    let made_by =
        if path.iter().any(|part| part == "aarch64-unknown-linux-gnu") { "make agent-arm" } else { "make build" };
    assert!(path.exists(), "{} is missing: run `{made_by}`", path.display());
    path
}

/// The sweeper, as a debug build: its scenarios wait for events, not for speed.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn sweeper() -> PathBuf {
    built(&["debug", "sweeper"])
}

/// The sweeper as it is shipped, for figures.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn release_sweeper() -> PathBuf {
    built(&["release", "sweeper"])
}

/// The node agent, as the static release build that also runs inside a micro-VM.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn node_agent() -> PathBuf {
    built(&[&format!("{ARCH}-unknown-linux-gnu"), "release", "node-agent"])
}

/// The same program for machines of this architecture.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn node_agent_of(architecture: Architecture) -> PathBuf {
    built(&[&format!("{}-unknown-linux-gnu", architecture.name()), "release", "node-agent"])
}

/// What reads NVIDIA's GPUs for the node agent, linked with this machine's own C library.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn node_agent_gpu() -> PathBuf {
    built(&[&format!("{ARCH}-unknown-linux-gnu"), "release", "node-agent-gpu"])
}

/// A program of the tests' Python environment, for example `python` or `moto_server`.
///
/// # Panics
///
/// When the environment has not been set up.
#[must_use]
pub fn python(program: &str) -> PathBuf {
    installed(&checkout().join(".setup/venv/bin").join(program))
}

/// `path`, once it is there.
///
/// # Panics
///
/// When it is not; the message says what installs it.
#[must_use]
pub fn installed(path: &Path) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `make setup`", path.display());
    path.to_owned()
}

/// A program of the distribution, found on `PATH` or where a plain user's `PATH` does not lead.
///
/// # Panics
///
/// When it is not installed.
#[must_use]
pub fn system(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.exists())
        .unwrap_or_else(|| panic!("{program} is missing: run `make setup`"))
}

/// Compiles a C program of the laboratory into one static binary in `folder`.
///
/// # Panics
///
/// When there is no compiler, or it refuses the program.
#[must_use]
pub fn compiled(source: &str, folder: &Path) -> PathBuf {
    compiled_by("cc", source, folder)
}

/// The same for machines of this architecture.
///
/// # Panics
///
/// When there is no compiler, or it refuses the program.
#[must_use]
pub fn compiled_for(architecture: Architecture, source: &str, folder: &Path) -> PathBuf {
    if architecture.name() == ARCH {
        return compiled(source, folder);
    }
    compiled_by(&format!("{}-linux-gnu-gcc", architecture.name()), source, folder)
}

fn compiled_by(compiler: &str, source: &str, folder: &Path) -> PathBuf {
    let source = checkout().join("tests/lab").join(source);
    let program = folder.join(source.file_stem().expect("a source has a name"));
    let done = Command::new(system(compiler))
        .args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .expect("the C compiler starts");
    assert!(done.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&done.stderr));
    program
}
