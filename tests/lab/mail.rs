//! What real mail programs make of a mail's HTML: `tests/lab/node/mail_check.mjs`.

use crate::binaries;
use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// Mail programs of most readers, by the names of caniemail.com, as far as each feature was tried in them.
pub const CLIENTS: [&str; 20] = [
    "aol.android",
    "aol.desktop-webmail",
    "aol.ios",
    "apple-mail.ios",
    "apple-mail.macos",
    "fastmail.desktop-webmail",
    "gmail.android",
    "gmail.desktop-webmail",
    "gmail.ios",
    "outlook.android",
    "outlook.ios",
    "outlook.macos",
    "outlook.outlook-com",
    "outlook.windows",
    "protonmail.desktop-webmail",
    "protonmail.ios",
    "samsung-email.android",
    "yahoo.android",
    "yahoo.desktop-webmail",
    "yahoo.ios",
];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Checked {
    /// What is wrong with it as HTML, a line each.
    pub html: Vec<String>,
    /// By feature the clients that have no support for it at all.
    pub unknown: BTreeMap<String, Vec<String>>,
}

/// Checks the HTML of a mail, which is written into `folder`.
///
/// # Panics
///
/// When Node.js or its packages are missing, or the checker fails.
#[must_use]
pub fn check(html: &str, folder: &Path) -> Checked {
    let file = folder.join("mail.html");
    fs::write(&file, html).expect("the HTML can be written");
    let done = Command::new(binaries::system("node"))
        .arg(binaries::checkout().join("tests/lab/node/mail_check.mjs"))
        .arg(binaries::installed(&binaries::checkout().join(".setup/node")))
        .arg(file)
        .args(CLIENTS)
        .output()
        .expect("node starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("what was found")
}
