//! Whether process 1 listens at a port for ssh's server.
//!
//! systemd may hold the port itself and start the server at the first call, or for each (`ssh.socket`: Ubuntu's default since 22.10). Process 1 shows nobody what it has open, and what
//! it opened says nothing of whom it is for; the units say it. A port is ssh's if and only if the distribution's own `ssh.socket`, or `sshd.socket`, is enabled, names the port with all that
//! is dropped in, and starts the distribution's own service of that name, and no socket unit of somebody else's mentions the port.

use super::{
    packages::Packages,
    units::{BEFORE, LOCAL, SHIPPED, drop_ins, is_shipped},
};
use std::{collections::BTreeMap, fs, io::ErrorKind};

/// As Debian and Fedora call it.
const NAMES: [&str; 2] = ["ssh", "sshd"];
const ENABLED: &str = "/etc/systemd/system/sockets.target.wants/";
/// A fragment is a few lines.
const LONGEST: u64 = 64 * 1024;

/// Whether process 1 holds this TCP port for ssh's server.
pub(super) fn are_sshs(packages: &Packages, port: u16) -> bool {
    NAMES.into_iter().any(|name| is_sshs(packages, name, port).unwrap_or(false)) && !is_anybody_elses(packages, port)
}

fn read(packages: &Packages, path: &str) -> Option<String> {
    let path = packages.on_disk(path);
    if fs::metadata(&path).ok()?.len() > LONGEST {
        return None;
    }
    fs::read_to_string(path).ok()
}

fn exists(packages: &Packages, path: &str) -> bool {
    fs::symlink_metadata(packages.on_disk(path)).is_ok()
}

/// What a socket unit comes to.
#[derive(Debug, Default, PartialEq, Eq)]
struct SocketUnit {
    ports: Vec<u16>,
    accepts: bool,
    service: Option<String>,
}

impl SocketUnit {
    /// Takes up a fragment or a drop-in; an empty assignment forgets those before it.
    fn take(&mut self, text: &str) {
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            match (key.trim(), value.trim()) {
                ("ListenStream", "") => self.ports.clear(),
                ("ListenStream", address) => {
                    let port = address.rsplit(':').next().unwrap_or(address);
                    self.ports.extend(port.parse::<u16>().ok());
                }
                ("Accept", value) => self.accepts = ["yes", "true", "on", "1"].contains(&value),
                ("Service", value) => self.service = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

/// None if that cannot be told.
fn is_sshs(packages: &Packages, name: &str, port: u16) -> Option<bool> {
    let unit = format!("{name}.socket");
    let is_overruled = BEFORE.iter().chain([&LOCAL]).any(|folder| exists(packages, &format!("{folder}{unit}")));
    if is_overruled || !exists(packages, &format!("{ENABLED}{unit}")) {
        return Some(false);
    }
    let paths = SHIPPED.map(|folder| format!("{folder}{unit}"));
    let Some(fragment) = paths.iter().find(|path| packages.is_own_text(path)) else { return Some(false) };
    let mut socket = SocketUnit::default();
    socket.take(&read(packages, fragment)?);
    // By the names of the files, whichever folder they are in; of one name the first folder's counts.
    let mut dropped: BTreeMap<String, String> = BTreeMap::new();
    for folder in BEFORE.iter().chain([&LOCAL]).chain(&SHIPPED) {
        // What is dropped in for all sockets may name another service for any.
        if !drop_ins(&packages.on_disk(&format!("{folder}socket.d")))?.is_empty() {
            return None;
        }
        for file in drop_ins(&packages.on_disk(&format!("{folder}{unit}.d")))? {
            dropped.entry(file.clone()).or_insert(format!("{folder}{unit}.d/{file}"));
        }
    }
    for path in dropped.values() {
        socket.take(&read(packages, path)?);
    }
    let service = if socket.accepts { format!("{name}@.service") } else { format!("{name}.service") };
    let is_its_own = socket.service.as_ref().is_none_or(|named| *named == service);
    Some(socket.ports.contains(&port) && is_its_own && is_shipped(packages, &service))
}

/// Whether a socket unit that no package ships may listen there, or that cannot be told.
fn is_anybody_elses(packages: &Packages, port: u16) -> bool {
    let mentions = |path: &str| read(packages, path).is_none_or(|text| text.contains(&port.to_string()));
    BEFORE.iter().chain([&LOCAL]).any(|folder| {
        let entries = match fs::read_dir(packages.on_disk(folder)) {
            Ok(entries) => entries,
            Err(error) => return error.kind() != ErrorKind::NotFound,
        };
        entries.into_iter().any(|entry| {
            let Ok(entry) = entry else { return true };
            let name = entry.file_name();
            let Some(name) = name.to_str() else { return name.as_encoded_bytes().ends_with(b".socket") };
            let path = format!("{folder}{name}");
            if let Some(unit) = name.strip_suffix(".socket.d") {
                // What is dropped in for ssh's own was counted.
                let files = if NAMES.contains(&unit) { Some(Vec::new()) } else { drop_ins(&packages.on_disk(&path)) };
                return files.is_none_or(|files| files.iter().any(|file| mentions(&format!("{path}/{file}"))));
            }
            // A link is an alias, or masks a unit.
            name.ends_with(".socket") && mentions(&path)
        })
    })
}

#[cfg(test)]
#[path = "sockets_tests.rs"]
mod tests;
