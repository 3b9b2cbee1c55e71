//! Settings of where approved plans are carried out, and by which right.

use crate::inventory::aws::{Role, RoleArn};
use model::{
    ResourceKey,
    plan::{Action, Plan, PlanContent},
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[act]`: where approved plans are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActConfig {
    /// Accounts and regions, `123456789012:eu-central-1`, or projects of Google Cloud and their zones, `omics-prod-1:europe-west3-a`, where approved plans are carried out; everywhere else a dry run is all that is done.
    pub scopes: Vec<String>,
    /// The role that acts, one for each account; nothing else does.
    pub roles: Vec<ActRole>,
    /// Who acts in projects of Google Cloud, one for each; nobody else does.
    pub projects: Vec<ActProject>,
    /// Whether an idle machine of an Auto Scaling group may be ended there, its group made smaller by one: nothing undoes that. Off, no plan says so, and none is carried out.
    pub end_members: bool,
    /// Whether a stuck job of AWS Batch may be terminated: nothing undoes that. Off, no plan says so, and none is carried out.
    pub terminate_jobs: bool,
    /// Machines that the sweeper itself needs and that it cannot find out by itself, by their ids.
    pub own_instances: Vec<String>,
}

/// `[[act.roles]]`: who acts in one account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActRole {
    /// The role to assume in it.
    pub role_arn: RoleArn,
    /// What the role's trust policy asks for as `sts:ExternalId`.
    #[serde(default)]
    pub external_id: Option<String>,
}

/// `[[act.projects]]`: who acts in one project of Google Cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActProject {
    /// Its id.
    pub project: String,
    /// Credentials in Google's own form, which are not those that read: of workload identity federation or of an impersonated service account, say.
    pub credentials_file: PathBuf,
}

impl ActConfig {
    /// What CloudTrail shows as the session's name.
    const SESSION_NAME: &'static str = "cloud-sweeper-act";

    /// The role that acts in an account; none if nobody may.
    #[must_use]
    pub fn role(&self, account: &str) -> Option<Role> {
        let found = self.roles.iter().find(|role| role.role_arn.account() == account)?;
        Some(Role {
            arn: found.role_arn.clone(),
            external_id: found.external_id.clone(),
            regions: Vec::new(),
            session_name: Self::SESSION_NAME.to_owned(),
        })
    }

    /// Who acts in a project of Google Cloud; none if nobody may.
    #[must_use]
    pub fn project(&self, project: &str) -> Option<&ActProject> {
        self.projects.iter().find(|act| act.project == project)
    }

    /// Whether somebody has switched acting on for an account and region, or a project and zone.
    #[must_use]
    pub fn is_switched_on(&self, account: &str, region: &str) -> bool {
        // A project's id may hold a colon of its own.
        self.scopes.iter().any(|scope| scope.rsplit_once(':') == Some((account, region)))
    }

    /// The first project that cannot work, and why.
    fn wrong_project(&self) -> Option<(String, String)> {
        for (n, act) in self.projects.iter().enumerate() {
            let ActProject { project, credentials_file } = act;
            if !super::google::may_be_project(project) {
                let reason = format!("`{project}` is not the id of a project such as `omics-prod-1`");
                return Some((format!("act.projects[{n}].project"), reason));
            }
            if let Some(other) = self.projects[..n].iter().position(|other| other.project == *project) {
                let reason = format!("is `{project}`, as that of `act.projects[{other}]` is; keep one");
                return Some((format!("act.projects[{n}].project"), reason));
            }
            if credentials_file.as_os_str().is_empty() {
                return Some((format!("act.projects[{n}].credentials_file"), "names no file".to_owned()));
            }
        }
        None
    }

    /// Why nothing could be done in a scope; none if something could.
    fn wrong_scope(&self, scope: &str) -> Option<String> {
        let Some((account, place)) = scope.rsplit_once(':') else { return Some(no_scope(scope)) };
        if super::google::may_be_project(account) {
            if !super::google::may_be_zone(place) {
                return Some(format!("`{scope}` is not a project and a zone, such as `omics-prod-1:europe-west3-a`"));
            }
            let none = self.project(account).is_none();
            return none
                .then(|| format!("has `{scope}`, and no `act.projects` is of {account}: nobody could act there"));
        }
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        if !is_account || !super::check::may_be_region(place) {
            return Some(no_scope(scope));
        }
        let none = self.role(account).is_none();
        none.then(|| format!("has `{scope}`, and no `act.roles` is in account {account}: nobody could act there"))
    }

    /// Whether somebody has switched on that this is done to a resource of an account and region.
    #[must_use]
    pub fn may_do(&self, action: Action, account: &str, region: &str) -> bool {
        let has_switch = match action {
            Action::EndMember => self.end_members,
            Action::TerminateJob => self.terminate_jobs,
            Action::StopInstance
            | Action::HibernateInstance
            | Action::StartInstance
            | Action::ReleaseAddress
            | Action::DeleteVolume => true,
        };
        has_switch && self.is_switched_on(account, region)
    }

    /// Whether somebody has switched on all that a plan does.
    #[must_use]
    pub fn may_carry_out(&self, plan: &Plan) -> bool {
        let PlanContent { resource: ResourceKey { account, location, .. }, actions, .. } = plan.content();
        actions.iter().all(|action| self.may_do(*action, account, location))
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(String, String)> {
        for (n, role) in self.roles.iter().enumerate() {
            let account = role.role_arn.account();
            if let Some(other) = self.roles[..n].iter().position(|other| other.role_arn.account() == account) {
                let reason = format!("is in account {account}, as that of `act.roles[{other}]` is; keep one");
                return Some((format!("act.roles[{n}].role_arn"), reason));
            }
            if !role.external_id.as_deref().is_none_or(super::check::may_be_external_id) {
                let reason = "must be 2 to 1,224 letters, digits or any of _+=,.@:/-".to_owned();
                return Some((format!("act.roles[{n}].external_id"), reason));
            }
        }
        if let Some(wrong) = self.wrong_project() {
            return Some(wrong);
        }
        if let Some(reason) = self.scopes.iter().find_map(|scope| self.wrong_scope(scope)) {
            return Some(("act.scopes".to_owned(), reason));
        }
        let no_instance = self.own_instances.iter().find(|id| !may_be_instance(id))?;
        Some((
            "act.own_instances".to_owned(),
            format!("`{no_instance}` is not the id of an instance, such as `i-0123456789abcdef0`"),
        ))
    }
}

fn no_scope(scope: &str) -> String {
    format!("`{scope}` is not an account and a region, such as `123456789012:eu-central-1`")
}

/// An instance of EC2, or the number of one of Google Cloud.
fn may_be_instance(id: &str) -> bool {
    id.starts_with("i-") || (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_undoes_of_machines_has_a_switch_of_its_own() {
        let scopes = vec!["123456789012:eu-central-1".to_owned()];
        let of = |end_members, action, region: &str| {
            let config = ActConfig { end_members, scopes: scopes.clone(), ..ActConfig::default() };
            config.may_do(action, "123456789012", region)
        };
        assert!(!ActConfig::default().end_members);
        assert!(!of(false, Action::EndMember, "eu-central-1") && of(true, Action::EndMember, "eu-central-1"));
        assert!(!of(true, Action::EndMember, "us-east-1"));
        let jobs = |terminate_jobs, region: &str| {
            let config = ActConfig { terminate_jobs, scopes: scopes.clone(), ..ActConfig::default() };
            config.may_do(Action::TerminateJob, "123456789012", region)
        };
        assert!(!ActConfig::default().terminate_jobs);
        assert!(!jobs(false, "eu-central-1") && jobs(true, "eu-central-1") && !jobs(true, "us-east-1"));
        assert!(!of(true, Action::TerminateJob, "eu-central-1"), "a switch of its own");
        for action in [Action::StopInstance, Action::ReleaseAddress, Action::DeleteVolume] {
            assert!(of(false, action, "eu-central-1") && !of(true, action, "us-east-1"));
        }
    }
}
