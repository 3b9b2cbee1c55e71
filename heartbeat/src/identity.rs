//! Who a node is and which boot of it speaks.

use std::{fmt, str::FromStr};

/// Names one node for good: the provider's own key of the machine, or a hash of the machine id.
///
/// Text form: `aws:ACCOUNT:REGION:INSTANCE`, `gcp:PROJECT:ZONE:INSTANCE` or `host:HASH`, at most [`NodeId::MAX_LEN`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeId {
    /// An EC2 instance.
    Aws {
        /// Twelve digits.
        account: String,
        /// For example `eu-central-1`.
        region: String,
        /// For example `i-0123456789abcdef0`.
        instance: String,
    },
    /// A Compute Engine instance.
    Gcp {
        /// The project's id (not its number).
        project: String,
        /// For example `europe-west3-a`.
        zone: String,
        /// The numeric instance id.
        instance: String,
    },
    /// A machine that no provider vouches for.
    Host {
        /// 32 lower-case hexadecimal digits: a keyed hash of the machine id, which itself never leaves the host.
        hash: String,
    },
}

/// Why a text is not a node id or boot id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The text has another shape.
    #[error("`{0}` is not a node id; expected aws:ACCOUNT:REGION:INSTANCE, gcp:PROJECT:ZONE:INSTANCE or host:HASH")]
    NodeId(String),
    /// The text is not a UUID.
    #[error("`{0}` is not a boot id; expected a UUID as in /proc/sys/kernel/random/boot_id")]
    BootId(String),
}

impl NodeId {
    /// Longest accepted text form, in bytes.
    pub const MAX_LEN: usize = 160;
}

fn is_part(text: &str, also: &[char]) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || also.contains(&c))
}

impl FromStr for NodeId {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // At most 64 characters of a hostile text are repeated in the error.
        let refuse = || IdentityError::NodeId(text.chars().take(64).collect::<String>().escape_debug().to_string());
        if text.len() > Self::MAX_LEN {
            return Err(refuse());
        }
        // A project id may itself hold one colon (`example.com:project`), so GCP is split from the right.
        match text.split_once(':') {
            Some(("aws", rest)) => match rest.split(':').collect::<Vec<_>>()[..] {
                [account, region, instance]
                    if account.len() == 12
                        && account.bytes().all(|b| b.is_ascii_digit())
                        && is_part(region, &[])
                        && instance.strip_prefix("i-").is_some_and(|id| is_part(id, &[])) =>
                {
                    Ok(Self::Aws { account: account.into(), region: region.into(), instance: instance.into() })
                }
                _ => Err(refuse()),
            },
            Some(("gcp", rest)) => match rest.rsplitn(3, ':').collect::<Vec<_>>()[..] {
                [instance, zone, project]
                    if is_part(project, &['.', ':'])
                        && is_part(zone, &[])
                        && !instance.is_empty()
                        && instance.bytes().all(|b| b.is_ascii_digit()) =>
                {
                    Ok(Self::Gcp { project: project.into(), zone: zone.into(), instance: instance.into() })
                }
                _ => Err(refuse()),
            },
            Some(("host", hash))
                if hash.len() == 32 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) =>
            {
                Ok(Self::Host { hash: hash.into() })
            }
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aws { account, region, instance } => write!(f, "aws:{account}:{region}:{instance}"),
            Self::Gcp { project, zone, instance } => write!(f, "gcp:{project}:{zone}:{instance}"),
            Self::Host { hash } => write!(f, "host:{hash}"),
        }
    }
}

/// One boot of a node's kernel, as `/proc/sys/kernel/random/boot_id` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BootId(pub uuid::Uuid);

impl FromStr for BootId {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        uuid::Uuid::parse_str(text.trim())
            .map(Self)
            .map_err(|_| IdentityError::BootId(text.chars().take(64).collect::<String>().escape_debug().to_string()))
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
serde_as_text!(NodeId);
serde_as_text!(BootId);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_node_id_survives_a_round_trip() {
        for text in [
            "aws:123456789012:eu-central-1:i-0123456789abcdef0",
            "gcp:my-project:europe-west3-a:1234567890123456789",
            "gcp:example.com:my-project:europe-west3-a:42",
            "host:0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(text.parse::<NodeId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_not_a_node_id_is_refused() {
        for text in [
            "",
            "host:",
            "host:0123456789ABCDEF0123456789ABCDEF",
            "aws:12:eu-central-1:i-1",
            "aws:123456789012:eu-central-1:mi-1",
            "aws:123456789012::i-1",
            "aws:123456789012:eu-central-1:i-1:x",
            "gcp:p:z:abc",
            "azure:1:2:3",
        ] {
            assert!(text.parse::<NodeId>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_accepted_texts_are_canonical(text in ".{0,200}") {
            if let Ok(id) = text.parse::<NodeId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
