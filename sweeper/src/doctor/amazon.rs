//! AWS: whose credentials these are, which accounts they open, and what is allowed in each.

use super::{Check, Part, Status};
use crate::{
    actions::{Rehearsal, Terminates, rehearse, rehearse_jobs},
    config::{ActConfig, Config, Enabled, PricingSource},
    inventory::{
        Failure, Outcome, Scope,
        aws::{Accounts, Allowed, Besides, Permission, Session, permissions, some_jobs, some_machines},
    },
    pricing,
};
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;

/// So many accounts are looked at side by side.
const AT_ONCE: usize = 8;
/// So many machines are tried until one may be stopped: a role that acts on tagged machines alone is refused for the others.
const TRIED: usize = 20;

/// The credentials and each account, in one of its regions.
pub(super) async fn read_rights(config: &Config) -> (Vec<Check>, Option<Session>) {
    let part = Part::Aws;
    if config.aws.enabled == Enabled::No {
        return (vec![Check::off(part, "accounts", "AWS is not read (`aws.enabled`)", "")], None);
    }
    let options = config.aws.options();
    let remedy = "set AWS_PROFILE or another standard variable, or `aws.enabled = \"no\"` (SWEEPER_LOG=aws_config=debug tells where they were looked for)";
    let session = match Session::open(&options).await {
        Ok(Some(session)) => session,
        Ok(None) if config.aws.enabled == Enabled::Auto => {
            return (vec![Check::off(part, "credentials", "none are found: AWS is not read", remedy)], None);
        }
        Ok(None) => return (vec![broken(part, "credentials", "none are found", remedy)], None),
        Err(why) => return (vec![broken(part, "credentials", why.to_string(), remedy)], None),
    };
    let accounts = Accounts::open(&session, &options).await;
    let discovered = accounts.scopes().await;
    let mut all = vec![Check::ok(part, "credentials", "found")];
    all.extend(discovered.failed.iter().filter_map(|listing| match &listing.outcome {
        Outcome::Failed { what, why } => {
            let account = listing.account.as_deref().unwrap_or("own account");
            Some(broken(part, account, format!("{what}: {why}"), "docs/operations.md#read-several-aws-accounts"))
        }
        Outcome::Complete { .. } => None,
    }));
    let besides = |account: &str| Besides {
        cloudwatch: config.aws.cloudwatch,
        cloudtrail: config.aws.cloudtrail,
        acting: config.act.role(account).is_some(),
        ending: config.act.end_members,
    };
    let accounts = &accounts;
    let looked_at: Vec<_> = stream::iter(one_region_each(&discovered.scopes, &config.act))
        .map(|(scope, regions)| async move {
            match permissions(accounts, &scope, besides(&scope.account)).await {
                Some(found) => account(&scope, regions, &found),
                None => vec![broken(part, &scope.account, "it could be opened, and is not open any more", "try again")],
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    all.extend(looked_at.into_iter().flatten());
    (all, Some(session))
}

/// A region of each account, one where acting is switched on before all others, and how many it has.
fn one_region_each(scopes: &[Scope], act: &ActConfig) -> Vec<(Scope, usize)> {
    let mut chosen: BTreeMap<&str, (&Scope, usize)> = BTreeMap::new();
    for scope in scopes {
        let (one, count) = chosen.entry(&scope.account).or_insert((scope, 0));
        *count += 1;
        let is_switched_on = |scope: &Scope| act.is_switched_on(&scope.account, &scope.region);
        if is_switched_on(scope) && !is_switched_on(one) {
            *one = scope;
        }
    }
    chosen.into_values().map(|(scope, count)| (scope.clone(), count)).collect()
}

/// What may not be called in an account, an action a line; one line if all may.
fn account(scope: &Scope, regions: usize, permissions: &[Permission]) -> Vec<Check> {
    let part = Part::Aws;
    let line = |status, action: &str, found: String, remedy: &str| {
        Check::new(part, &format!("{} {action}", scope.account), status, found, remedy)
    };
    let lines = permissions.iter().filter_map(|Permission { action, allowed }| match allowed {
        Allowed::Yes => None,
        Allowed::No(why) => Some(line(
            Status::Broken,
            action,
            why.to_string(),
            "allow it in the policy of the role that reads (docs/operations.md)",
        )),
        Allowed::NotKnown(why) => Some(line(Status::Warning, action, why.to_string(), "")),
        Allowed::NotTried(why) => Some(line(Status::NotChecked, action, (*why).to_owned(), "")),
    });
    let lines: Vec<_> = lines.collect();
    let allowed = permissions.iter().filter(|one| one.allowed == Allowed::Yes).count();
    let found = format!(
        "{allowed} of {} actions that read are allowed, tried in {}, one of {regions} regions",
        permissions.len(),
        scope.region
    );
    let status = if lines.iter().any(|line| line.status == Status::Broken) { Status::Broken } else { Status::Ok };
    std::iter::once(Check::new(part, &scope.account, status, found, "")).chain(lines).collect()
}

/// Where prices come from.
pub(super) async fn prices(config: &Config, session: Option<&Session>) -> Vec<Check> {
    let part = Part::Prices;
    let one = match (config.pricing.source, session) {
        (PricingSource::None, _) => {
            Check::off(part, "price list", "none is read: costs are not known", "set `pricing.source`")
        }
        (PricingSource::File, _) => match config.pricing.file.as_deref().map(std::fs::metadata) {
            Some(Ok(_)) => Check::ok(part, "price list", "the file is there"),
            Some(Err(error)) => broken(part, "price list", error.to_string(), "see `pricing.file`"),
            None => broken(part, "price list", "no file is named", "set `pricing.file`"),
        },
        (PricingSource::Api, None) => Check::off(part, "price list", "not asked without credentials", ""),
        (PricingSource::Api, Some(session)) => match pricing::may_ask(session, &config.pricing.api_region).await {
            Ok(()) => Check::ok(part, "price list", format!("answers in {}", config.pricing.api_region)),
            Err(why) => broken(
                part,
                "price list",
                format!("pricing:GetProducts: {why}"),
                "allow it, and let this host reach `pricing.api_region`; costs are not known until then",
            ),
        },
    };
    vec![one]
}

/// The roles that act, by EC2's dry runs.
pub(super) async fn acting(config: &Config, session: &Session) -> Vec<Check> {
    let mut all = Vec::new();
    for role in &config.act.roles {
        let account = role.role_arn.account();
        let mut options = config.aws.options();
        options.roles.retain(|role| role.arn.account() == account);
        options.own_account &= options.roles.is_empty();
        let accounts = Accounts::open(session, &options).await;
        let switched_on = |scope: &Scope| config.act.is_switched_on(account, &scope.region);
        let scopes = accounts.scopes().await.scopes;
        let scopes: Vec<_> = scopes.into_iter().filter(|scope| scope.account == account).collect();
        let Some(scope) = scopes.iter().find(|scope| switched_on(scope)).or_else(|| scopes.first()) else {
            let found = "the account is not read, so that nothing there is ever planned";
            all.push(Check::new(
                Part::Approvals,
                role.role_arn.as_str(),
                Status::Warning,
                found,
                "name it in `aws.accounts`",
            ));
            continue;
        };
        let instances = some_machines(&accounts, scope, TRIED).await;
        all.push(match instances {
            Ok(instances) => role_check(role.role_arn.as_str(), &rehearse(config, scope, &instances).await),
            Err(why) => could_not_try(role.role_arn.as_str(), &why),
        });
        if config.act.terminate_jobs {
            let name = format!("{}, jobs", role.role_arn.as_str());
            all.push(match some_jobs(&accounts, scope, TRIED).await {
                Ok(jobs) => job_check(&name, rehearse_jobs(config, scope, &jobs).await),
                Err(why) => {
                    Check::new(Part::Approvals, &name, Status::Warning, format!("no job to try it on: {why}"), "")
                }
            });
        }
    }
    all
}

fn could_not_try(role: &str, why: &Failure) -> Check {
    Check::new(
        Part::Approvals,
        role,
        Status::Warning,
        format!("no machine to try it on: ec2:DescribeInstances: {why}"),
        "",
    )
}

/// Whether a role may terminate jobs.
fn job_check(role: &str, rehearsal: Terminates) -> Check {
    let part = Part::Approvals;
    match rehearsal {
        Terminates::NotAssumed(why) => {
            broken(part, role, format!("cannot be assumed: {why}"), "see above; no job is terminated until then")
        }
        Terminates::NoJob => Check::off(part, role, "no job of AWS Batch runs on which to try it", ""),
        Terminates::IsHeard { job } => {
            let found = format!(
                "is heard by AWS Batch, of the job {job}; whether it may terminate that shows in the call alone, which has no dry run"
            );
            Check::ok(part, role, found)
        }
        Terminates::MayNot { tried, why } => Check::new(
            part,
            role,
            Status::Warning,
            format!("may terminate none of the {tried} jobs that were tried (batch:ListTagsForResource): {why}"),
            "`act.terminate_jobs` is on: allow it as docs/approvals.md does; where its policy asks for a tag, none of these jobs has it",
        ),
    }
}

fn role_check(role: &str, rehearsal: &Rehearsal) -> Check {
    let part = Part::Approvals;
    match rehearsal {
        Rehearsal::NotAssumed(why) => broken(
            part,
            role,
            format!("cannot be assumed: {why}"),
            "compare its trust with the sweeper's own role: principal, external id, sts:SetSourceIdentity (docs/runbooks.md)",
        ),
        Rehearsal::NoMachine => Check::off(part, role, "can be assumed; there is no machine to try it on", ""),
        Rehearsal::May { instance } => {
            Check::ok(part, role, format!("could stop and start {instance}, by EC2's own dry runs"))
        }
        Rehearsal::NotHeard(why) => broken(
            part,
            role,
            format!(
                "may stop and start machines, and Auto Scaling does not hear it (autoscaling:DescribeTerminationPolicyTypes): {why}"
            ),
            "`act.end_members` is on: allow it as docs/approvals.md does, or switch that off",
        ),
        Rehearsal::MayAndIsHeard { instance } => {
            let found = format!(
                "could stop and start {instance}, by EC2's own dry runs, and is heard by Auto Scaling; whether it may end machines of groups shows in the call alone, which has no dry run"
            );
            Check::ok(part, role, found)
        }
        Rehearsal::MayNot { tried, why } => Check::new(
            part,
            role,
            Status::Warning,
            format!("can be assumed, and could stop none of the {tried} machines that were tried: {why}"),
            "where its policy asks for a tag, none of these has it (docs/approvals.md)",
        ),
    }
}

fn broken(part: Part, name: &str, found: impl Into<String>, remedy: &str) -> Check {
    Check::new(part, name, Status::Broken, found, remedy)
}
