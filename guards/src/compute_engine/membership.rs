//! Refuses a machine that belongs to something larger, by what its labels and metadata say: a managed instance group would replace it, and a service of
//! Google's has placed work on it.

use model::machine::{ComputeEngineFacts, Owner};

use crate::Refusal;

/// Labels that services of Google's put on machines that they made for themselves begin so; nobody else may.
const GOOGLES: &str = "goog-";
/// Labels of Google's that a person's own machines carry: Terraform's provider and the agent of operations put these there.
const OF_PEOPLES: [&str; 2] = ["goog-terraform-provisioned", "goog-ops-agent-policy"];
/// The services whose labels are known, the more telling first.
const SERVICES: [(&str, &str); 6] = [
    ("goog-gke-", "GKE cluster"),
    ("goog-k8s-", "GKE cluster"),
    ("goog-composer-", "Cloud Composer environment"),
    ("goog-dataproc-", "Dataproc cluster"),
    ("goog-dataflow-", "Dataflow job"),
    ("goog-batch-", "Batch job"),
];

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    let labels = facts.labels.as_ref().ok_or(Refusal::TagsUnreadable)?;
    let service = |begin: &str| labels.iter().find(|(key, _)| key.starts_with(begin));
    let known = SERVICES.iter().find_map(|(begin, kind)| service(begin).map(|label| (label, *kind)));
    let others = || labels.iter().find(|(key, _)| key.starts_with(GOOGLES) && !OF_PEOPLES.contains(&key.as_str()));
    if let Some(((key, value), kind)) = known.or_else(|| others().map(|label| (label, "service of Google's"))) {
        let name = Some(value.clone()).filter(|value| !value.is_empty());
        return Err(Refusal::MemberOf { owner: Owner { kind: kind.to_owned(), name, known_by: key.clone() } });
    }
    match &facts.created_by {
        None => Ok(()),
        Some(path) => {
            let name = path.rsplit('/').next().map(str::to_owned);
            let owner =
                Owner { kind: "group or service that made it,".to_owned(), name, known_by: "created-by".to_owned() };
            Err(Refusal::MemberOf { owner })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{
        holds, may_stop_compute_engine,
        sample::{facts, labelled},
    };
    use model::plan::Condition;

    fn refused(facts: &ComputeEngineFacts) -> Option<(String, String)> {
        let Err(Refusal::MemberOf { owner }) = may_stop_compute_engine(facts) else { return None };
        assert!(holds(&Condition::TagsPermit, facts).is_err(), "{owner}");
        Some((owner.kind, owner.known_by))
    }

    #[test]
    fn what_a_service_made_is_the_services() {
        for (key, kind) in [
            ("goog-gke-node", "GKE cluster"),
            ("goog-k8s-cluster-name", "GKE cluster"),
            ("goog-dataproc-cluster-name", "Dataproc cluster"),
            ("goog-dataflow-job-id", "Dataflow job"),
            ("goog-batch-job-uid", "Batch job"),
            ("goog-composer-environment", "Cloud Composer environment"),
            ("goog-brand-new", "service of Google's"),
        ] {
            for value in ["", "x"] {
                assert_eq!(refused(&labelled(key, value)), Some((kind.to_owned(), key.to_owned())));
            }
        }
        for key in ["goog-terraform-provisioned", "goog-ops-agent-policy", "my-goog-gke-node"] {
            assert_eq!(refused(&labelled(key, "true")), None, "{key}");
        }
    }

    #[test]
    fn what_a_group_made_is_the_groups() {
        let path = "projects/42/zones/europe-west3-a/instanceGroupManagers/workers".to_owned();
        let made = facts(|facts| facts.created_by = Some(path));
        let told = may_stop_compute_engine(&made).expect_err("a member").to_string();
        assert!(told.contains("group or service that made it, workers (by `created-by`)"), "{told}");
        assert_eq!(refused(&made).map(|(_, by)| by), Some("created-by".to_owned()));
    }

    #[test]
    fn labels_that_cannot_be_read_may_name_an_owner() {
        assert_eq!(guard(&facts(|facts| facts.labels = None)), Err(Refusal::TagsUnreadable));
    }
}
