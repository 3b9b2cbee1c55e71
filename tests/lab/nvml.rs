//! A host with GPUs, on paper: a PCI bus that lists them, and a stand-in for NVIDIA's library that answers what a test tells it.
//!
//! The stand-in is compiled from NVIDIA's own header `nvml.h`: it shows that the agent calls the library as its maker
//! declares it, and how it copes with every answer. What real hardware says is measured by `make bench-gpu`.

use crate::binaries;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// `NVML_ERROR_NOT_SUPPORTED`
pub const NOT_SUPPORTED: u32 = 3;
/// `NVML_ERROR_DRIVER_NOT_LOADED`
pub const DRIVER_NOT_LOADED: u32 = 9;
/// `NVML_ERROR_GPU_IS_LOST`
pub const GPU_IS_LOST: u32 = 15;
/// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`
pub const LIB_RM_VERSION_MISMATCH: u32 = 18;

/// A folder that holds the bus, the library, and what the library answers.
#[derive(Clone, Debug)]
pub struct GpuHost {
    folder: PathBuf,
}

impl GpuHost {
    /// A bus with this many NVIDIA GPUs, and a library that knows as many.
    ///
    /// # Panics
    ///
    /// When the stand-in cannot be compiled.
    #[must_use]
    pub fn with(folder: &Path, gpus: u32) -> Self {
        let host = Self { folder: folder.to_owned() };
        for index in 0..gpus {
            let device = host.bus().join(format!("0000:{index:02x}:00.0"));
            fs::create_dir_all(&device).expect("a folder for the device");
            fs::write(device.join("vendor"), "0x10de\n").expect("a vendor");
            fs::write(device.join("class"), "0x030200\n").expect("a class");
        }
        fs::create_dir_all(host.library_folder()).expect("a folder for the library");
        host.answers(&[("count", gpus)]);
        let output = Command::new(binaries::system("cc"))
            .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(host.library())
            .arg(binaries::checkout().join("tests/lab/nvml_standin.c"))
            .arg("-I")
            .arg(header_folder())
            .arg(format!("-DSTATE=\"{}\"", host.state().display()))
            .output()
            .expect("the C compiler starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        host
    }

    /// Adds a device of another maker to the bus.
    ///
    /// # Panics
    ///
    /// When the folder cannot be made.
    pub fn with_device(&self, address: &str, vendor: &str, number: &str, class: &str) {
        let device = self.bus().join(address);
        fs::create_dir_all(&device).expect("a folder for the device");
        for (file, value) in [("vendor", vendor), ("device", number), ("class", class)] {
            fs::write(device.join(file), format!("{value}\n")).expect("a file of the device");
        }
    }

    /// Replaces what the library answers from now on.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn answers(&self, state: &[(&str, u32)]) {
        let text: String = state.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
        let new = self.folder.join("state.new");
        fs::write(&new, text).expect("the answers can be written");
        fs::rename(new, self.state()).expect("the answers can be replaced");
    }

    /// What the agent's configuration says to see this host.
    #[must_use]
    pub fn configuration(&self) -> String {
        format!("identity = \"host\"\nlog = \"info\"\npci_devices = \"{}\"\n", self.bus().display())
    }

    /// Where the library lies.
    #[must_use]
    pub fn library_folder(&self) -> PathBuf {
        self.folder.join("lib")
    }

    /// The library itself.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.library_folder().join("libnvidia-ml.so.1")
    }

    fn bus(&self) -> PathBuf {
        self.folder.join("pci")
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }
}

fn header_folder() -> PathBuf {
    let packages = binaries::checkout().join(".setup/venv/lib");
    let folders =
        fs::read_dir(&packages).unwrap_or_else(|_| panic!("{} is missing: run `make setup`", packages.display()));
    folders
        .filter_map(|folder| Some(folder.ok()?.path().join("site-packages/nvidia/nvml_dev/include")))
        .find(|folder| folder.join("nvml.h").exists())
        .unwrap_or_else(|| panic!("nvml.h is missing: run `make setup`"))
}
