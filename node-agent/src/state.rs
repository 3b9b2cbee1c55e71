//! The state directory: one agent at a time, and the node token that no other user may read.
//!
//! The lock is the kernel's (`flock`), so that it ends with the process however that ends. The token is `fsync`ed: it is
//! written once per join and losing it needs a join token again.
//!
//! A disk that is mounted read-only does not keep the agent from measuring: the lock is taken on what is there, and where nothing is, the agent goes
//! on without one and says so.

use crate::config::Secret;
use heartbeat::NodeId;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

const LOCK: &str = "lock";
const TOKEN: &str = "node-token";

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made, read or written.
    #[error("state directory {path}: {source}; give the agent's user that directory, or set state_dir to another")]
    Io {
        /// The path at fault.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Another agent holds it.
    #[error("state directory {path} is in use by another agent (process {pid}); stop that one, or set state_dir")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who holds it, if that is known.
        pid: String,
    },
}

/// A state directory that this process alone holds.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: Option<File>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct StoredToken {
    node_id: NodeId,
    node_token: String,
}

impl StateDir {
    /// Makes the directory (0700) if it is missing and locks it.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let fail = |source| StateError::Io { path: path.to_owned(), source };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        let mut lock = match made.and_then(|()| open_lock(&path.join(LOCK))) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                tracing::warn!(path = %path.display(), "the state directory is on a read-only disk: nothing is kept there, \
                    and nobody sees whether a second agent runs");
                return Ok(Self { path: path.to_owned(), _lock: None });
            }
            Err(error) => return Err(fail(error)),
        };
        match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = lock.read_to_string(&mut pid);
                let pid = pid.trim();
                let known = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
                let pid = if known { pid } else { "unknown" }.to_owned();
                return Err(StateError::InUse { path: path.to_owned(), pid });
            }
            Err(error) => return Err(fail(error.into())),
        }
        // Only for the message above; a full disk must not stop the agent.
        let _ = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
        Ok(Self { path: path.to_owned(), _lock: Some(lock) })
    }

    /// Where the spool is.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// The token that the sweeper gave to this node; one of another node (a copied disk) is none.
    #[must_use]
    pub fn token(&self, node: &NodeId) -> Option<Secret> {
        let text = fs::read_to_string(self.path.join(TOKEN)).ok()?;
        match serde_json::from_str::<StoredToken>(&text) {
            Ok(stored) if stored.node_id == *node => Some(Secret::new(stored.node_token)),
            Ok(stored) => {
                tracing::warn!(of = %stored.node_id, "the kept node token is another node's; this one joins anew");
                None
            }
            Err(_) => {
                tracing::warn!("the kept node token is damaged; this node joins anew");
                None
            }
        }
    }

    /// Keeps the token, readable for this user alone.
    ///
    /// # Errors
    /// If the disk does not take it; then the node joins anew after a restart.
    pub fn keep_token(&self, node: &NodeId, token: &Secret) -> io::Result<()> {
        let stored = StoredToken { node_id: node.clone(), node_token: token.reveal().to_owned() };
        let new = self.path.join("node-token.new");
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(serde_json::to_string(&stored)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(TOKEN))?;
        File::open(&self.path)?.sync_all()
    }
}

/// The kernel locks a file that can only be read as well as any other.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => match File::open(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Err(error),
            opened => opened,
        },
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_second_agent_is_told_who_holds_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let first = StateDir::open(directory.path()).unwrap();
        let error = StateDir::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by another agent (process {})", std::process::id())), "{error}");
        drop(first);
        StateDir::open(directory.path()).unwrap();
    }

    #[test]
    fn the_token_is_kept_for_this_user_and_this_node_alone() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(&directory.path().join("agent")).unwrap();
        let node: NodeId = "host:0123456789abcdef0123456789abcdef".parse().unwrap();
        let other: NodeId = "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().unwrap();
        assert_eq!(state.token(&node), None);
        state.keep_token(&node, &Secret::new("first")).unwrap();
        state.keep_token(&node, &Secret::new("second")).unwrap();
        assert_eq!(state.token(&node), Some(Secret::new("second")));
        assert_eq!(state.token(&other), None);
        let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("agent"), mode("agent/node-token")), (0o700, 0o600));
    }
}
