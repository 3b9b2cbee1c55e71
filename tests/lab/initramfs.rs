//! The first file system of a micro-VM: a `cpio` archive in the kernel's `newc` format, written by hand.
//!
//! Written here rather than by `cpio`, because only so may a plain user put a device node into it (PID 1 needs a console
//! before anything is mounted), and because 60 lines are less than a staging folder of copies. It is not compressed:
//! under emulation the guest spends more on unpacking than the host saves on writing.

use std::{fs, io, path::Path};

/// Bits of a mode that say what kind of thing an entry is (as in inode(7)).
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An archive that grows by one entry per call. Folders come before what lies in them.
#[derive(Debug, Default)]
pub struct Initramfs {
    archive: Vec<u8>,
    entries: u32,
}

impl Initramfs {
    /// Adds a folder, whose parent is there already.
    #[must_use]
    pub fn folder(self, path: &str) -> Self {
        self.entry(path, FOLDER | 0o755, (0, 0), b"")
    }

    /// Adds an executable file.
    #[must_use]
    pub fn program(self, path: &str, content: &[u8]) -> Self {
        self.entry(path, REGULAR | 0o755, (0, 0), content)
    }

    /// Adds a copy of a file of this host, as an executable.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn copy(self, path: &str, source: &Path) -> Self {
        let content = fs::read(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        self.program(path, &content)
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes())
    }

    /// Adds a character device.
    #[must_use]
    pub fn device(self, path: &str, major: u32, minor: u32) -> Self {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), b"")
    }

    /// Writes the archive.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(self, path: &Path) -> io::Result<()> {
        fs::write(path, self.entry("TRAILER!!!", 0, (0, 0), b"").archive)
    }

    /// One entry: a header of fixed-width hexadecimal numbers, the name, the content, both padded to four bytes
    /// (see <https://docs.kernel.org/driver-api/early-userspace/buffer-format.html>).
    fn entry(mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) -> Self {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file of less than 4 GiB");
        let name = path.trim_start_matches('/');
        let name_size = u32::try_from(name.len() + 1).expect("a short name");
        let fields =
            [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0].map(|n| format!("{n:08X}"));
        self.archive.extend(format!("070701{}{name}\0", fields.concat()).bytes());
        self.pad();
        self.archive.extend(content);
        self.pad();
        self
    }

    fn pad(&mut self) {
        self.archive.resize(self.archive.len().next_multiple_of(4), 0);
    }
}
