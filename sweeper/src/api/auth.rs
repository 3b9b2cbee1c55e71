//! Bearer tokens: the fleet token and join tokens, which a person hands to agents; node tokens, which the sweeper hands out; and the operator token,
//! for people and programs that ask how the sweeper gets on.
//!
//! A token is 32 bytes of the system's randomness with a prefix that secret scanners can be told of. The database holds SHA-256 sums
//! alone. The fleet token (the file's name is `join-token`) and the operator token also lie in files that only their owner can read; such a file is
//! the truth: to change the token, write another one there (or delete it together with the setting) and start the sweeper again.

use super::{
    AppState,
    problem::{Reason, Refusal},
    remembered::Remembered,
};
use crate::identity::challenge::ChallengeKey;
use crate::ingest::Sender;
use crate::store::{JoinSecret, Store, StoreError, TokenHash};
use axum::http::{HeaderMap, header};
use heartbeat::api::SIGNATURE_HEADER;
use rand::TryRngCore as _;
use std::{
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Instant,
};
use subtle::ConstantTimeEq as _;

const NODE_PREFIX: &str = "csn_";
const ONCE_PREFIX: &str = "cso_";
const APPROVER_PREFIX: &str = "csa_";
/// A token that a person has chosen must be at least this long.
const MIN_TOKEN_BYTES: usize = 32;

/// A token that all sweepers over one database know, and that lies in a file of the first one.
#[derive(Debug)]
pub struct SharedToken {
    /// What people call it.
    name: &'static str,
    /// The key of its file in the configuration.
    key: &'static str,
    prefix: &'static str,
    /// Where the database has its hash.
    setting: &'static str,
}

/// The join secret that all nodes may share.
pub const FLEET: SharedToken =
    SharedToken { name: "fleet token", key: "ingest.join_token_file", prefix: "csj_", setting: "join_token_sha256" };
/// For whoever asks how the sweeper gets on: `/metrics` and `/v1/scopes`. Agents have no use for it.
pub const OPERATOR: SharedToken = SharedToken {
    name: "operator token",
    key: "api.operator_token_file",
    prefix: "csp_",
    setting: "operator_token_sha256",
};

const CHALLENGE_SETTING: &str = "challenge_secret";

/// Why there is no fleet or operator token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the {name} file {} cannot be used; check `{key}`", path.display())]
    File {
        /// Which token.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// The key that names it.
        key: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file holds something too short to be a secret.
    #[error("the {name} in {} has fewer than {MIN_TOKEN_BYTES} characters; delete the file and a new one is made", path.display())]
    Short {
        /// Which token.
        name: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Two tokens that open different things are one.
    #[error("the {name} in {} is the fleet token, which every agent holds; delete the file and a new one is made", path.display())]
    Shared {
        /// Which token.
        name: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random(#[source] rand::rand_core::OsError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn random_token(prefix: &str) -> Result<String, rand::rand_core::OsError> {
    let mut bytes = [0_u8; 32];
    rand::rngs::OsRng.try_fill_bytes(&mut bytes)?;
    Ok(format!("{prefix}{}", hex::encode(bytes)))
}

/// A fresh join token, which admits one node once.
///
/// # Errors
/// If the system gives no random bytes.
pub fn join_token() -> Result<String, rand::rand_core::OsError> {
    random_token(ONCE_PREFIX)
}

/// A fresh token for somebody who may decide about plans.
///
/// # Errors
/// If the system gives no random bytes.
pub fn approver_token() -> Result<String, rand::rand_core::OsError> {
    random_token(APPROVER_PREFIX)
}

/// A fresh question to a node: 32 random hexadecimal digits.
///
/// # Errors
/// If the system gives no random bytes.
pub fn question() -> Result<String, rand::rand_core::OsError> {
    let mut bytes = [0_u8; 16];
    rand::rngs::OsRng.try_fill_bytes(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// A fresh token for one node.
pub(super) fn node_token() -> Result<String, Refusal> {
    random_token(NODE_PREFIX).map_err(|error| {
        tracing::error!(%error, "the system gave no random bytes");
        Refusal::new(Reason::Internal, "No token could be made; try again later.")
    })
}

/// Makes sure that there is a token: adopts the one in `file`, or makes one and writes it there, readable by its owner alone. Where
/// several sweepers share a database the first one makes it, and the others have no file.
///
/// # Errors
/// See [`TokenError`].
pub async fn establish(store: &Store, token: &SharedToken, file: &Path) -> Result<(), TokenError> {
    let SharedToken { name, key, prefix, setting } = *token;
    let path = || file.to_path_buf();
    let in_file = |source| TokenError::File { name, path: path(), key, source };
    let known = store.setting(setting).await?;
    match fs::read_to_string(file) {
        Ok(text) => {
            let given = text.trim();
            if given.len() < MIN_TOKEN_BYTES {
                return Err(TokenError::Short { name, path: path() });
            }
            let hash = TokenHash::of(given);
            if setting != FLEET.setting && store.setting(FLEET.setting).await?.as_deref() == Some(hash.as_str()) {
                return Err(TokenError::Shared { name, path: path() });
            }
            let mode = fs::metadata(file).map_err(in_file)?.permissions().mode();
            if mode & 0o077 != 0 {
                tracing::warn!(file = %file.display(), "the {name} can be read by others; run chmod 600");
            }
            if known.as_deref() != Some(hash.as_str()) {
                store.put_setting(setting, hash.as_str()).await?;
                if known.is_some() {
                    tracing::warn!(file = %file.display(), "the {name} has changed; the earlier one is void");
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && known.is_some() => {
            tracing::info!(file = %file.display(), "no {name} file here; the one that was made earlier stays valid");
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let fresh = random_token(prefix).map_err(TokenError::Random)?;
            // The file comes first: after a crash in between, the next start adopts it.
            write_private(file, &fresh).map_err(in_file)?;
            let hash = TokenHash::of(&fresh);
            if store.put_setting_if_absent(setting, hash.as_str()).await? == hash.as_str() {
                tracing::info!(file = %file.display(), "made the {name}");
            } else {
                fs::remove_file(file).map_err(in_file)?;
                tracing::info!("another sweeper made the {name} first");
            }
        }
        Err(error) => return Err(in_file(error)),
    }
    Ok(())
}

/// What challenges are made with; the first sweeper over a database makes it up.
pub(super) async fn challenge_key(store: &Store) -> Result<ChallengeKey, Refusal> {
    let fresh = random_token("").map_err(|error| {
        tracing::error!(%error, "the system gave no random bytes");
        Refusal::new(Reason::Internal, "No challenge can be made; try again later.")
    })?;
    Ok(ChallengeKey::new(&store.put_setting_if_absent(CHALLENGE_SETTING, &fresh).await?))
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    // Written whole under another name, so that no reader ever sees half a token.
    let part = path.with_extension("part");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&part, path)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let refuse = |detail: &str| Refusal::new(Reason::Unauthenticated, detail);
    let value =
        headers.get(header::AUTHORIZATION).ok_or_else(|| refuse("Send a header `Authorization: Bearer TOKEN`."))?;
    let text = value.to_str().map_err(|_| refuse("The Authorization header is not plain text."))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(refuse("The Authorization header must read `Bearer TOKEN`.")),
    }
}

fn is_same(given: &TokenHash, known: &str) -> bool {
    bool::from(given.as_str().as_bytes().ct_eq(known.as_bytes()))
}

/// Whether it is the shared token, by what the database said lately. Costs nothing, so that nobody who floods keeps its holder out.
fn is_remembered(token: &Remembered, given: &TokenHash) -> bool {
    token.lately().is_some_and(|known| is_same(given, &known))
}

async fn is_token(
    store: &Store,
    token: &SharedToken,
    given: &TokenHash,
    remembered: &Remembered,
) -> Result<bool, Refusal> {
    let asked = Instant::now();
    let known = store.setting(token.setting).await?.unwrap_or_default();
    let is_same = is_same(given, &known);
    remembered.keep(known, asked);
    Ok(is_same)
}

/// Lets only holders of the operator token pass: neither a node's token nor the join secret says which accounts there are.
pub(super) async fn require_operator(state: &AppState, headers: &HeaderMap) -> Result<(), Refusal> {
    let (strangers, remembered) = (&state.strangers().operators, &state.remembered().operator);
    let given = TokenHash::of(bearer(headers)?);
    if is_remembered(remembered, &given) {
        return Ok(());
    }
    strangers.may_look_up()?;
    if is_token(state.store(), &OPERATOR, &given, remembered).await? {
        return Ok(());
    }
    strangers.note();
    let detail = "This is not the operator token; `operator-token` in the sweeper's data directory (`api.operator_token_file`) holds the right one.";
    Err(Refusal::new(Reason::Unauthenticated, detail))
}

/// The join secret that a join shows. One without any may still prove a bound key, if it is signed.
pub(super) async fn join_secret(state: &AppState, headers: &HeaderMap) -> Result<JoinSecret, Refusal> {
    if headers.get(header::AUTHORIZATION).is_none() && headers.contains_key(SIGNATURE_HEADER) {
        return Ok(JoinSecret::None);
    }
    let (store, strangers, remembered) = (state.store(), &state.strangers().joining, &state.remembered().fleet);
    let token = bearer(headers)?;
    let given = TokenHash::of(token);
    if is_remembered(remembered, &given) {
        return Ok(JoinSecret::Fleet);
    }
    strangers.may_look_up()?;
    if is_token(store, &FLEET, &given, remembered).await? {
        return Ok(JoinSecret::Fleet);
    }
    if token.starts_with(ONCE_PREFIX) && store.is_join_token(&given).await? {
        return Ok(JoinSecret::Once(given));
    }
    strangers.note();
    let detail = "This is neither the fleet token (`join_token_file` on the sweeper's host holds it) nor a join token (`sweeper nodes \
        token` makes one).";
    Err(Refusal::new(Reason::Unauthenticated, detail))
}

const NOT_KNOWN: &str =
    "This node token is not known, has expired, or is void since the node joined anew or was revoked; join again.";

fn shown_node_token(headers: &HeaderMap) -> Result<TokenHash, Refusal> {
    let token = bearer(headers)?;
    if !token.starts_with(NODE_PREFIX) {
        return Err(Refusal::new(Reason::Unauthenticated, NOT_KNOWN));
    }
    Ok(TokenHash::of(token))
}

/// Lets only nodes pass. A token is looked up by its hash, so the time that takes tells nothing about it.
pub(super) async fn require_node(state: &AppState, headers: &HeaderMap) -> Result<(), Refusal> {
    let (token, strangers) = (shown_node_token(headers)?, &state.strangers().nodes);
    strangers.may_look_up()?;
    if state.store().node_by_token(&token).await?.is_some() {
        return Ok(());
    }
    strangers.note();
    Err(Refusal::new(Reason::Unauthenticated, NOT_KNOWN))
}

/// The node whose token the request carries, or carried when it was last looked up: see [`Ingest::receive`](crate::ingest::Ingest).
pub(super) async fn require_sender(state: &AppState, headers: &HeaderMap) -> Result<Sender, Refusal> {
    let (token, strangers) = (shown_node_token(headers)?, &state.strangers().nodes);
    if let Some(sender) = state.ingest().remembered(&token) {
        return Ok(sender);
    }
    strangers.may_look_up()?;
    if let Some(sender) = state.ingest().look_up(token).await? {
        return Ok(sender);
    }
    strangers.note();
    Err(Refusal::new(Reason::Unauthenticated, NOT_KNOWN))
}
