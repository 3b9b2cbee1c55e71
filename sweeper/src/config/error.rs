//! What can be wrong with a configuration, each in one line that names the place, the key and what to write instead.

use std::{fmt, path::PathBuf};

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration file.
    File(PathBuf),
    /// An environment variable, by name.
    Environment(String),
    /// Neither: the built-in default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Default => f.write_str("configuration"),
        }
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not valid TOML: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser expected.
        reason: String,
    },
    /// A key that does not exist.
    #[error("{origin}: unknown key `{key}`; the nearest valid key is `{nearest}`")]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// The key as written.
        key: String,
        /// The valid key that resembles it most.
        nearest: String,
    },
    /// A key whose value cannot be used.
    #[error("{origin}: key `{key}`: {reason}")]
    WrongValue {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// The file that a `…_file` key names cannot be read.
    #[error("{origin}: key `{key}`: {} cannot be read: {source}", path.display())]
    SecretFile {
        /// Where the key stands.
        origin: Origin,
        /// The key.
        key: String,
        /// The file that it names.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}
