//! The policy that a file holds.

use super::{ApprovalsConfig, rights};
use guards::policy::Policy;
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Why a policy cannot be read: then nobody may approve anything, and nothing is carried out.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// There is no such file, or it cannot be opened.
    #[error("cannot read the policy {file}")]
    File {
        /// Which.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others than root and the sweeper's user can change it, and so give themselves rights.
    #[error("the policy {file} is not used: {why}")]
    Changeable {
        /// Which.
        file: PathBuf,
        /// Who can, and which command ends that.
        why: String,
    },
    /// It is no policy.
    #[error("the policy {file} cannot be read")]
    Text {
        /// Which.
        file: PathBuf,
        /// Line and reason.
        source: Box<toml::de::Error>,
    },
}

impl ApprovalsConfig {
    /// The policy that is configured, as its file is now, and the SHA-256 of that; one that lets nobody do anything if none is.
    ///
    /// # Errors
    /// The file cannot be read, can be changed by others, or is no policy.
    pub fn policy(&self) -> Result<(Policy, String), PolicyError> {
        let none = || (Policy::default(), crate::audit::hash(""));
        self.policy_file.as_deref().map_or_else(|| Ok(none()), read_policy)
    }
}

/// The policy of a file, and the file's SHA-256.
///
/// # Errors
/// It cannot be read, can be changed by others, or is no policy.
pub fn read_policy(file: &Path) -> Result<(Policy, String), PolicyError> {
    let named = || file.to_owned();
    let unreadable = |source| PolicyError::File { file: named(), source };
    // What was opened is what is asked, whatever stands at that path a moment later.
    let mut opened = File::open(file).map_err(unreadable)?;
    if let Some(why) = rights::changeable(&opened, file).map_err(unreadable)? {
        return Err(PolicyError::Changeable { file: named(), why });
    }
    let mut text = String::new();
    opened.read_to_string(&mut text).map_err(unreadable)?;
    let policy = toml::from_str(&text).map_err(|error| PolicyError::Text { file: named(), source: Box::new(error) })?;
    Ok((policy, crate::audit::hash(&text)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    #[test]
    fn a_policy_that_others_can_write_is_none_and_says_how_to_mend_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("policy.toml"), folder.path().join("..data"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        for (mode, is_read) in [(0o600, true), (0o644, true), (0o440, true), (0o664, false), (0o646, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            // As Kubernetes shows a file: a link, which itself has all rights.
            for path in [&file, &link] {
                match read_policy(path) {
                    Ok(_) => assert!(is_read, "{mode:o}"),
                    Err(error) => {
                        let said = crate::chain(&error);
                        assert!(!is_read && said.contains("chmod go-w"), "{mode:o}: {said}");
                    }
                }
            }
        }
    }
}
