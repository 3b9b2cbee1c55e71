//! A copy of a disk as its provider describes it.

use model::ResourceKey;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::words::open_words;

/// What EC2 says of one EBS snapshot that the account owns. A fact that EC2 left out is `None`, never a default.
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Snapshot.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The resource key; it ends in `snap-…`.
    pub id: ResourceKey,
    /// The volume that it is a copy of, which may be long gone. A snapshot that was copied has an arbitrary id here.
    pub volume_id: Option<String>,
    /// The volume's size in GiB. The bill is for the blocks that it holds, which are fewer.
    pub volume_size_gib: Option<u32>,
    /// The blocks of a full copy, in bytes: the most that it may be billed for. An earlier snapshot may share them.
    pub full_size_bytes: Option<u64>,
    /// What EC2 last knew it to do.
    pub state: Option<SnapshotState>,
    /// The moment that it is a copy of.
    pub started_at: Option<Timestamp>,
    /// Where it is kept.
    pub storage_tier: Option<StorageTier>,
    /// Free text, by whoever or whatever made it.
    pub description: Option<String>,
    /// What needs it, by id: the account's images that are made of it, and the volume that it is a copy of while it is there. None: not all of these could be listed.
    /// The history keeps it not: a list of images that fails for once would be another version of every snapshot.
    #[serde(skip)]
    pub needed_by: Option<Vec<String>>,
    /// The machine that it came from, `i-…`, if its description and tags name one, and one only.
    pub instance_id: Option<String>,
    /// True for a snapshot in the customer's own building (AWS Outposts).
    pub on_outpost: bool,
    /// All tags; EC2 returns them with the snapshot or not the snapshot at all.
    pub tags: BTreeMap<String, String>,
}

open_words! {
    /// EC2's state of a snapshot.
    SnapshotState {
        /// Being copied.
        Pending = "pending",
        /// Whole, and billed.
        Completed = "completed",
        /// The copy failed.
        Error = "error",
        /// In the recycle bin, and billed.
        Recoverable = "recoverable",
        /// On its way back from the recycle bin.
        Recovering = "recovering",
    }
}

open_words! {
    /// Where a snapshot is kept.
    StorageTier {
        /// At hand.
        Standard = "standard",
        /// Cheaper, for 90 days at least, and slow to come back.
        Archive = "archive",
    }
}
