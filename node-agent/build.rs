//! Builds the objects that run inside the kernel, with a compiler of its own, and hands them to the agent to embed.
//!
//! Which compiler that is, `node-agent-ebpf/toolchain.sh find` says; without one the build stops with its one line. Whoever
//! wants an agent without its programs for the kernel says so: `BPF_CARGO=none` embeds empty objects, and the agent
//! then reads `/proc` and names the reason.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

/// What the outer build set for its own compiler, and what would mislead the inner one.
const FOREIGN: [&str; 9] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "RUSTUP_TOOLCHAIN",
];

fn fail(why: &str) -> ! {
    println!("cargo:error={why}");
    exit(1)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn main() {
    let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../node-agent-ebpf");
    for watched in ["src", "Cargo.toml", "toolchain.sh"] {
        println!("cargo:rerun-if-changed={}", crate_dir.join(watched).display());
    }
    for watched in ["BPF_CARGO", "BPF_RUSTC"] {
        println!("cargo:rerun-if-env-changed={watched}");
    }
    if variable("CARGO_CFG_TARGET_ENDIAN") != "little" {
        fail("node-agent supports little-endian machines only");
    }
    let out_dir = PathBuf::from(variable("OUT_DIR"));
    let objects = [("OBJECT", "node-agent-ebpf"), ("PROCESS_EVENTS", "node-agent-ebpf-tracepoints")];
    let is_built = env::var("BPF_CARGO").ok().is_none_or(|cargo| cargo != "none");
    let target_dir = shared(&out_dir).join(format!("bpf-{}", variable("CARGO_CFG_TARGET_ARCH")));
    if is_built {
        build(&crate_dir, &target_dir);
    }
    for (variable, name) in objects {
        let object = out_dir.join(name);
        let written = if is_built {
            fs::copy(target_dir.join("bpfel-unknown-none/release").join(name), &object).map(drop)
        } else {
            fs::write(&object, "")
        };
        written.unwrap_or_else(|error| fail(&format!("{}: {error}", object.display())));
        println!("cargo:rustc-env=NODE_AGENT_EBPF_{variable}={}", object.display());
    }
}

/// The outer build's target folder: the agent is built in debug and release, for check and for tests, and its programs for the kernel, which are the same in all of
/// them, once (40 s). Cargo marks that folder and those of its targets; where it does not, each build has its own.
fn shared(out_dir: &Path) -> &Path {
    out_dir.ancestors().filter(|folder| folder.join("CACHEDIR.TAG").exists()).last().unwrap_or(out_dir)
}

/// Debug information names each source file, and is a part of what is loaded: without the folders of the machine that builds, it is the same everywhere.
fn unnamed_folders(crate_dir: &Path) -> Vec<String> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folder = |name: &str, default: &str| env::var_os(name).map_or_else(|| home.join(default), PathBuf::from);
    let checkout = crate_dir.join("..").canonicalize().unwrap_or_else(|error| fail(&format!("{crate_dir:?}: {error}")));
    let named = [
        (folder("RUSTUP_HOME", ".rustup"), "/rustup"),
        (folder("CARGO_HOME", ".cargo"), "/cargo"),
        (checkout, "/cloud-sweeper"),
    ];
    named.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())).to_vec()
}

fn build(crate_dir: &Path, target_dir: &Path) {
    let found = Command::new("sh")
        .arg(crate_dir.join("toolchain.sh"))
        .arg("find")
        .output()
        .unwrap_or_else(|error| fail(&format!("node-agent-ebpf/toolchain.sh does not start: {error}")));
    if !found.status.success() {
        fail(String::from_utf8_lossy(&found.stderr).trim());
    }
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    let tool = |name: &str| {
        let value = found.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        PathBuf::from(value.unwrap_or_else(|| fail(&format!("node-agent-ebpf/toolchain.sh names no {name}"))))
    };
    let linker_dir = tool("linker").parent().map(Path::to_owned).unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([linker_dir].into_iter().chain(env::split_paths(&path)))
        .unwrap_or_else(|error| fail(&format!("PATH cannot be extended by bpf-linker's folder: {error}")));
    let mut flags = vec![
        format!("--cfg=bpf_target_arch=\"{}\"", variable("CARGO_CFG_TARGET_ARCH")),
        "-Cdebuginfo=2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
    ];
    flags.extend(unnamed_folders(crate_dir));
    let flags = flags.join("\u{1f}");

    let mut cargo = Command::new(tool("cargo"));
    cargo.args(["build", "--quiet", "--release", "--package=node-agent-ebpf", "--bins", "--features=object"]);
    cargo.args(["-Zbuild-std=core", "--target=bpfel-unknown-none"]).arg("--target-dir").arg(target_dir);
    for name in FOREIGN {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(crate_dir)
        .env("PATH", path)
        .env("RUSTC", tool("rustc"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "2")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    let built = cargo.output().unwrap_or_else(|error| fail(&format!("the BPF compiler does not start: {error}")));
    if !built.status.success() {
        fail(&format!("the programs for the kernel do not compile:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
}
