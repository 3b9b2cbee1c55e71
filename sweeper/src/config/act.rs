//! Settings of where approved plans are carried out, and by which right.

use crate::inventory::aws::{Role, RoleArn};
use serde::{Deserialize, Serialize};

/// `[act]`: where approved plans are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActConfig {
    /// Accounts and regions, `123456789012:eu-central-1`, where approved plans are carried out; everywhere else a dry run is all that is done.
    pub scopes: Vec<String>,
    /// The role that acts, one for each account; nothing else does.
    pub roles: Vec<ActRole>,
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

    /// Whether somebody has switched acting on for an account and region.
    #[must_use]
    pub fn is_switched_on(&self, account: &str, region: &str) -> bool {
        self.scopes.iter().any(|scope| scope.split_once(':') == Some((account, region)))
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
        let wrong = |scope: &String| {
            let Some((account, region)) = scope.split_once(':') else {
                return Some(format!("`{scope}` is not an account and a region, such as `123456789012:eu-central-1`"));
            };
            if account.len() != 12
                || !account.bytes().all(|byte| byte.is_ascii_digit())
                || !super::check::may_be_region(region)
            {
                return Some(format!("`{scope}` is not an account and a region, such as `123456789012:eu-central-1`"));
            }
            let none = self.role(account).is_none();
            none.then(|| format!("has `{scope}`, and no `act.roles` is in account {account}: nobody could act there"))
        };
        if let Some(reason) = self.scopes.iter().find_map(wrong) {
            return Some(("act.scopes".to_owned(), reason));
        }
        let no_instance = self.own_instances.iter().find(|id| !id.starts_with("i-"))?;
        Some((
            "act.own_instances".to_owned(),
            format!("`{no_instance}` is not the id of an instance, such as `i-0123456789abcdef0`"),
        ))
    }
}
