//! How sure it is which machine a node runs on.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How a node proved which machine it is when its key was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attestation {
    /// Not at all: it was revoked and has not joined since.
    None,
    /// It holds the fleet token, as all nodes do: it may be any of them.
    FleetToken,
    /// It used a join token that admits one node once.
    JoinToken,
    /// EC2 signed its instance identity document.
    AwsIid,
    /// AWS answered to the session of its role.
    AwsSts,
    /// Google signed its instance identity token.
    GcpToken,
}

impl Attestation {
    /// All of them, weakest first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::FleetToken, Self::JoinToken, Self::AwsIid, Self::AwsSts, Self::GcpToken];

    /// The word for it, in the database and in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FleetToken => "fleet_token",
            Self::JoinToken => "join_token",
            Self::AwsIid => "aws_iid",
            Self::AwsSts => "aws_sts",
            Self::GcpToken => "gcp_token",
        }
    }

    /// Whether it tells this node from every other one. Nothing may ever be done to a machine on the word of a node that is not attested.
    #[must_use]
    pub fn is_attested(self) -> bool {
        !matches!(self, Self::None | Self::FleetToken)
    }

    /// Whether a cloud says which machine it is: nothing else attests it better.
    #[must_use]
    pub fn is_by_cloud(self) -> bool {
        matches!(self, Self::AwsIid | Self::AwsSts | Self::GcpToken)
    }

    /// The stronger of two. Of two clouds' words the first stays.
    #[must_use]
    pub fn or_stronger(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    fn rank(self) -> u8 {
        match self {
            Self::None => 0,
            Self::FleetToken => 1,
            Self::JoinToken => 2,
            Self::AwsIid | Self::AwsSts | Self::GcpToken => 3,
        }
    }
}

impl fmt::Display for Attestation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not attested (it has not joined since it was revoked)",
            Self::FleetToken => "not attested (it joined by the fleet token)",
            Self::JoinToken => "attested by a join token of its own",
            Self::AwsIid => "attested by EC2's signed instance identity document",
            Self::AwsSts => "attested by the session of its EC2 role",
            Self::GcpToken => "attested by Google's instance identity token",
        })
    }
}

/// A word that stands for no attestation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no attestation that this version knows")]
pub struct UnknownAttestation(String);

impl FromStr for Attestation {
    type Err = UnknownAttestation;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == word);
        found.ok_or_else(|| UnknownAttestation(word.to_owned()))
    }
}

/// Who speaks for a node, as a judgement needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// How it is attested.
    pub attestation: Attestation,
    /// Since when somebody else claims to be this node, in milliseconds since 1970-01-01 UTC; `None` if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputed_since_unix_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attestation_has_one_word_that_parses_back_and_is_its_json() {
        for one in Attestation::ALL {
            assert_eq!(one.as_str().parse(), Ok(one));
            assert_eq!(serde_json::to_value(one).ok(), Some(one.as_str().into()));
        }
        assert!("fleet".parse::<Attestation>().is_err());
    }

    #[test]
    fn only_what_tells_one_node_from_all_others_attests_it() {
        let attested = Attestation::ALL.map(Attestation::is_attested);
        assert_eq!(attested, [false, false, true, true, true, true]);
    }

    #[test]
    fn an_attestation_grows_and_never_shrinks() {
        assert_eq!(Attestation::FleetToken.or_stronger(Attestation::AwsIid), Attestation::AwsIid);
        assert_eq!(Attestation::AwsIid.or_stronger(Attestation::FleetToken), Attestation::AwsIid);
    }
}
