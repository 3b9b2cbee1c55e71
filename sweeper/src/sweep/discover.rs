//! Which scopes there are to read, and what a share is swept with.
//!
//! A failure to find out is passed on to every known scope that it may concern: what is there is then *unknown*, never
//! gone. A scope that was found once and is named no more (a narrower `aws.regions`, another account) is asked of nobody:
//! its nodes are judged by their heartbeats alone.

use super::{Progress, share::Share};
use crate::{
    config::{AwsConfig, Enabled},
    inventory::{Failure, FailureKind, Inventory, Kind, Listing, Outcome, Provider, Scope, aws},
};
use std::collections::BTreeSet;

/// What could be found out.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    accounts: Option<aws::Accounts>,
    scopes: BTreeSet<Scope>,
    failed: Vec<Failing>,
}

#[derive(Debug)]
struct Failing {
    listing: Listing,
    /// True if no credentials were found where none are demanded: then it concerns only what was read before.
    only_known: bool,
}

/// What one share is swept with.
#[derive(Debug, PartialEq, Eq)]
enum Plan<'a> {
    Read(&'a Scope),
    Failed(&'a Listing),
    /// Nobody is asked.
    AskNobody,
}

impl Discovery {
    /// All scopes that were found.
    pub(super) fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    /// How many of these shares are read from a provider.
    pub(super) fn to_read<'a>(&self, shares: impl IntoIterator<Item = &'a Share>) -> usize {
        shares.into_iter().filter(|share| matches!(self.plan(share), Plan::Read(_))).count()
    }

    fn plan<'a>(&'a self, share: &'a Share) -> Plan<'a> {
        let failing = |concerns: &dyn Fn(&Failing) -> bool| {
            let failing = self.failed.iter().find(|failing| concerns(failing));
            failing.map_or(Plan::AskNobody, |failing| Plan::Failed(&failing.listing))
        };
        match share {
            Share::Scope(scope) if self.scopes.contains(scope) => Plan::Read(scope),
            Share::Scope(Scope { provider, account, region }) => {
                failing(&|failing| failing.listing.may_speak_of(*provider, account, region, Kind::Instance))
            }
            Share::Uncovered => failing(&|failing| !failing.only_known),
        }
    }

    /// Where and how more can be asked of a share that AWS is read for; none if it is not.
    pub(super) fn aws<'a>(&'a self, share: &'a Share) -> Option<(&'a aws::Accounts, &'a Scope)> {
        match (self.plan(share), &self.accounts) {
            (Plan::Read(scope), Some(accounts)) => Some((accounts, scope)),
            _ => None,
        }
    }

    /// The inventory of one share. Whatever failed is in its listings.
    pub(super) async fn inventory(&self, share: &Share, progress: &dyn Progress) -> Inventory {
        match (self.plan(share), &self.accounts) {
            (Plan::Read(scope), Some(accounts)) => aws::read(accounts, scope, progress).await,
            (Plan::Failed(listing), _) => Inventory::failed(listing.clone()),
            _ => Inventory::default(),
        }
    }
}

/// Finds credentials and, with them, the scopes.
pub(super) async fn discover(config: &AwsConfig) -> Discovery {
    if config.enabled == Enabled::No {
        return Discovery::default();
    }
    let options = config.options();
    let no_credentials = |why, only_known| {
        let outcome = Outcome::Failed { what: "finding credentials".to_owned(), why };
        let listing = Listing { provider: Provider::Aws, account: None, region: None, kind: None, outcome };
        Discovery { failed: vec![Failing { listing, only_known }], ..Discovery::default() }
    };
    let none = |message: &str| Failure { kind: FailureKind::Credentials, message: message.to_owned() };
    let session = match aws::Session::open(&options).await {
        Ok(Some(session)) => session,
        Ok(None) if config.enabled == Enabled::Auto => {
            let message = "none found any more; set AWS_PROFILE or another standard variable as before, or \
                           `aws.enabled = \"no\"` if AWS is to be read no more";
            return no_credentials(none(message), true);
        }
        Ok(None) => {
            let message = "none found; set AWS_PROFILE or another standard variable, or `aws.enabled = \"no\"`";
            return no_credentials(none(message), false);
        }
        Err(why) => return no_credentials(why, false),
    };
    let accounts = aws::Accounts::open(&session, &options).await;
    let found = accounts.scopes().await;
    Discovery {
        scopes: found.scopes.into_iter().collect(),
        accounts: Some(accounts),
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
        let (found, gone) = (Share::Scope(scope("123456789012")), Share::Scope(scope("999999999999")));
        let discovery = Discovery { scopes: [scope("123456789012")].into(), ..Discovery::default() };
        assert_eq!(discovery.plan(&found), Plan::Read(&scope("123456789012")));
        assert_eq!(discovery.plan(&gone), Plan::AskNobody);
        assert_eq!(discovery.plan(&Share::Uncovered), Plan::AskNobody);
        assert_eq!(discovery.to_read([&found, &gone, &Share::Uncovered]), 1);
    }

    #[test]
    fn a_failure_concerns_every_known_scope_that_it_may_have_been_about() {
        let (known, other) = (Share::Scope(scope("123456789012")), Share::Scope(scope("999999999999")));
        let everything = failed(None, false);
        for share in [&known, &other, &Share::Uncovered] {
            assert!(matches!(everything.plan(share), Plan::Failed(_)), "{share}");
        }
        let one_account = failed(Some("123456789012"), false);
        assert!(matches!(one_account.plan(&known), Plan::Failed(_)));
        assert_eq!(one_account.plan(&other), Plan::AskNobody);
    }

    #[test]
    fn credentials_that_were_never_there_fail_nothing_and_those_that_went_fail_what_they_read() {
        let went = failed(None, true);
        assert!(matches!(went.plan(&Share::Scope(scope("123456789012"))), Plan::Failed(_)));
        assert_eq!(went.plan(&Share::Uncovered), Plan::AskNobody);
    }
}
