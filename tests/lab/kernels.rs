//! The kernels of Debian's cloud images, which micro-VMs boot, and their modules.
//!
//! A package brings no list of which module needs which: that is made where it is installed. So each module's own word on it is
//! read, the field `depends` of its section `.modinfo`.

use crate::binaries;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A kernel of Debian's cloud images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernel {
    /// 5.10, of Debian 11.
    Linux5_10,
    /// 6.1, of Debian 12.
    #[default]
    Linux6_1,
    /// 6.12, of Debian 12's backports.
    Linux6_12,
    /// 6.1 for Arm, of Debian 12.
    Linux6_1Arm,
    /// 6.12 for Arm, of Debian 12's backports.
    Linux6_12Arm,
}

/// What a kernel, and every program beside it, is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit Intel and AMD.
    X86,
    /// 64-bit Arm: Graviton, Axion.
    Arm,
}

impl Architecture {
    /// As compilers name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }
}

/// A module of a kernel.
#[derive(Clone, Debug)]
pub struct Module {
    /// As `modprobe` knows it.
    pub name: String,
    /// What the kernel is given.
    pub image: Vec<u8>,
    /// The modules that it and they need, by name, each after those that it needs; what is built into the kernel is not among them.
    pub needs: Vec<String>,
}

impl Kernel {
    /// The first two numbers of its version.
    #[must_use]
    pub fn series(self) -> &'static str {
        match self {
            Self::Linux5_10 => "5.10",
            Self::Linux6_1 | Self::Linux6_1Arm => "6.1",
            Self::Linux6_12 | Self::Linux6_12Arm => "6.12",
        }
    }

    /// What it is compiled for.
    #[must_use]
    pub fn architecture(self) -> Architecture {
        match self {
            Self::Linux5_10 | Self::Linux6_1 | Self::Linux6_12 => Architecture::X86,
            Self::Linux6_1Arm | Self::Linux6_12Arm => Architecture::Arm,
        }
    }

    /// The processor to emulate. QEMU 7.2's `cmpxchg16b` makes 6.12 die of a double fault at its start; Graviton 2 is a Neoverse N1.
    #[must_use]
    pub fn processor(self) -> &'static str {
        match self {
            Self::Linux5_10 | Self::Linux6_1 => "max",
            Self::Linux6_12 => "max,-cx16",
            Self::Linux6_1Arm | Self::Linux6_12Arm => "neoverse-n1",
        }
    }

    /// What boots.
    ///
    /// # Panics
    ///
    /// When it has not been set up.
    #[must_use]
    pub fn image(self) -> PathBuf {
        only(&self.folder().join("boot"), "vmlinuz-")
    }

    /// Its whole version, as `uname -r` says it.
    ///
    /// # Panics
    ///
    /// When it has not been set up.
    #[must_use]
    pub fn release(self) -> String {
        let modules = self.modules_folder();
        modules.file_name().expect("a folder has a name").to_string_lossy().into_owned()
    }

    /// These modules and all that they need, each after those that it needs. What is built into the kernel is left out.
    ///
    /// # Panics
    ///
    /// When the kernel has no such module.
    #[must_use]
    pub fn modules(self, names: &[&str]) -> Vec<Module> {
        let folder = self.modules_folder();
        let list = |name: &str| fs::read_to_string(folder.join(name)).expect("a kernel lists its modules");
        let (built_in, separate) = (list("modules.builtin"), list("modules.order"));
        let mut found = Vec::new();
        for name in names {
            find(name, &folder, [&built_in, &separate], &mut found);
        }
        found
    }

    fn folder(self) -> PathBuf {
        let kernels = binaries::checkout().join(".setup/kernels");
        match self.architecture() {
            Architecture::X86 => kernels.join(self.series()),
            Architecture::Arm => kernels.join(format!("{}-arm64", self.series())),
        }
    }

    fn modules_folder(self) -> PathBuf {
        only(&self.folder().join("lib/modules"), self.series())
    }
}

/// Adds a module to those that were `found`, after what it needs.
fn find(name: &str, folder: &Path, lists: [&str; 2], found: &mut Vec<Module>) {
    let [built_in, separate] = lists;
    if path_of(name, built_in).is_some() || found.iter().any(|module| module.name == name) {
        return;
    }
    let path = path_of(name, separate).unwrap_or_else(|| panic!("{} has no module {name}", folder.display()));
    let image = read(&folder.join(path));
    let mut needs: Vec<String> = Vec::new();
    for name in depends(&image).unwrap_or_else(|| panic!("{path} does not say what it needs")) {
        find(&name, folder, lists, found);
        let module = found.iter().find(|module| module.name == name);
        let all = module.map_or_else(Vec::new, |module| [&module.needs[..], &[name]].concat());
        needs.extend(all.into_iter().filter(|name| !needs.contains(name)).collect::<Vec<_>>());
    }
    found.push(Module { name: name.to_owned(), image, needs });
}

/// The line of a list that names a module: `kernel/drivers/net/virtio_net.ko`.
fn path_of<'a>(name: &str, list: &'a str) -> Option<&'a str> {
    let named = |path: &&str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.strip_suffix(".ko").is_some_and(|file| file.replace('-', "_") == name)
    };
    list.lines().find(named)
}

/// Names after `depends=`, between commas. Strings of the section end with a zero byte.
fn depends(image: &[u8]) -> Option<Vec<String>> {
    const FIELD: &[u8] = b"\0depends=";
    let begin = image.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let end = begin + image[begin..].iter().position(|byte| *byte == 0)?;
    let names = std::str::from_utf8(&image[begin..end]).ok()?;
    Some(names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect())
}

/// A module's file, which newer packages compress.
fn read(path: &Path) -> Vec<u8> {
    let compressed = path.with_added_extension("xz");
    if !compressed.exists() {
        return fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let done = Command::new(binaries::system("xz")).arg("-dc").arg(&compressed).output().expect("xz starts");
    assert!(done.status.success(), "{}: {}", compressed.display(), String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The one thing in `folder` whose name begins with `prefix`.
fn only(folder: &Path, prefix: &str) -> PathBuf {
    let mut entries = fs::read_dir(binaries::installed(folder)).expect("a folder of the set-up can be read");
    let found = entries.find_map(|entry| entry.ok().filter(|e| e.file_name().to_string_lossy().starts_with(prefix)));
    found.unwrap_or_else(|| panic!("{}/{prefix}… is missing: run `make setup`", folder.display())).path()
}
