//! Refuses a leftover that something else manages, as its tags say: what made it would make it anew, or fail without it.

use std::collections::BTreeMap;

use crate::Refusal;

/// Tags that services and tools of infrastructure set, by how their names begin. Those of `aws:` nobody but AWS can set: a stack of CloudFormation, a backup.
const BEGINNINGS: [&str; 7] =
    ["aws:", "kubernetes.io/", "k8s.io/", "eks:", "ecs:", "elasticbeanstalk:", "ebs.csi.aws.com/"];
/// Tags of tools of which any value but `false` says so; compared without case and signs.
const TOOLS: [&str; 7] =
    ["managedby", "terraform", "opentofu", "pulumi", "kubernetescluster", "csivolumename", "provisionedby"];

pub(crate) fn of_tags(tags: Option<&BTreeMap<String, String>>) -> Result<(), Refusal> {
    let tags = tags.ok_or(Refusal::TagsUnreadable)?;
    match tags.iter().find(|(tag, value)| is_managed(tag, value)) {
        Some((tag, _)) => Err(Refusal::ManagedElsewhere { tag: tag.clone() }),
        None => Ok(()),
    }
}

fn is_managed(tag: &str, value: &str) -> bool {
    let name: String = tag.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let by_tool = TOOLS.contains(&name.as_str()) && !value.trim().eq_ignore_ascii_case("false");
    by_tool || BEGINNINGS.iter().any(|beginning| tag.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_something_else_made_is_its_to_end() {
        let of = |key: &str, value: &str| {
            let tags = BTreeMap::from([("owner".to_owned(), "ada".to_owned()), (key.to_owned(), value.to_owned())]);
            of_tags(Some(&tags))
        };
        for (key, value) in [
            ("aws:cloudformation:stack-id", "arn"),
            ("aws:backup:source-resource", ""),
            ("kubernetes.io/cluster/prod", "owned"),
            ("kubernetes.io/service-name", "default/web"),
            ("eks:cluster-name", "prod"),
            ("k8s.io/role/master", "1"),
            ("ecs:cluster", "web"),
            ("elasticbeanstalk:environment-name", "web"),
            ("ebs.csi.aws.com/cluster", "true"),
            ("ManagedBy", "Terraform"),
            ("managed_by", ""),
            ("managed-by", "ops"),
            ("terraform", "true"),
            ("OpenTofu", "yes"),
            ("pulumi", "yes"),
            ("KubernetesCluster", "prod"),
            ("CSIVolumeName", "pvc-1"),
            ("kubernetes.io/created-for/pvc/name", "data"),
            ("provisioned-by", "x"),
        ] {
            assert_eq!(of(key, value), Err(Refusal::ManagedElsewhere { tag: key.to_owned() }), "{key}");
        }
        for (key, value) in [("team", "terraform"), ("terraform", "False"), ("my-aws:thing", "x"), ("manager", "ada")] {
            assert_eq!(of(key, value), Ok(()), "{key}");
        }
    }
}
