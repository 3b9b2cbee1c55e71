//! What the machine itself knows: who made its firmware, and an id of its own.
//!
//! The id never leaves the host: what is sent is the first half of its HMAC-SHA256 under a key of this application, as
//! machine-id(5) asks for. Two machines that were copied with their `/etc/machine-id` are one node here; the copy should
//! have been given a new id by `systemd-machine-id-setup`.

use super::{Identity, IdentityError};
use heartbeat::{BootId, NodeId};
use hmac::{Hmac, Mac as _};
use std::{
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

const KEY: &[u8] = b"cloud-sweeper/node-agent/host-id/1";
const MADE_UP_FILE: &str = "host-id";
/// What firmware says when its maker set no UUID, without hyphens.
const PLACEHOLDERS: [&str; 3] =
    ["00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff", "03000200040005000006000700080009"];

/// Whose machine the firmware says this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// An EC2 instance, on Nitro or Xen.
    Ec2,
    /// A Compute Engine instance.
    ComputeEngine,
    /// Anything else.
    Other,
    /// There is no DMI, or it is not readable.
    Unreadable,
}

/// Whether a made-up id may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The agent runs: what it makes up has to hold.
    Yes,
    /// Somebody only looks: nothing is written.
    No,
}

/// Reads who made the firmware.
#[must_use]
pub fn firmware(root: &Path) -> Firmware {
    let read = |name: &str| {
        let text = std::fs::read_to_string(root.join("sys").join(name)).unwrap_or_default();
        text.trim().to_lowercase()
    };
    let dmi = |name: &str| read(&format!("class/dmi/id/{name}"));
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    // Xen instances: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
    let xen = vendor == "xen" && (read("hypervisor/uuid").starts_with("ec2") || dmi("bios_version").contains("amazon"));
    if vendor == "amazon ec2" || xen {
        Firmware::Ec2
    } else if vendor == "google" && product.contains("compute engine") {
        Firmware::ComputeEngine
    } else if vendor.is_empty() && product.is_empty() {
        Firmware::Unreadable
    } else {
        Firmware::Other
    }
}

/// Names the host by its machine id, else by its firmware's UUID, else by an id made up once and kept in `state_dir`.
///
/// # Errors
/// If only a made-up id is left and it cannot be read or written.
pub fn identify(root: &Path, state_dir: &Path, keep: Keep) -> Result<Identity, IdentityError> {
    for (name, kind) in [
        ("etc/machine-id", "machine-id"),
        ("var/lib/dbus/machine-id", "machine-id"),
        ("sys/class/dmi/id/product_uuid", "product_uuid"),
    ] {
        if let Some(id) = std::fs::read_to_string(root.join(name)).ok().and_then(|text| plain_id(&text)) {
            return Ok(Identity { node_id: hashed(kind, &id), source: format!("a keyed hash of /{name}") });
        }
    }
    let path = state_dir.join(MADE_UP_FILE);
    let id = made_up(&path, keep).map_err(|source| IdentityError::Machine { path: path.clone(), source })?;
    Ok(Identity { node_id: hashed("made-up", &id), source: format!("a random id kept in {}", path.display()) })
}

/// The boot that is running now.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn boot_id(root: &Path) -> io::Result<BootId> {
    let text = std::fs::read_to_string(root.join("proc/sys/kernel/random/boot_id"))?;
    text.parse().map_err(|error: heartbeat::IdentityError| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// 32 hexadecimal digits in lower case, unless the text is a placeholder or something else.
fn plain_id(text: &str) -> Option<String> {
    let id = text.trim().replace('-', "").to_lowercase();
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    (is_id && !PLACEHOLDERS.contains(&id.as_str())).then_some(id)
}

fn hashed(kind: &str, id: &str) -> NodeId {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(KEY).unwrap_or_else(|_| unreachable!("HMAC takes any key"));
    mac.update(format!("{kind}:{id}").as_bytes());
    let mut hash = hex::encode(mac.finalize().into_bytes());
    hash.truncate(32);
    NodeId::Host { hash }
}

fn made_up(path: &Path, keep: Keep) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it holds no id; remove it to get a new one");
            return plain_id(&text).ok_or_else(damaged);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if keep == Keep::No {
        return Err(io::Error::new(io::ErrorKind::NotFound, "not made yet; `node-agent run` makes it"));
    }
    let id = uuid::Uuid::new_v4().simple().to_string();
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(id.as_bytes())?;
    file.sync_all()?;
    Ok(id)
}
