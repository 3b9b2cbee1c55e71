//! What an instance's own record does not tell of it and its type does: whether it has disks of its host.
//!
//! Needs `ec2:DescribeInstanceTypes`; one call for each hundred types that are in use. They are asked for by a filter: of a type that is named, and that the region
//! does not offer any more, EC2 makes an error (`InvalidInstanceType`), which would hide all others.

use model::ResourceKind;
use std::collections::{BTreeSet, HashMap};

use aws_sdk_ec2::types::{Filter, InstanceTypeInfo};

use super::collect::{List, list};
use crate::inventory::{Failure, InstanceStore, Inventory, Kind, Listing, Outcome, reader::Api};

pub(super) const TYPES: Api = Api::ec2_in_one("ec2:DescribeInstanceTypes");
/// Half of what a filter takes: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>.
const NAMES: usize = 100;
/// The filter.
const TYPE: &str = "instance-type";

/// Says of each machine whether it has an instance store. Where a type cannot be read, that is not known, and the listing of types
/// says why.
pub(super) async fn add(list_of: &List<'_>, inventory: &mut Inventory) {
    let of_machines = inventory.listings.iter().find(|listing| listing.kind == Some(ResourceKind::Instance.into()));
    let outcome = match of_machines.map(|listing| &listing.outcome) {
        Some(failed @ Outcome::Failed { .. }) => failed.clone(),
        _ => match read(list_of, inventory).await {
            Ok(stores) => {
                for instance in &mut inventory.instances {
                    let store = instance.instance_type.as_ref().and_then(|name| stores.get(name));
                    instance.instance_store = store.copied().unwrap_or(InstanceStore::Unknown);
                }
                Outcome::Complete { listed: stores.len() }
            }
            Err(why) => Outcome::Failed { what: TYPES.name.to_owned(), why },
        },
    };
    inventory.listings.push(Listing::of(list_of.scope, Kind::MachineType, outcome));
}

async fn read(list_of: &List<'_>, inventory: &Inventory) -> Result<HashMap<String, InstanceStore>, Failure> {
    let in_use: BTreeSet<&str> = inventory.instances.iter().filter_map(|it| it.instance_type.as_deref()).collect();
    let in_use: Vec<String> = in_use.into_iter().map(str::to_owned).collect();
    let mut stores = HashMap::new();
    for names in in_use.chunks(NAMES) {
        let types = list_of.place.pages(TYPES, list_of.told(Kind::MachineType), |token| {
            let of_type = Filter::builder().name(TYPE).set_values(Some(names.to_vec())).build();
            let request = list_of.place.ec2().describe_instance_types().filters(of_type).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.instance_types, "instance types")?, page.next_token))
            }
        });
        for info in types.await? {
            if let Some(name) = info.instance_type() {
                stores.insert(name.as_str().to_owned(), store(&info));
            }
        }
    }
    Ok(stores)
}

fn store(info: &InstanceTypeInfo) -> InstanceStore {
    match (info.instance_storage_supported(), info.instance_storage_info()) {
        (Some(true), _) | (None, Some(_)) => InstanceStore::Present,
        (Some(false), _) => InstanceStore::Absent,
        (None, None) => InstanceStore::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::InstanceStorageInfo;

    #[test]
    fn what_a_type_does_not_say_is_not_known() {
        let info = |supported, disks: bool| {
            let disks = disks.then(|| InstanceStorageInfo::builder().build());
            let info = InstanceTypeInfo::builder().set_instance_storage_supported(supported);
            store(&info.set_instance_storage_info(disks).build())
        };
        assert_eq!(info(Some(true), false), InstanceStore::Present);
        assert_eq!(info(Some(false), false), InstanceStore::Absent);
        assert_eq!(info(None, true), InstanceStore::Present);
        assert_eq!(info(None, false), InstanceStore::Unknown);
    }
}
