//! What an instance costs by the hour, and what is billed by its amount costs per unit, by exact key.
//!
//! A price is found if exactly one row of the price list has the instance's own region, type, operating system, tenancy,
//! licence, preinstalled software and capacity status. Anything else is [`Unpriced`] with its reason: never the cheapest
//! row, never zero. Volumes, snapshots and public addresses are billed by their amount: a volume costs the sum of its parts (size, operations,
//! throughput), all of them or none. A Spot instance costs the Spot price of its zone that is in effect. It refuses currencies other than USD, floats, and the list price for what is not bought at it (Spot,
//! capacity blocks, dedicated hosts).

mod aws;
mod cost;
mod file;
mod google;
mod key;
mod load;
mod spot;
mod table;
mod units;
mod usage;

pub use aws::api::may_ask;
pub use cost::Cost;
pub use file::OfferFile;
pub use google::{Bill, Filter as SkuFilter, SkuList, bill as google_bill};
pub use key::{PriceKey, PriceList};
pub use load::{Options, Source, load, load_lists};
pub use spot::{MachinePrice, SpotChange, SpotKey, in_effect};
pub use table::{PriceTable, ReadPrice, UnitTable, unavailable};
pub use units::{UnitPriced, UnitPrices};
pub use usage::{Part, UnitKey, Usage, address, lent_address, snapshot_at_most, snapshot_of_at_most, volume};

use jiff::SignedDuration;

/// A price of the API is asked for again after so long: price lists change a few times a year.
pub const ASKED_EACH: SignedDuration = SignedDuration::from_hours(24);
/// A price that was last read longer ago than this is not known any more.
pub const GOOD_FOR: SignedDuration = SignedDuration::from_hours(24 * 30);
/// The same of a Spot price.
pub const SPOT_GOOD_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Why a price is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unpriced {
    /// Its price changes by the hour and is not on the list.
    #[error("a Spot instance does not cost the on-demand price")]
    Spot,
    /// Bought in another way, in the provider's words.
    #[error("it was bought as `{0}`, not on demand")]
    NotOnDemand(String),
    /// Of what no prices are read in Google Cloud.
    #[error("of Google Cloud only machines' prices are read yet")]
    Google,
    /// A file of AWS's prices is the source.
    #[error("`pricing.source` is \"file\", which has none of Google Cloud's")]
    GoogleNotInFile,
    /// Something that it is billed for beside what has a price here.
    #[error("{0} is billed besides, and that price is not read")]
    Besides(String),
    /// The host is billed, not the instance.
    #[error("it lies on a dedicated host, which is billed as a whole")]
    DedicatedHost,
    /// The machine stands in the customer's own building.
    #[error("it lies on an Outpost, whose capacity is billed as a whole")]
    Outpost,
    /// A part of the key is missing.
    #[error("the provider did not say its {0}")]
    FactUnknown(&'static str),
    /// A part of the key is a word that this version does not know.
    #[error("its {what} `{word}` is not in the table of known ones")]
    NotKnown {
        /// Which part.
        what: &'static str,
        /// The provider's word.
        word: String,
    },
    /// An address of the customer's own range, which AWS does not bill.
    #[error("it is of the address pool `{0}`, not of Amazon's: AWS does not bill the customer's own addresses")]
    OwnAddress(String),
    /// What is billed is known by its name only.
    #[error("the list of {0} does not have it, or could not be read")]
    NotListed(&'static str),
    /// A sum beyond all prices.
    #[error("it is more than can be counted")]
    TooMuch,
    /// EC2 was asked, and told none.
    #[error("EC2 tells no Spot price of {0}")]
    NoSpotPrice(String),
    /// The list has no such row.
    #[error("the price list has no row for {0}")]
    NoRow(String),
    /// The list has several.
    #[error("the price list has {rows} rows for {key}")]
    Ambiguous {
        /// For what.
        key: String,
        /// How many.
        rows: usize,
    },
    /// The one row does not state one price in USD, per the unit that is billed.
    #[error("the price list's row {sku} does not state a price: {why}")]
    Row {
        /// Which row.
        sku: String,
        /// What is wrong with it.
        why: String,
    },
    /// The price list could not be read.
    #[error("the price list could not be read: {0}")]
    Source(String),
    /// Prices are switched off.
    #[error("no price list is configured (pricing.source is `none`)")]
    Off,
}
