//! What becomes of a join, as a function of what is known and what is shown.
//!
//! A join is admitted if and only if it proves the key that is bound to the node, or, where none is bound, shows a join secret. A join that
//! shows a join secret for a node whose bound key it does not prove makes that node disputed. Without a join secret a stranger can do
//! neither.

use super::Attestation;

/// What is known of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held<'a> {
    /// It has no bound key: it never joined, has joined without one, or was revoked.
    Free,
    /// This key is bound to it.
    Bound {
        /// In hexadecimal digits.
        key: &'a str,
        /// How it is attested.
        attestation: Attestation,
    },
}

/// The join secret that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// None.
    None,
    /// The one that all nodes share.
    FleetToken,
    /// One that admits one node once.
    JoinToken,
}

impl Secret {
    fn attests(self) -> Attestation {
        match self {
            Self::None => Attestation::None,
            Self::FleetToken => Attestation::FleetToken,
            Self::JoinToken => Attestation::JoinToken,
        }
    }
}

/// What becomes of the join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The key is bound to the node from now on.
    Bind {
        /// As well as secret and evidence attest it.
        attestation: Attestation,
    },
    /// The node has proved its key.
    Renew {
        /// As before, or better.
        attestation: Attestation,
    },
    /// A node without a key, as old agents are: it gets a token that does not expire.
    Keyless,
    /// Refused, and the node is disputed from now on.
    Dispute,
    /// Refused: nobody without a bound key joins without a join secret.
    SecretRequired,
    /// Refused: a join token is exchanged for a bound key, and none is shown.
    KeyRequired,
}

/// Decides. `key` is proved, in hexadecimal digits; `evidence` is verified and speaks of this node.
#[must_use]
pub fn decide(held: Held<'_>, key: Option<&str>, secret: Secret, evidence: Option<Attestation>) -> Decision {
    let shown = evidence.map_or(secret.attests(), |evidence| secret.attests().or_stronger(evidence));
    match (held, key, secret) {
        (Held::Bound { key: bound, attestation }, Some(key), _) if key == bound => {
            Decision::Renew { attestation: attestation.or_stronger(shown) }
        }
        (_, _, Secret::None) => Decision::SecretRequired,
        (Held::Bound { .. }, _, _) => Decision::Dispute,
        (Held::Free, Some(_), _) => Decision::Bind { attestation: shown },
        (Held::Free, None, Secret::FleetToken) => Decision::Keyless,
        (Held::Free, None, Secret::JoinToken) => Decision::KeyRequired,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Attestation::{AwsIid, FleetToken, JoinToken};

    const BOUND: Held<'_> = Held::Bound { key: "a", attestation: FleetToken };

    #[test]
    fn the_bound_key_alone_admits_and_nothing_else_does() {
        for secret in [Secret::None, Secret::FleetToken] {
            assert_eq!(decide(BOUND, Some("a"), secret, None), Decision::Renew { attestation: FleetToken });
        }
        for (key, secret, evidence, decision) in [
            (Some("b"), Secret::None, None, Decision::SecretRequired),
            (None, Secret::None, None, Decision::SecretRequired),
            (Some("b"), Secret::FleetToken, None, Decision::Dispute),
            (Some("b"), Secret::JoinToken, None, Decision::Dispute),
            // The machine's own document says which machine it is, not who may speak for it.
            (Some("b"), Secret::FleetToken, Some(AwsIid), Decision::Dispute),
            (Some("b"), Secret::None, Some(AwsIid), Decision::SecretRequired),
            (None, Secret::FleetToken, None, Decision::Dispute),
        ] {
            assert_eq!(decide(BOUND, key, secret, evidence), decision, "{key:?} {secret:?} {evidence:?}");
        }
    }

    #[test]
    fn a_free_node_is_bound_by_whoever_shows_a_join_secret() {
        for (secret, evidence, attestation) in [
            (Secret::FleetToken, None, FleetToken),
            (Secret::FleetToken, Some(AwsIid), AwsIid),
            (Secret::JoinToken, None, JoinToken),
            (Secret::JoinToken, Some(AwsIid), AwsIid),
        ] {
            assert_eq!(decide(Held::Free, Some("a"), secret, evidence), Decision::Bind { attestation });
        }
        assert_eq!(decide(Held::Free, Some("a"), Secret::None, Some(AwsIid)), Decision::SecretRequired);
        assert_eq!(decide(Held::Free, None, Secret::FleetToken, None), Decision::Keyless);
        assert_eq!(decide(Held::Free, None, Secret::JoinToken, None), Decision::KeyRequired);
    }

    #[test]
    fn a_bound_node_that_shows_more_is_attested_better_and_never_worse() {
        let renewed = |secret, evidence| decide(BOUND, Some("a"), secret, evidence);
        assert_eq!(renewed(Secret::JoinToken, None), Decision::Renew { attestation: JoinToken });
        assert_eq!(renewed(Secret::FleetToken, Some(AwsIid)), Decision::Renew { attestation: AwsIid });
        let best = Held::Bound { key: "a", attestation: AwsIid };
        assert_eq!(decide(best, Some("a"), Secret::FleetToken, None), Decision::Renew { attestation: AwsIid });
    }
}
