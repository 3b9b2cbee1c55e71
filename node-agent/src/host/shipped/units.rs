//! Whether a systemd unit is as the distribution ships it.
//!
//! It is if and only if a package holds its fragment below `/usr/lib/systemd/system`, unchanged, no folder that systemd looks into first
//! has another one (`/etc`, `/run`, transient ones), and nothing is dropped in that no package holds. The order of the folders:
//! systemd.unit(5), "Unit File Load Path".

use super::packages::Packages;
use std::{fs, io::ErrorKind, path::Path};

/// Folders that come before the distribution's own.
pub(super) const BEFORE: [&str; 9] = [
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
pub(super) const LOCAL: &str = "/usr/local/lib/systemd/system/";
pub(super) const SHIPPED: [&str; 2] = ["/usr/lib/systemd/system/", "/lib/systemd/system/"];

/// Whether the unit of this name is the distribution's.
pub(super) fn is_shipped(packages: &Packages, name: &str) -> bool {
    // The fragment of an instance is its template's.
    let template = name.split_once('@').and_then(|(base, rest)| Some(format!("{base}@.{}", rest.rsplit_once('.')?.1)));
    let names: Vec<&str> = std::iter::once(name).chain(template.as_deref()).collect();
    let exists = |folder: &str, name: &str| fs::symlink_metadata(packages.on_disk(&format!("{folder}{name}"))).is_ok();
    let is_overruled = BEFORE.iter().chain([&LOCAL]).any(|folder| names.iter().any(|name| exists(folder, name)));
    if is_overruled || !names.iter().all(|name| drop_ins_are_shipped(packages, name)) {
        return false;
    }
    names.iter().any(|name| SHIPPED.iter().any(|folder| packages.is_own_text(&format!("{folder}{name}"))))
}

/// Whether every drop-in that applies to the unit is a package's, unchanged, in the distribution's own folder: Fedora and RHEL 10 ship one for
/// all services (`service.d/10-timeout-abort.conf`).
fn drop_ins_are_shipped(packages: &Packages, name: &str) -> bool {
    let Some((base, kind)) = name.rsplit_once('.') else { return false };
    // `a-b.service` takes drop-ins of `a-b.service.d`, `a-.service.d` and `service.d`.
    let dashes = base.match_indices('-').map(|(at, _)| format!("{}.{kind}.d", &base[..=at]));
    let folders: Vec<String> = [format!("{name}.d"), format!("{kind}.d")].into_iter().chain(dashes).collect();
    let is_somebodys = |place: &str, folder: &str| match drop_ins(&packages.on_disk(&format!("{place}{folder}"))) {
        Some(names) if SHIPPED.contains(&place) => {
            names.iter().any(|name| !packages.is_own_text(&format!("{place}{folder}/{name}")))
        }
        Some(names) => !names.is_empty(),
        None => true,
    };
    let mut places = BEFORE.iter().chain([&LOCAL]).chain(&SHIPPED);
    !places.any(|place| folders.iter().any(|folder| is_somebodys(place, folder)))
}

/// The configuration in a folder; `None` if that cannot be told.
pub(super) fn drop_ins(folder: &Path) -> Option<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return (error.kind() == ErrorKind::NotFound).then(Vec::new),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.ok()?.file_name();
        if name.as_encoded_bytes().ends_with(b".conf") {
            found.push(name.to_str()?.to_owned());
        }
    }
    Some(found)
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
