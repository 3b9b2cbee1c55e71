//! What is told together: findings of one class whose resources have one owner, or have none and are billed to one account.

use super::Finding;

/// The word that findings have in common which may be told by one message.
#[must_use]
pub fn audience(finding: &Finding) -> String {
    let owner = finding.evidence.owner().map(|owner| owner.trim().to_lowercase());
    let class = finding.class.as_str();
    match owner.filter(|owner| !owner.is_empty()) {
        Some(owner) => format!("{class}|owner|{owner}"),
        None => format!("{class}|account|{}:{}", finding.resource.provider.as_str(), finding.resource.account),
    }
}
