//! The policy that a file holds.

use super::ApprovalsConfig;
use guards::policy::Policy;
use std::{
    fs, io,
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
    /// The file cannot be read, or is no policy.
    pub fn policy(&self) -> Result<(Policy, String), PolicyError> {
        let none = || (Policy::default(), crate::audit::hash(""));
        self.policy_file.as_deref().map_or_else(|| Ok(none()), read_policy)
    }
}

/// The policy of a file, and the file's SHA-256.
///
/// # Errors
/// It cannot be read, or is no policy.
pub fn read_policy(file: &Path) -> Result<(Policy, String), PolicyError> {
    let named = || file.to_owned();
    let text = fs::read_to_string(file).map_err(|source| PolicyError::File { file: named(), source })?;
    let policy = toml::from_str(&text).map_err(|error| PolicyError::Text { file: named(), source: Box::new(error) })?;
    Ok((policy, crate::audit::hash(&text)))
}
