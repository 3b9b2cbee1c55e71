//! The state directory: one agent at a time, and the node's key and token, which no other user may read.
//!
//! The lock is the kernel's (`flock`), so that it ends with the process however that ends. Key and token are `fsync`ed: the token is
//! written once per join, the key once for good. Who loses the key needs `sweeper nodes revoke` to join again.
//!
//! A disk that is mounted read-only does not keep the agent from measuring: the lock is taken on what is there, and where nothing is, the agent goes
//! on without one and says so.

use crate::identity::key::NodeKey;
use heartbeat::NodeId;
use secrecy::{ExposeSecret as _, SecretString};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

const LOCK: &str = "lock";
const TOKEN: &str = "node-token";
const KEY: &str = "node-key";

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

/// The token that the sweeper gave to this node.
#[derive(Clone, Debug)]
pub struct NodeToken {
    /// The token.
    pub secret: SecretString,
    /// When it expires, in milliseconds since 1970-01-01 UTC by this host's clock; `None` if it does not.
    pub expires_unix_ms: Option<i64>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct StoredToken {
    node_id: NodeId,
    node_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_unix_ms: Option<i64>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct StoredKey {
    node_id: NodeId,
    private_key_pkcs8: String,
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
    pub fn token(&self, node: &NodeId) -> Option<NodeToken> {
        let text = fs::read_to_string(self.path.join(TOKEN)).ok()?;
        match serde_json::from_str::<StoredToken>(&text) {
            Ok(stored) if stored.node_id == *node => Some(NodeToken {
                secret: SecretString::from(stored.node_token),
                expires_unix_ms: stored.expires_unix_ms,
            }),
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
    pub fn keep_token(&self, node: &NodeId, token: &NodeToken) -> io::Result<()> {
        let node_token = token.secret.expose_secret().to_owned();
        let stored = StoredToken { node_id: node.clone(), node_token, expires_unix_ms: token.expires_unix_ms };
        self.keep(TOKEN, &serde_json::to_string(&stored)?)
    }

    /// The key of this node; one of another node (a copied disk) is none.
    ///
    /// # Errors
    /// If there is one that cannot be read: a new one in its place would make the node disputed.
    pub fn key(&self, node: &NodeId) -> io::Result<Option<NodeKey>> {
        let text = match fs::read_to_string(self.path.join(KEY)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it holds no key");
        let stored: StoredKey = serde_json::from_str(&text).map_err(|_| damaged())?;
        if stored.node_id != *node {
            tracing::warn!(of = %stored.node_id, "the kept key is another node's; this one makes a key of its own");
            return Ok(None);
        }
        NodeKey::from_text(&stored.private_key_pkcs8).map(Some).map_err(|_| damaged())
    }

    /// Keeps the key, readable for this user alone.
    ///
    /// # Errors
    /// If the disk does not take it: then it must not be bound, or the node could never join again.
    pub fn keep_key(&self, node: &NodeId, key: &NodeKey) -> io::Result<()> {
        let private_key_pkcs8 = key.to_text().map_err(io::Error::other)?.expose_secret().to_owned();
        self.keep(KEY, &serde_json::to_string(&StoredKey { node_id: node.clone(), private_key_pkcs8 })?)
    }

    fn keep(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!("{name}.new"));
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(name))?;
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

    fn nodes() -> [NodeId; 2] {
        ["host:0123456789abcdef0123456789abcdef", "aws:123456789012:eu-central-1:i-0123456789abcdef0"]
            .map(|text| text.parse().unwrap())
    }

    #[test]
    fn the_token_is_kept_for_this_user_and_this_node_alone() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(&directory.path().join("agent")).unwrap();
        let [node, other] = nodes();
        let token = |text: &str, expires_unix_ms| NodeToken { secret: SecretString::from(text), expires_unix_ms };
        let kept = |node: &NodeId| {
            state.token(node).map(|kept| (kept.secret.expose_secret().to_owned(), kept.expires_unix_ms))
        };
        assert_eq!(kept(&node), None);
        state.keep_token(&node, &token("first", None)).unwrap();
        state.keep_token(&node, &token("second", Some(7))).unwrap();
        assert_eq!(kept(&node), Some(("second".to_owned(), Some(7))));
        assert_eq!(kept(&other), None);
        let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("agent"), mode("agent/node-token")), (0o700, 0o600));
    }

    #[test]
    fn the_key_is_kept_for_this_user_and_this_node_alone_and_never_replaced_by_mistake() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(directory.path()).unwrap();
        let [node, other] = nodes();
        assert!(state.key(&node).unwrap().is_none());
        let key = NodeKey::generate().unwrap();
        state.keep_key(&node, &key).unwrap();
        let kept = state.key(&node).unwrap().unwrap();
        assert_eq!((kept.public(), kept.sign_join(b"{}")), (key.public(), key.sign_join(b"{}")));
        assert!(state.key(&other).unwrap().is_none());
        let file = directory.path().join("node-key");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&file, "{").unwrap();
        assert!(state.key(&node).is_err());
    }
}
