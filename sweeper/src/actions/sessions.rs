//! Credentials: those that read, as sweeps have them, and those of the role that acts, made for one action and one person.

use super::ActError;
use crate::{
    config::Config,
    inventory::{
        Failure, FailureKind, Scope,
        aws::{Accounts, Options, Session},
    },
};
use model::{Provider, ResourceKey};

/// What STS takes as a source identity.
const SOURCE_IDENTITY: std::ops::RangeInclusive<usize> = 2..=64;

/// How to come by credentials.
#[derive(Debug)]
pub(super) struct Sessions {
    options: Options,
}

impl Sessions {
    pub(super) fn new(config: &Config) -> Self {
        // One region is asked at a time, so that none need be listed.
        Self { options: config.aws.options() }
    }

    async fn base(&self) -> Result<Session, Failure> {
        Session::open(&self.options).await?.ok_or_else(|| Failure {
            kind: FailureKind::Credentials,
            message: "no credentials of AWS are found".to_owned(),
        })
    }

    /// The account of a resource, to read in, and no other.
    pub(super) async fn account(&self, on: &ResourceKey) -> Result<Accounts, ActError> {
        let base = self.base().await.map_err(|why| ActError::Provider { what: "opening AWS", why })?;
        let mut options = self.options.clone();
        options.roles.retain(|role| role.arn.account() == on.account);
        options.own_account &= options.roles.is_empty();
        Ok(Accounts::open(&base, &options).await)
    }

    /// Where a resource is, to act there in somebody's name.
    pub(super) async fn acting(
        &self,
        config: &Config,
        on: &ResourceKey,
        for_whom: &[String],
    ) -> Result<aws_sdk_ec2::Client, Failure> {
        let role = config.act.role(&on.account).ok_or_else(|| Failure {
            kind: FailureKind::Credentials,
            message: format!("no role acts in account {}; name one in `act.roles`", on.account),
        })?;
        let session = self.base().await?.act_as(&role, &source_identity(for_whom)).await.map_err(|why| {
            let message = format!("role {}: {}", role.arn, why.message);
            Failure { message, ..why }
        })?;
        Ok(session.ec2(&on.location))
    }
}

/// The scope of an instance of EC2.
pub(super) fn scope(on: &ResourceKey) -> Result<Scope, ActError> {
    let ResourceKey { provider, account, location: region, .. } = on.clone();
    if provider == Provider::Aws { Ok(Scope { provider, account, region }) } else { Err(ActError::Elsewhere) }
}

/// The people, as CloudTrail shall name them: as many as have room.
fn source_identity(people: &[String]) -> String {
    let is_taken = |c: &char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(*c);
    let text: String = people.join(",").chars().filter(is_taken).take(*SOURCE_IDENTITY.end()).collect();
    if text.len() < *SOURCE_IDENTITY.start() { format!("{text}--") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_named_in_words_that_sts_takes() {
        let of = |people: &[&str]| source_identity(&people.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["ada@example.com", "grace"]), "ada@example.com,grace");
        assert_eq!(of(&["a"]), "a--");
        assert_eq!(of(&[]), "--");
        assert_eq!(of(&["a/b c"]), "abc");
        assert_eq!(of(&[&"x".repeat(70)]).len(), 64);
    }
}
