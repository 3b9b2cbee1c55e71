//! What needs a snapshot: the account's images that are made of it, and the volume that it is a copy of while it is there.
//!
//! Needs `ec2:DescribeImages`; one call for each thousand images of the account's own, and none where there is no snapshot. Images of other accounts are made of copies of their own.

use model::ResourceKind;
use std::collections::{HashMap, HashSet};

use aws_sdk_ec2::types::{self, DeviceType};

use super::collect::{List, list};
use crate::inventory::{
    Failure, Inventory, Kind, Listing, Outcome,
    reader::{Api, Refused},
};

const IMAGES: Api = Api::ec2("ec2:DescribeImages");

/// An image, and what it is made of.
struct Image {
    id: String,
    snapshots: Vec<String>,
    /// Whether its disks are told: an image whose root is a volume is made of one snapshot at least.
    is_whole: bool,
}

/// Says of each snapshot what needs it. Where images or volumes cannot be read, that is not known, and their listings say why.
pub(super) async fn add(list_of: &List<'_>, inventory: &mut Inventory) {
    let outcome_of = |kind: ResourceKind| {
        let listing = inventory.listings.iter().find(|listing| listing.kind == Some(kind.into()));
        listing.map(|listing| &listing.outcome)
    };
    let outcome = match outcome_of(ResourceKind::Snapshot) {
        Some(failed @ Outcome::Failed { .. }) => failed.clone(),
        _ if inventory.snapshots.is_empty() => Outcome::Complete { listed: 0 },
        _ => match read(list_of).await {
            Ok(images) => {
                let has_volumes = matches!(outcome_of(ResourceKind::Volume), Some(Outcome::Complete { .. }));
                if has_volumes && images.iter().all(|image| image.is_whole) {
                    name_needs(inventory, &images);
                }
                Outcome::Complete { listed: images.len() }
            }
            Err(why) => Outcome::Failed { what: IMAGES.name.to_owned(), why },
        },
    };
    inventory.listings.push(Listing::of(list_of.scope, Kind::Image, outcome));
}

async fn read(list_of: &List<'_>) -> Result<Vec<Image>, Failure> {
    let List { place, page_size, .. } = list_of;
    let images = place.pages(IMAGES, list_of.told(Kind::Image), |token| {
        let mine = place.ec2().describe_images().owners("self").include_deprecated(true).include_disabled(true);
        let request = mine.max_results(*page_size).set_next_token(token);
        async move {
            let page = request.send().await?;
            let images: Result<Vec<_>, _> = list(page.images, "images")?.iter().map(image).collect();
            Ok((images.map_err(Refused::malformed)?, page.next_token))
        }
    });
    images.await
}

fn image(record: &types::Image) -> Result<Image, String> {
    let id = record.image_id().filter(|id| !id.is_empty()).ok_or("an image has no id")?;
    let disks = record.block_device_mappings().iter().filter_map(|mapping| mapping.ebs()?.snapshot_id());
    let snapshots: Vec<_> = disks.map(str::to_owned).collect();
    let is_whole = !snapshots.is_empty() || record.root_device_type() == Some(&DeviceType::InstanceStore);
    Ok(Image { id: id.to_owned(), snapshots, is_whole })
}

fn name_needs(inventory: &mut Inventory, images: &[Image]) {
    let mut made_of: HashMap<&str, Vec<&str>> = HashMap::new();
    for Image { id, snapshots, .. } in images {
        for snapshot in snapshots {
            made_of.entry(snapshot).or_default().push(id);
        }
    }
    let volumes: HashSet<&str> = inventory.volumes.iter().map(|volume| volume.id.id.as_str()).collect();
    for snapshot in &mut inventory.snapshots {
        let images = made_of.get(snapshot.id.id.as_str()).into_iter().flatten().copied();
        let volume = snapshot.volume_id.as_deref().filter(|volume| volumes.contains(volume));
        let needed_by = images.chain(volume).map(str::to_owned).collect();
        snapshot.needed_by = Some(needed_by);
    }
}
