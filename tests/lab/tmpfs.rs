//! A disk that can be filled: a small tmpfs, mounted for one test.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// A mounted tmpfs; it is unmounted with this value.
#[derive(Debug)]
pub struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    /// Mounts one of `bytes` at `path`, which is made.
    ///
    /// # Panics
    ///
    /// When this user may not mount: the tests of a full disk need root.
    #[must_use]
    pub fn mount(path: &Path, bytes: u64) -> Self {
        fs::create_dir_all(path).expect("the mount point can be made");
        let options = format!("size={bytes},mode=0700");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        let done = done.expect("mount is installed");
        let why = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "a small disk cannot be mounted (run the tests as root): {why}");
        Self { path: path.to_owned() }
    }

    /// Takes all room that is left, down to the last block.
    ///
    /// # Panics
    ///
    /// When something else than its size ends it.
    pub fn fill(&self) {
        let filler = fs::File::options().create(true).append(true).open(self.path.join("filler"));
        let mut filler = filler.expect("a filler can be opened");
        let error = loop {
            if let Err(error) = io::Write::write_all(&mut filler, &[b'x'; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }

    /// Takes no writing from here on, as a disk does after an error.
    ///
    /// # Panics
    ///
    /// When it cannot be mounted anew, because a file is open for writing.
    pub fn make_read_only(&self) {
        let done = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.path).status();
        assert!(done.expect("mount is installed").success(), "{} stays writable", self.path.display());
    }

    /// Frees it.
    ///
    /// # Panics
    ///
    /// When it was not full.
    pub fn make_room(&self) {
        fs::remove_file(self.path.join("filler")).expect("the filler can be removed");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: a process of the test may have its files open still, and a drop must not panic.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}
