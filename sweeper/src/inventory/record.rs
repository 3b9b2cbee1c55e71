//! Resources as the history keeps them.

use super::{Inventory, Kind, Provider};
use heartbeat::NodeId;

/// The facts about one resource, ready to be kept and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    provider: Provider,
    account: String,
    region: String,
    kind: Kind,
    /// Its key.
    pub resource: String,
    /// Its facts. Equal facts are equal text: fields keep their order, and tags are sorted.
    pub json: String,
}

impl Record {
    /// Whether a listing of this kind in this place is where it came from.
    #[must_use]
    pub fn is_in(&self, provider: Provider, account: &str, region: &str, kind: Kind) -> bool {
        self.provider == provider && self.account == account && self.region == region && self.kind == kind
    }
}

impl Inventory {
    /// All resources.
    ///
    /// # Errors
    /// If a resource cannot be written as JSON.
    pub fn records(&self) -> Result<Vec<Record>, serde_json::Error> {
        let mut records = Vec::with_capacity(self.instances.len());
        for instance in &self.instances {
            let NodeId::Aws { account, region, .. } = &instance.id else { continue };
            records.push(Record {
                provider: Provider::Aws,
                account: account.clone(),
                region: region.clone(),
                kind: Kind::Instance,
                resource: instance.id.to_string(),
                json: serde_json::to_string(instance)?,
            });
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::sample;

    #[test]
    fn equal_facts_are_equal_text_and_any_other_fact_is_another() {
        let of = |instance| Inventory { instances: vec![instance], ..Inventory::default() }.records().expect("JSON");
        let (plain, mut changed) = (sample::instance(), sample::instance());
        assert_eq!(of(plain.clone()), of(plain.clone()));
        changed.tags.insert("owner".into(), "genomics".into());
        assert_ne!(of(plain)[0].json, of(changed)[0].json);
    }
}
