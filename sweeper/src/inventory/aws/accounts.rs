//! The accounts that are read: the caller's own, and each one that a role opens.
//!
//! An account counts as opened only once STS has said whose credentials these are. One that cannot be opened is a failed
//! listing and leaves the others alone.

use model::Provider;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use futures::{StreamExt, stream};

use super::{Options, Role, Session, failure, place::Place};
use crate::inventory::{
    Failure, FailureKind, Listing, Outcome, Scope,
    reader::{Api, Refused},
};

const REGIONS: Api = Api::ec2("ec2:DescribeRegions");

/// Every account that could be opened, and the failures of the others. Clients and buckets live as long as this value.
#[derive(Debug)]
pub struct Accounts {
    pub(super) options: Options,
    opened: BTreeMap<String, Account>,
    failed: Vec<Listing>,
}

#[derive(Debug)]
struct Account {
    session: Session,
    /// Empty: every region that is enabled.
    regions: Vec<String>,
    places: Mutex<BTreeMap<String, Arc<Place>>>,
}

/// What there is to read, and what could not be found out about it.
#[derive(Debug, Default)]
pub struct Discovered {
    /// Each can be read by itself.
    pub scopes: Vec<Scope>,
    /// Accounts of which nothing is known.
    pub failed: Vec<Listing>,
}

impl Accounts {
    /// Opens the caller's own account, if it is to be read, and assumes each role. Two calls of STS for each account.
    ///
    /// An account that has a role of its own in the options is read through that role alone.
    pub async fn open(base: &Session, options: &Options) -> Self {
        let mut opening = stream::iter(options.roles.clone())
            .map(|role| async move { (assumed(base, &role).await, role.regions) })
            .buffer_unordered(options.scopes_at_once.max(1));
        let (mut opened, mut failed) = (BTreeMap::new(), Vec::new());
        let mut take = |outcome: Result<(String, Session), Listing>, regions: Vec<String>| match outcome {
            Ok((id, session)) => {
                let regions = if regions.is_empty() { options.regions.clone() } else { regions };
                opened.entry(id).or_insert(Account { session, regions, places: Mutex::default() });
            }
            Err(listing) => failed.push(listing),
        };
        while let Some((outcome, regions)) = opening.next().await {
            take(outcome, regions);
        }
        if options.own_account {
            match own(base).await {
                Ok((id, _)) if options.roles.iter().any(|role| role.arn.account() == id) => {}
                outcome => take(outcome, Vec::new()),
            }
        }
        Self { options: options.clone(), opened, failed }
    }

    /// Each region of each account: those that are named or, where none is, those that are enabled.
    pub async fn scopes(&self) -> Discovered {
        let ids: Vec<String> = self.opened.keys().cloned().collect();
        let mut asking = stream::iter(ids)
            .map(|id| async move { (self.regions(&id).await, id) })
            .buffer_unordered(self.options.scopes_at_once.max(1));
        let mut discovered = Discovered { failed: self.failed.clone(), ..Discovered::default() };
        while let Some((regions, id)) = asking.next().await {
            let scope = |region| Scope { provider: Provider::Aws, account: id.clone(), region };
            match regions {
                Ok(regions) => discovered.scopes.extend(regions.into_iter().map(scope)),
                Err(why) => discovered.failed.push(nothing(Some(&id), REGIONS.name, why)),
            }
        }
        discovered.scopes.sort();
        discovered
    }

    /// Where to ask for a scope; none if its account is not opened here.
    pub(super) fn place(&self, scope: &Scope) -> Option<Arc<Place>> {
        let account = self.opened.get(&scope.account).filter(|_| scope.provider == Provider::Aws)?;
        Some(account.place(&scope.region, &self.options))
    }

    /// Whether EC2 is asked which regions an account has: where none are named.
    pub(super) fn looks_for_regions(&self, id: &str) -> bool {
        self.opened.get(id).is_some_and(|account| account.regions.is_empty())
    }

    async fn regions(&self, id: &str) -> Result<BTreeSet<String>, Failure> {
        let Some(account) = self.opened.get(id) else { return Ok(BTreeSet::new()) };
        if !account.regions.is_empty() {
            return Ok(account.regions.iter().cloned().collect());
        }
        let place = account.place(account.session.region(), &self.options);
        // One answer without pages.
        let regions = place.pages(
            REGIONS,
            |_| (),
            |_| {
                let request = place.ec2().describe_regions().all_regions(false);
                async move {
                    let regions = request.send().await.map_err(Refused::from)?.regions.unwrap_or_default();
                    Ok((regions.into_iter().filter_map(|region| region.region_name).collect(), None))
                }
            },
        );
        let regions: Vec<String> = regions.await?;
        if regions.is_empty() {
            return Err(Refused::malformed(format!("no region is enabled in account {id}")).why);
        }
        Ok(regions.into_iter().collect())
    }
}

impl Account {
    fn place(&self, region: &str, options: &Options) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Place::new(self.session.clone(), region, options.retry.clone()));
        Arc::clone(places.entry(region.to_owned()).or_insert_with(new))
    }
}

/// Nothing is known of an account, or of any if it is not known which one it is.
fn nothing(account: Option<&str>, what: &str, why: Failure) -> Listing {
    let outcome = Outcome::Failed { what: what.to_owned(), why };
    Listing { provider: Provider::Aws, account: account.map(str::to_owned), region: None, kind: None, outcome }
}

const IDENTITY: &str = "sts:GetCallerIdentity";

async fn own(base: &Session) -> Result<(String, Session), Listing> {
    let id = identity(base).await.map_err(|why| nothing(None, IDENTITY, why))?;
    Ok((id, base.clone()))
}

async fn assumed(base: &Session, role: &Role) -> Result<(String, Session), Listing> {
    let expected = role.arn.account();
    let session = base.assume(role).await.map_err(|why| {
        let message = format!("role {}: {}", role.arn, why.message);
        nothing(Some(expected), "sts:AssumeRole", Failure { message, ..why })
    })?;
    let id = identity(&session).await.map_err(|why| nothing(Some(expected), IDENTITY, why))?;
    if id != expected {
        let message =
            format!("the credentials of role {} are of account {id}, not of {expected}; correct `role_arn`", role.arn);
        return Err(nothing(Some(expected), IDENTITY, Failure { kind: FailureKind::Credentials, message }));
    }
    Ok((id, session))
}

/// Whose credentials these are.
async fn identity(session: &Session) -> Result<String, Failure> {
    let identity = session.sts().get_caller_identity().send().await.map_err(|error| failure::of(&error))?;
    identity.account.ok_or_else(|| Refused::malformed("the caller has no account").why)
}
