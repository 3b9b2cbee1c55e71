//! Which scopes there are to read, and what a work unit is swept with.
//!
//! A failure to find out is passed on to every known scope that it may concern: what is there is then *unknown*, never
//! gone. A scope that was found once and is named no more (a narrower `aws.regions`, another account) is asked of nobody:
//! its nodes are judged by their heartbeats alone.

use super::{NotAsked, Progress};
use crate::{
    config::{AwsConfig, Config, Enabled, GcpConfig},
    inventory::{Failure, FailureKind, Inventory, Listing, Outcome, Scope, aws, gcp},
    work_unit::WorkUnit,
};
use model::{Provider, ResourceKind};
use std::collections::BTreeSet;

/// What could be found out.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    accounts: Option<aws::Accounts>,
    google: Option<gcp::Session>,
    scopes: BTreeSet<Scope>,
    failed: Vec<Failing>,
}

#[derive(Debug)]
struct Failing {
    listing: Listing,
    /// True if no credentials were found where none are demanded: then it concerns only what was read before.
    only_known: bool,
}

/// What one work unit is swept with.
#[derive(Debug, PartialEq, Eq)]
enum Plan<'a> {
    Read(&'a Scope),
    Failed(Vec<&'a Listing>),
    /// Nobody is asked.
    AskNobody,
}

impl Discovery {
    /// All scopes that were found.
    pub(super) fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    /// How many of these work units are read from a provider.
    pub(super) fn to_read<'a>(&self, units: impl IntoIterator<Item = &'a WorkUnit>) -> usize {
        units.into_iter().filter(|unit| matches!(self.plan(unit), Plan::Read(_))).count()
    }

    /// Who is not asked, for want of credentials that nobody demands. Of a provider that was read before, its work units fail instead.
    pub(super) fn not_asked(&self, units: &[WorkUnit]) -> Vec<NotAsked> {
        let is_known = |listing: &Listing| {
            units.iter().any(|unit| matches!(unit, WorkUnit::Scope(scope) if scope.provider == listing.provider))
        };
        let unasked = self.failed.iter().filter(|failing| failing.only_known && !is_known(&failing.listing));
        let why = |failing: &Failing| match &failing.listing.outcome {
            Outcome::Failed { what, why } => format!("{what}: {}", why.message),
            Outcome::Complete { .. } => String::new(),
        };
        unasked.map(|it| NotAsked { provider: it.listing.provider.as_str().to_owned(), why: why(it) }).collect()
    }

    fn plan<'a>(&'a self, unit: &'a WorkUnit) -> Plan<'a> {
        let failing = |concerns: &dyn Fn(&Failing) -> bool| {
            let failing = self.failed.iter().filter(|failing| concerns(failing));
            let listings: Vec<&Listing> = failing.map(|failing| &failing.listing).collect();
            if listings.is_empty() { Plan::AskNobody } else { Plan::Failed(listings) }
        };
        match unit {
            WorkUnit::Scope(scope) if self.scopes.contains(scope) => Plan::Read(scope),
            WorkUnit::Scope(Scope { provider, account, region }) => {
                failing(&|failing| failing.listing.may_speak_of(*provider, account, region, ResourceKind::Instance))
            }
            WorkUnit::Uncovered => failing(&|failing| !failing.only_known),
        }
    }

    /// Where and how more can be asked of a work unit that AWS is read for; none if it is not.
    pub(super) fn aws<'a>(&'a self, unit: &'a WorkUnit) -> Option<(&'a aws::Accounts, &'a Scope)> {
        match (self.plan(unit), &self.accounts) {
            (Plan::Read(scope @ Scope { provider: Provider::Aws, .. }), Some(accounts)) => Some((accounts, scope)),
            _ => None,
        }
    }

    /// The inventory of one work unit. Whatever failed is in its listings.
    pub(super) async fn inventory(&self, unit: &WorkUnit, progress: &dyn Progress) -> Inventory {
        match (self.plan(unit), &self.accounts, &self.google) {
            (Plan::Read(scope @ Scope { provider: Provider::Aws, .. }), Some(accounts), _) => {
                aws::read(accounts, scope, progress).await
            }
            (Plan::Read(scope @ Scope { provider: Provider::Gcp, .. }), _, Some(session)) => {
                gcp::read(session, scope, progress).await
            }
            (Plan::Failed(listings), ..) => {
                Inventory { listings: listings.into_iter().cloned().collect(), ..Inventory::default() }
            }
            _ => Inventory::default(),
        }
    }
}

/// Finds the credentials of every provider and, with them, the scopes.
pub(super) async fn discover(config: &Config) -> Discovery {
    let (mut aws, gcp) = futures::join!(discover_aws(&config.aws), discover_gcp(&config.gcp));
    aws.google = gcp.google;
    aws.scopes.extend(gcp.scopes);
    aws.failed.extend(gcp.failed);
    aws
}

async fn discover_gcp(config: &GcpConfig) -> Discovery {
    if config.enabled == Enabled::No || config.projects.is_empty() {
        return Discovery::default();
    }
    let options = config.options();
    let (why, only_known) = match gcp::Session::open(&options).await {
        Ok(Some(session)) => {
            let scopes = options.scopes().into_iter().collect();
            return Discovery { google: Some(session), scopes, ..Discovery::default() };
        }
        Ok(None) => {
            let message = "none found; set GOOGLE_APPLICATION_CREDENTIALS or run `gcloud auth application-default login`, or \
                           set `gcp.enabled = \"no\"` if Google Cloud is not to be read";
            let why = Failure { kind: FailureKind::Credentials, message: message.to_owned() };
            (why, config.enabled == Enabled::Auto)
        }
        Err(why) => (why, false),
    };
    let outcome = Outcome::Failed { what: "finding credentials".to_owned(), why };
    let listing = Listing { provider: Provider::Gcp, account: None, region: None, kind: None, outcome };
    Discovery { failed: vec![Failing { listing, only_known }], ..Discovery::default() }
}

async fn discover_aws(config: &AwsConfig) -> Discovery {
    if config.enabled == Enabled::No {
        return Discovery::default();
    }
    let options = config.options();
    let no_credentials = |why, only_known| {
        let outcome = Outcome::Failed { what: "finding credentials".to_owned(), why };
        let listing = Listing { provider: Provider::Aws, account: None, region: None, kind: None, outcome };
        Discovery { failed: vec![Failing { listing, only_known }], ..Discovery::default() }
    };
    let message = "none found; set AWS_PROFILE or another standard variable, or `aws.enabled = \"no\"` if AWS is not to be read \
                   (SWEEPER_LOG=aws_config=debug tells where they were looked for)";
    let none = Failure { kind: FailureKind::Credentials, message: message.to_owned() };
    let session = match aws::Session::open(&options).await {
        Ok(Some(session)) => session,
        Ok(None) => return no_credentials(none, config.enabled == Enabled::Auto),
        Err(why) => return no_credentials(why, false),
    };
    let accounts = aws::Accounts::open(&session, &options).await;
    let found = accounts.scopes().await;
    Discovery {
        scopes: found.scopes.into_iter().collect(),
        accounts: Some(accounts),
        google: None,
        failed: found.failed.into_iter().map(|listing| Failing { listing, only_known: false }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(account: &str) -> Scope {
        Scope { provider: Provider::Aws, account: account.into(), region: "eu-central-1".into() }
    }

    fn failed(account: Option<&str>, only_known: bool) -> Discovery {
        let why = Failure { kind: FailureKind::Throttled, message: String::new() };
        let outcome = Outcome::Failed { what: "ec2:DescribeRegions".into(), why };
        let account = account.map(str::to_owned);
        let listing = Listing { provider: Provider::Aws, account, region: None, kind: None, outcome };
        Discovery { failed: vec![Failing { listing, only_known }], ..Discovery::default() }
    }

    #[test]
    fn what_is_found_is_read_and_what_is_named_no_more_is_asked_of_nobody() {
        let (found, gone) = (WorkUnit::Scope(scope("123456789012")), WorkUnit::Scope(scope("999999999999")));
        let discovery = Discovery { scopes: [scope("123456789012")].into(), ..Discovery::default() };
        assert_eq!(discovery.plan(&found), Plan::Read(&scope("123456789012")));
        assert_eq!(discovery.plan(&gone), Plan::AskNobody);
        assert_eq!(discovery.plan(&WorkUnit::Uncovered), Plan::AskNobody);
        assert_eq!(discovery.to_read([&found, &gone, &WorkUnit::Uncovered]), 1);
    }

    #[test]
    fn a_failure_concerns_every_known_scope_that_it_may_have_been_about() {
        let (known, other) = (WorkUnit::Scope(scope("123456789012")), WorkUnit::Scope(scope("999999999999")));
        let everything = failed(None, false);
        for unit in [&known, &other, &WorkUnit::Uncovered] {
            assert!(matches!(everything.plan(unit), Plan::Failed(_)), "{unit}");
        }
        let one_account = failed(Some("123456789012"), false);
        assert!(matches!(one_account.plan(&known), Plan::Failed(_)));
        assert_eq!(one_account.plan(&other), Plan::AskNobody);
    }

    #[test]
    fn credentials_that_were_never_there_fail_nothing_and_those_that_went_fail_what_they_read() {
        let went = failed(None, true);
        assert!(matches!(went.plan(&WorkUnit::Scope(scope("123456789012"))), Plan::Failed(_)));
        assert_eq!(went.plan(&WorkUnit::Uncovered), Plan::AskNobody);

        assert_eq!(went.not_asked(&[WorkUnit::Uncovered]).len(), 1);
        assert_eq!(went.not_asked(&[WorkUnit::Scope(scope("123456789012"))]), [], "its scopes fail");
        assert_eq!(failed(None, false).not_asked(&[]), [], "credentials are demanded, or were refused");
    }
}
