//! Other accounts, each read through a role in it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The ARN of a role, which tells the account that the role is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RoleArn {
    text: String,
    account: String,
}

impl RoleArn {
    /// Twelve digits.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for RoleArn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || {
            format!("`{text}` is not the ARN of a role; write it like \"arn:aws:iam::111122223333:role/cloud-sweeper\"")
        };
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", partition, "iam", "", account, resource] = parts.as_slice() else { return Err(refuse()) };
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let has_name = resource.strip_prefix("role/").is_some_and(|name| !name.is_empty() && !name.ends_with('/'));
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !partition.starts_with("aws") || !is_account || !has_name || !is_plain {
            return Err(refuse());
        }
        Ok(Self { text: text.to_owned(), account: (*account).to_owned() })
    }
}

impl TryFrom<String> for RoleArn {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RoleArn> for String {
    fn from(arn: RoleArn) -> Self {
        arn.text
    }
}

impl fmt::Display for RoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How one other account is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The role to assume.
    pub arn: RoleArn,
    /// What its trust policy asks for, so that nobody else's sweeper can be made to use it.
    pub external_id: Option<String>,
    /// Regions to ask; empty: those of [`super::Options::regions`].
    pub regions: Vec<String>,
    /// What that account's CloudTrail shows as the session's name.
    pub session_name: String,
}

impl Role {
    /// The name of a session where nobody chose one.
    pub const SESSION_NAME: &'static str = "cloud-sweeper";

    /// The role alone, without an external id.
    #[must_use]
    pub fn new(arn: RoleArn) -> Self {
        Self { arn, external_id: None, regions: Vec::new(), session_name: Self::SESSION_NAME.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_tells_its_account() {
        for text in [
            "arn:aws:iam::111122223333:role/cloud-sweeper",
            "arn:aws-us-gov:iam::111122223333:role/readers/cloud-sweeper",
        ] {
            let arn: RoleArn = text.parse().expect(text);
            assert_eq!((arn.account(), arn.to_string().as_str()), ("111122223333", text));
        }
    }

    #[test]
    fn what_is_no_role_is_refused() {
        for text in [
            "",
            "cloud-sweeper",
            "arn:aws:iam::111122223333:user/cloud-sweeper",
            "arn:aws:iam::111122223333:role/",
            "arn:aws:iam::1111:role/cloud-sweeper",
            "arn:aws:sts::111122223333:assumed-role/a/b",
            "arn:gcp:iam::111122223333:role/cloud-sweeper",
            "arn:aws:iam::111122223333:role/cloud sweeper",
        ] {
            let refusal = text.parse::<RoleArn>().expect_err(text);
            assert!(refusal.contains("is not the ARN of a role"), "{refusal}");
        }
    }
}
