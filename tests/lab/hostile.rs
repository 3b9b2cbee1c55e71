//! Processes and cgroups with names that were chosen to do harm to whoever shows them.

use crate::enclosure::Enclosure;
use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

/// What a program may be called: a terminal's title, a screen that is cleared and coloured, text that runs backwards, a log line of its own,
/// no UTF-8, a label that ends early, and what has no width. A kernel keeps 15 bytes.
pub const NAMES: [&[u8]; 6] = [
    b"\x1b]0;owned\x07",
    b"\x1b[2J\x1b[31mred",
    b"\xe2\x80\xaetxt.exe",
    b"a\nINFO forged",
    b"\"} 1\\\xff\xfe\xc2\x9b",
    b"z\xe2\x80\x8b\xe2\x81\xa6w",
];
/// The beginnings of these names as they should be shown, in the same order.
pub const SHOWN: [&str; 6] = [
    "\\u{1b}]0;owned\\u{7}",
    "\\u{1b}[2J\\u{1b}[31mred",
    "\\u{202e}txt.exe",
    "a\\u{a}INFO forged",
    "\"} 1\\\\xff\\xfe\\u{9b}",
    "z\\u{200b}\\u{2066}w",
];

/// Whether this byte text holds anything that acts on a reader, but for the line breaks between lines.
#[must_use]
pub fn acts(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return true };
    text.contains(|c: char| c != '\n' && heartbeat::text::is_hidden(c))
}

/// One process for each name, each in a cgroup of a hostile name, with 4 kB of hostile arguments.
#[derive(Debug)]
pub struct Hostile {
    processes: Vec<(Child, Option<ChildStdin>)>,
    /// Removed after their processes have ended.
    cgroups: Vec<Enclosure>,
}

impl Hostile {
    /// Starts them. Each works for a moment and then waits.
    ///
    /// # Panics
    ///
    /// When this user may make no cgroups: these tests need root.
    #[must_use]
    pub fn start(folder: &Path) -> Self {
        let busybox = crate::binaries::system("busybox");
        let mut hostile = Self { processes: Vec::new(), cgroups: Vec::new() };
        for (number, name) in NAMES.iter().enumerate() {
            let program = folder.join(OsStr::from_bytes(name));
            fs::copy(&busybox, &program).expect("a program may be called anything");
            let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read end";
            let argument = OsStr::from_bytes(&name.repeat(4096 / name.len())).to_owned();
            let mut command = Command::new(&program);
            command.arg0("sh").args(["-c", work]).arg(&argument).stdin(Stdio::piped());
            let mut child = command.spawn().expect("a hostile program starts");
            // A cgroup may be called anything but with a line break in it.
            let name = name.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect::<Vec<_>>();
            hostile.cgroups.push(Enclosure::around(child.id(), &[format!("{number}-").as_bytes(), &name].concat()));
            let stdin = child.stdin.take();
            hostile.processes.push((child, stdin));
        }
        hostile
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        for (child, stdin) in &mut self.processes {
            drop(stdin.take());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
