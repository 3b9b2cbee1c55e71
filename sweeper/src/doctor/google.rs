//! Google Cloud: credentials, and each project read once, as a sweep reads it.

use super::{Check, Part, Status};
use crate::{
    config::{Config, Enabled},
    inventory::{Listing, Outcome, Silent, gcp},
};

/// The credentials, and what of each project can be read.
pub(super) async fn read_rights(config: &Config) -> Vec<Check> {
    let part = Part::Google;
    if config.gcp.enabled == Enabled::No || config.gcp.projects.is_empty() {
        return vec![Check::off(part, "projects", "none is read", "name them in `gcp.projects`")];
    }
    let options = config.gcp.options();
    let no_credentials = |found: String| {
        let remedy = "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`";
        vec![Check::new(part, "credentials", Status::Broken, found, remedy)]
    };
    let session = match gcp::Session::open(&options).await {
        Ok(Some(session)) => session,
        Ok(None) => return no_credentials("none are found".to_owned()),
        Err(why) => return no_credentials(why.to_string()),
    };
    let mut all = vec![Check::ok(part, "credentials", "found, and a token was given for them")];
    for scope in options.scopes() {
        let inventory = gcp::read(&session, &scope, &Silent).await;
        all.extend(project(&scope.account, &inventory.listings));
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
