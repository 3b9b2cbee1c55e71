//! Google Cloud: credentials, each project read once, as a sweep reads it, and who acts there.

use super::{Check, Part, Status};
use crate::{
    actions::{Rehearsal, rehearse_project},
    config::{Config, Enabled, PricingSource},
    inventory::{InstanceState, Listing, Outcome, Silent, gcp},
};
use model::ResourceKey;

/// Machines that it is tried on whether they could be stopped, at most.
const TRIED: usize = 20;

/// The credentials, and what of each project can be read; and the machines that run there.
pub(super) async fn read_rights(config: &Config) -> (Vec<Check>, Vec<ResourceKey>) {
    let part = Part::Google;
    if config.gcp.enabled == Enabled::No || config.gcp.projects.is_empty() {
        return (vec![Check::off(part, "projects", "none is read", "name them in `gcp.projects`")], Vec::new());
    }
    let options = config.gcp.options();
    let no_credentials = |found: String| {
        let remedy = "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`";
        (vec![Check::new(part, "credentials", Status::Broken, found, remedy)], Vec::new())
    };
    let session = match gcp::Session::open(&options).await {
        Ok(Some(session)) => session,
        Ok(None) => return no_credentials("none are found".to_owned()),
        Err(why) => return no_credentials(why.to_string()),
    };
    let mut all = vec![Check::ok(part, "credentials", "found, and a token was given for them")];
    if config.pricing.source == PricingSource::Api {
        all.push(prices(&session).await);
    }
    let mut machines = Vec::new();
    for scope in options.scopes() {
        let inventory = gcp::read(&session, &scope, &Silent).await;
        all.extend(project(&scope.account, &inventory.listings));
        let running = inventory.instances.into_iter().filter(|instance| instance.state == InstanceState::Running);
        machines.extend(running.map(|instance| instance.id));
    }
    (all, machines)
}

/// Whether the catalogue of prices can be read. It is public: what may be missing is the API, in the project that the credentials are of.
async fn prices(session: &gcp::Session) -> Check {
    let (part, name) = (Part::Google, "prices");
    match gcp::may_read_catalogue(session).await {
        Ok(()) => Check::ok(part, name, "the catalogue can be read"),
        Err(why) => {
            let remedy = "switch the Cloud Billing API on in the credentials' own project: `gcloud services enable cloudbilling.googleapis.com`; what a machine of Compute Engine asks with needs the scope `cloud-billing.readonly` or `cloud-platform`; costs there are not known until then";
            Check::new(part, name, Status::Broken, format!("cloudbilling.services.skus.list: {why}"), remedy)
        }
    }
}

/// Who acts in each project, by what Google says of their rights to machines that run there, those first where acting is switched on.
pub(super) async fn acting(config: &Config, machines: &[ResourceKey]) -> Vec<Check> {
    let part = Part::Approvals;
    let mut all = Vec::new();
    for act in &config.act.projects {
        let project = act.project.as_str();
        if config.gcp.enabled == Enabled::No || !config.gcp.projects.contains(&act.project) {
            let found = "the project is not read, so that nothing there is ever planned";
            all.push(Check::new(part, project, Status::Warning, found, "name it in `gcp.projects`"));
            continue;
        }
        let mut here: Vec<ResourceKey> = machines.iter().filter(|on| on.account == project).cloned().collect();
        here.sort_by_key(|on| !config.act.is_switched_on(&on.account, &on.location));
        here.truncate(TRIED);
        all.push(match rehearse_project(config, project, &here).await {
            Rehearsal::NotAssumed(why) => {
                let found = format!("its credentials cannot be had: {why}");
                Check::new(
                    part,
                    project,
                    Status::Broken,
                    found,
                    "`act.projects`, and what its file names (docs/approvals.md)",
                )
            }
            Rehearsal::NoMachine => Check::off(part, project, "a token is given; there is no machine to try it on", ""),
            // No machine is ended there, so that nothing but this is asked.
            Rehearsal::May { instance } | Rehearsal::MayAndIsHeard { instance } => Check::ok(
                part,
                project,
                format!("could stop and start {instance}, by what Google says of the right to it"),
            ),
            Rehearsal::NotHeard(why) => Check::new(part, project, Status::Warning, why, "docs/approvals.md"),
            Rehearsal::MayNot { tried, why } => {
                let found =
                    format!("a token is given, and could stop none of the {tried} machines that were tried: {why}");
                Check::new(part, project, Status::Warning, found, "give it the three permissions of docs/approvals.md")
            }
        });
    }
    all
}

/// What of one project could not be read; one line if nothing.
fn project(id: &str, listings: &[Listing]) -> Vec<Check> {
    let refused = listings.iter().filter_map(|listing| match &listing.outcome {
        Outcome::Failed { what, why } => {
            let remedy = "give the sweeper's account Compute Viewer there, and Monitoring Viewer for `gcp.monitoring`";
            Some(Check::new(Part::Google, id, Status::Broken, format!("{what}: {why}"), remedy))
        }
        Outcome::Complete { .. } => None,
    });
    let refused: Vec<_> = refused.collect();
    if refused.is_empty() {
        vec![Check::ok(Part::Google, id, format!("all {} lists can be read", listings.len()))]
    } else {
        refused
    }
}
