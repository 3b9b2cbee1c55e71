//! Credentials: those that read, as sweeps have them, and those of the role that acts, made for one action and one person.

use super::{
    ActError, compute_engine,
    ec2::Clients,
    provider::{Acting, Asked},
};
use crate::{
    config::Config,
    inventory::{
        Failure, FailureKind,
        aws::{Accounts, Options, Session},
        gcp,
    },
};
use model::{Provider, ResourceKey};

/// What STS takes as a source identity.
const SOURCE_IDENTITY: std::ops::RangeInclusive<usize> = 2..=64;

/// How to come by credentials.
#[derive(Debug)]
pub(super) struct Sessions {
    options: Options,
    google: gcp::Options,
}

impl Sessions {
    pub(super) fn new(config: &Config) -> Self {
        // One region is asked at a time, so that none need be listed.
        Self { options: config.aws.options(), google: config.gcp.options() }
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

    /// Who is asked where a machine is.
    pub(super) async fn asked(&self, on: &ResourceKey) -> Result<Asked, ActError> {
        if on.provider != Provider::Gcp {
            return Ok(Asked::Aws(Box::new(self.account(on).await?)));
        }
        let opened = gcp::Session::open(&self.google).await.and_then(|session| {
            session.ok_or_else(|| Failure {
                kind: FailureKind::Credentials,
                message: "no credentials of Google Cloud are found".to_owned(),
            })
        });
        opened.map(Asked::Google).map_err(|why| ActError::Provider { what: "opening Google Cloud", why })
    }

    /// Where a machine is, to act there in somebody's name.
    pub(super) async fn acts(&self, config: &Config, on: &ResourceKey, for_whom: &[String]) -> Result<Acting, Failure> {
        if on.provider != Provider::Gcp {
            return Ok(Acting::Ec2(Box::new(self.acting(config, on, for_whom).await?)));
        }
        let act = config.act.project(&on.account).ok_or_else(|| Failure {
            kind: FailureKind::Credentials,
            message: format!("nobody acts in project {}; name who does in `act.projects`", on.account),
        })?;
        compute_engine::Client::open(act, &self.google, for_whom).await.map(Acting::ComputeEngine)
    }

    /// Where a resource of AWS is, to act there in somebody's name.
    pub(super) async fn acting(
        &self,
        config: &Config,
        on: &ResourceKey,
        for_whom: &[String],
    ) -> Result<Clients, Failure> {
        let role = config.act.role(&on.account).ok_or_else(|| Failure {
            kind: FailureKind::Credentials,
            message: format!("no role acts in account {}; name one in `act.roles`", on.account),
        })?;
        let session = self.base().await?.act_as(&role, &source_identity(for_whom)).await.map_err(|why| {
            let message = format!("role {}: {}", role.arn, why.message);
            Failure { message, ..why }
        })?;
        let region = &on.location;
        Ok(Clients { ec2: session.ec2(region), autoscaling: session.autoscaling(region), batch: session.batch(region) })
    }
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
