//! Which rules are in force: the built-in ones, those of a local file, or those that the sweeper serves.
//!
//! A local file (`rules_file`) wins and is read again when it has changed and two checks in a row find it the same: half of a file
//! that is being copied may be a rules file as well. Without one, the sweeper's file is taken over as it comes and kept in the state
//! directory for the next start. A file that is refused changes nothing: the rules before it stay, the capability
//! `rules` says line and reason, and `detail_rules_refused` counts it. Whoever measures asks once per sample, so that no
//! sample mixes two sets. Cost: one `stat` per sample with a local file, nothing without.

mod file;

pub use file::read;

use crate::coverage::{Capabilities, Status};
use file::Stamp;
use heartbeat::api::RulesOffer;
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use workload_rules::Rules;

/// Name of the sweeper's file in the state directory.
const KEPT: &str = "rules.toml";

/// Where rules come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They are a part of this agent.
    BuiltIn,
    /// The file that the configuration names.
    Local(PathBuf),
    /// The sweeper's, kept here.
    Served(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built into this agent"),
            Self::Local(path) => write!(f, "from {}", path.display()),
            Self::Served(path) => write!(f, "from the sweeper, kept in {}", path.display()),
        }
    }
}

/// Keeps the rules in force.
#[derive(Debug)]
pub struct RulesStore {
    local: Option<PathBuf>,
    kept: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rules: Arc<Rules>,
    origin: Origin,
    /// SHA-256 of the served file in force.
    sha256: String,
    /// Why the last file is not in force.
    trouble: Option<String>,
    /// SHA-256 of the served file that was refused last: it is not asked for again.
    refused_sha256: String,
    refused: u64,
    /// The local file at the last check.
    seen: Stamp,
    /// The local file when it was read last.
    stamp: Stamp,
}

impl RulesStore {
    /// Begins with the local file, else with what the sweeper last served, else with the built-in rules.
    #[must_use]
    pub fn start(local: Option<&Path>, state_dir: &Path) -> Self {
        let state = State {
            rules: workload_rules::built_in(),
            origin: Origin::BuiltIn,
            sha256: String::new(),
            trouble: None,
            refused_sha256: String::new(),
            refused: 0,
            seen: Stamp::default(),
            stamp: Stamp::default(),
        };
        let rules_store =
            Self { local: local.map(Path::to_owned), kept: state_dir.join(KEPT), state: Mutex::new(state) };
        if rules_store.local.is_some() {
            rules_store.check();
        } else if let Some(bytes) = file::read_if_there(&rules_store.kept) {
            rules_store.accept(&bytes, Origin::Served(rules_store.kept.clone()));
        }
        rules_store
    }

    /// The rules in force now. A local file that has changed is read first.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.check();
        Arc::clone(&self.state().rules)
    }

    /// Where they come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.state().origin.clone()
    }

    /// SHA-256 of the served file in force, in hexadecimal digits; empty if the rules come from elsewhere.
    #[must_use]
    pub fn sha256(&self) -> String {
        self.state().sha256.clone()
    }

    /// Files that were refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.state().refused
    }

    /// Says how the capability `rules` stands.
    pub fn report(&self, capabilities: &mut Capabilities) {
        match &self.state().trouble {
            None => capabilities.ok("rules"),
            Some(trouble) => capabilities.set("rules", Status::Broken, trouble.clone()),
        }
    }

    /// Hears what the sweeper offers; true if its file should be fetched.
    #[must_use]
    pub fn hear(&self, offer: Option<&RulesOffer>) -> bool {
        if self.local.is_some() {
            return false;
        }
        let mut state = self.state();
        match offer {
            None => false,
            Some(RulesOffer::BuiltIn) => {
                if matches!(state.origin, Origin::Served(_)) {
                    file::forget(&self.kept);
                    state.rules = workload_rules::built_in();
                    state.origin = Origin::BuiltIn;
                    state.sha256.clear();
                    tracing::info!(
                        version = state.rules.version,
                        "the sweeper serves no rules any more: built-in rules hold"
                    );
                }
                state.trouble = None;
                state.refused_sha256.clear();
                false
            }
            Some(RulesOffer::File { sha256, .. }) if *sha256 == state.sha256 => {
                state.trouble = None;
                state.refused_sha256.clear();
                false
            }
            Some(RulesOffer::File { sha256, .. }) => *sha256 != state.refused_sha256,
        }
    }

    /// Takes over a file that the sweeper served, if it is acceptable, and keeps it for the next start.
    pub fn take(&self, bytes: &[u8]) {
        if self.accept(bytes, Origin::Served(self.kept.clone()))
            && let Err(error) = file::keep(&self.kept, bytes)
        {
            tracing::warn!(file = %self.kept.display(), %error, "the sweeper's rules are not kept for the next start");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked left whole values behind: each is assigned at once.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the local file if it has changed and does not change any more; at the start at once.
    fn check(&self) {
        let Some(path) = &self.local else { return };
        let stamp = Stamp::of(path);
        {
            let mut state = self.state();
            let is_at_rest = std::mem::replace(&mut state.seen, stamp.clone()) == stamp;
            if state.stamp == stamp || !(is_at_rest || state.stamp == Stamp::Unseen) {
                return;
            }
        }
        let file = read(path);
        if Stamp::of(path) != stamp {
            return;
        }
        self.state().stamp = stamp;
        match file {
            Ok(bytes) => _ = self.accept(&bytes, Origin::Local(path.clone())),
            Err(error) => self.refuse(&Origin::Local(path.clone()), &format!("it cannot be read: {error}")),
        }
    }

    fn accept(&self, bytes: &[u8], origin: Origin) -> bool {
        let sha256 = hex::encode(Sha256::digest(bytes));
        match workload_rules::parse(bytes) {
            Ok(rules) => {
                let mut state = self.state();
                tracing::info!(version = rules.version, before = state.rules.version, %origin, "rules are in force");
                state.sha256 = if matches!(origin, Origin::Served(_)) { sha256 } else { String::new() };
                // The same rules in other words are not news to whoever measures.
                if *state.rules != rules {
                    state.rules = Arc::new(rules);
                }
                state.origin = origin;
                state.trouble = None;
                state.refused_sha256.clear();
                true
            }
            Err(error) => {
                self.state().refused_sha256 = sha256;
                self.refuse(&origin, &error.to_string());
                false
            }
        }
    }

    fn refuse(&self, origin: &Origin, why: &str) {
        let mut state = self.state();
        let version = &state.rules.version;
        tracing::error!(%origin, why, version, "a rules file is refused; the rules before it stay in force");
        let whose = match origin {
            Origin::Served(_) => "the sweeper's file".to_owned(),
            other => format!("the file {other}").replace("the file from ", ""),
        };
        state.trouble = Some(format!("{whose} is refused: {why}; version {version} stays in force"));
        state.refused = state.refused.saturating_add(1);
    }
}

/// Tells rules from others that sort processes otherwise, whatever version they bear: the first 16 hexadecimal digits of a SHA-256, as the heartbeat
/// has it; empty if there is none.
#[must_use]
pub fn digest(rules: &Rules) -> String {
    // It holds sorted sets and lists alone, and always serializes. No digest is equal to none.
    let Ok(bytes) = serde_json::to_vec(&rules.housekeeping) else { return String::new() };
    let mut digest = hex::encode(Sha256::digest(bytes));
    digest.truncate(16);
    digest
}

#[cfg(test)]
mod tests;
