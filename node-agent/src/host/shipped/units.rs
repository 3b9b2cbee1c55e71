//! Whether a systemd unit is as the distribution ships it.
//!
//! It is if and only if a package holds its fragment below `/usr/lib/systemd/system`, unchanged, no folder that systemd looks into first
//! has another one (`/etc`, `/run`, transient ones), and nothing is dropped in that no package holds. The order of the folders:
//! systemd.unit(5), "Unit File Load Path".

use super::packages::Packages;
use std::{fs, path::Path};

/// Folders that come before the distribution's own.
const BEFORE: [&str; 9] = [
    "/etc/systemd/system.control/",
    "/run/systemd/system.control/",
    "/run/systemd/transient/",
    "/run/systemd/generator.early/",
    "/etc/systemd/system/",
    "/etc/systemd/system.attached/",
    "/run/systemd/system/",
    "/run/systemd/system.attached/",
    "/run/systemd/generator/",
];
/// The machine's administrator's, and the distribution's under both of its names.
const LOCAL: &str = "/usr/local/lib/systemd/system/";
const SHIPPED: [&str; 2] = ["/usr/lib/systemd/system/", "/lib/systemd/system/"];

/// Whether the unit of this name is the distribution's.
pub(super) fn is_shipped(packages: &mut Packages, name: &str) -> bool {
    // The fragment of an instance is its template's.
    let template = name.split_once('@').and_then(|(base, rest)| Some(format!("{base}@.{}", rest.rsplit_once('.')?.1)));
    let names: Vec<&str> = std::iter::once(name).chain(template.as_deref()).collect();
    let exists = |folder: &str, name: &str| fs::symlink_metadata(packages.on_disk(&format!("{folder}{name}"))).is_ok();
    let is_overruled = BEFORE.iter().chain([&LOCAL]).any(|folder| names.iter().any(|name| exists(folder, name)));
    if is_overruled || !names.iter().all(|name| drop_ins_are_shipped(packages, name)) {
        return false;
    }
    names.iter().any(|name| SHIPPED.iter().any(|folder| packages.is_own_unit(&format!("{folder}{name}"))))
}

/// Whether no drop-in applies to the unit. Packages ship few of them, and none for the units of upkeep: any counts as somebody's.
fn drop_ins_are_shipped(packages: &Packages, name: &str) -> bool {
    let Some((base, kind)) = name.rsplit_once('.') else { return false };
    // `a-b.service` takes drop-ins of `a-b.service.d`, `a-.service.d` and `service.d`.
    let dashes = base.match_indices('-').map(|(at, _)| format!("{}.{kind}.d", &base[..=at]));
    let folders: Vec<String> = [format!("{name}.d"), format!("{kind}.d")].into_iter().chain(dashes).collect();
    let places = BEFORE.iter().chain([&LOCAL]).chain(&SHIPPED);
    !places
        .into_iter()
        .any(|place| folders.iter().any(|folder| has_configuration(&packages.on_disk(&format!("{place}{folder}")))))
}

/// Whether a folder holds configuration, or would not say.
fn has_configuration(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            entries.any(|entry| entry.map_or(true, |entry| entry.file_name().to_string_lossy().ends_with(".conf")))
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
