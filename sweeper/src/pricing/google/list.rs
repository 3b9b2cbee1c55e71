//! The catalogue's SKUs by what they are for, and the price of a machine from them. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use model::HourlyRate;

use super::{
    machine::{Bill, ON_DEMAND, Part, SPOT},
    series::{LOCAL_SSD, all_names},
};
use crate::{
    inventory::gcp::{Rate, Sku},
    pricing::{ReadPrice, Unpriced},
};

/// What the price of one machine may rest on: some thousand SKUs for all regions.
#[derive(Clone, Debug, Default)]
pub struct SkuList {
    by_name: HashMap<Name, Vec<Row>>,
}

/// What a SKU is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    region: String,
    /// `N2 Instance Core`
    name: String,
    spot: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    sku_id: String,
    /// Or what is wrong with it.
    rate: Result<Rate, String>,
}

/// A SKU that may be a part of a machine's price.
#[derive(Clone, Debug)]
pub struct KeptSku {
    name: String,
    spot: bool,
    regions: Vec<String>,
    row: Row,
}

/// Which SKUs may be parts of prices.
#[derive(Debug)]
pub struct Filter {
    names: HashSet<String>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { names: all_names().into_iter().collect() }
    }
}

impl Filter {
    /// A SKU whose description, way of buying and name are known; none for any other.
    #[must_use]
    pub fn keep(&self, sku: Sku) -> Option<KeptSku> {
        let Described { name, spot } = described(&sku.description)?;
        if !self.names.contains(name) {
            return None;
        }
        // Google calls disks of Spot machines' hosts bought on demand, too.
        let is_so = match sku.usage_type() {
            ON_DEMAND => !spot || name == LOCAL_SSD,
            SPOT => spot,
            _ => false,
        };
        let row = Row { sku_id: sku.sku_id.clone(), rate: sku.rate() };
        is_so.then(|| KeptSku { name: name.to_owned(), spot, regions: sku.service_regions, row })
    }
}

/// What a description says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    pub(super) spot: bool,
}

/// `Spot Preemptible N2 Instance Core running in Frankfurt`, `Nvidia L4 GPU attached to Spot Preemptible VMs running in Frankfurt`,
/// `SSD backed Local Storage in Frankfurt`; none for what has another form.
pub(super) fn described(description: &str) -> Option<Described<'_>> {
    let (rest, spot_machine) = match description.strip_prefix("Spot Preemptible ") {
        Some(rest) => (rest, true),
        None => (description, false),
    };
    let (what, place) = match rest.split_once(" running in ") {
        Some((what, place)) => (what, Some(place)),
        None => match rest.strip_prefix(LOCAL_SSD).map(|end| end.split_once(" in ")) {
            Some(Some((end, place))) => (rest.get(..LOCAL_SSD.len() + end.len())?, Some(place)),
            Some(None) => (rest, None),
            None => return None,
        },
    };
    if !place.is_none_or(is_place) {
        return None;
    }
    let (name, spot_part) = match what.strip_suffix(" attached to Spot Preemptible VMs") {
        Some(name) => (name, true),
        None => (what, false),
    };
    (!(spot_machine && spot_part)).then_some(Described { name, spot: spot_machine || spot_part })
}

/// A name of a place and nothing behind it: `Northern Virginia`, `São Paulo`, `Americas`. What it says is not heeded, since the SKU lists its regions.
fn is_place(text: &str) -> bool {
    let no_place = ["for", "with", "on", "and", "under", "by", "commitment", "reserved", "reservation"];
    let is_word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '\''))
            && !no_place.contains(&word.to_lowercase().as_str())
    };
    let words: Vec<&str> = text.split(' ').collect();
    words.len() <= 4 && words.into_iter().all(is_word)
}

impl FromIterator<KeptSku> for SkuList {
    fn from_iter<T: IntoIterator<Item = KeptSku>>(skus: T) -> Self {
        let mut list = Self::default();
        for KeptSku { name, spot, regions, row } in skus {
            for region in regions.into_iter().collect::<BTreeSet<_>>() {
                let rows = list.by_name.entry(Name { region, name: name.clone(), spot }).or_default();
                // The same row may come twice, if the catalogue changes while its pages are read; Google dates it by when it was asked.
                if !rows.iter().any(|known| known.says_as(&row)) {
                    rows.push(row.clone());
                }
            }
        }
        list
    }
}

impl Row {
    fn says_as(&self, other: &Self) -> bool {
        let said = |rate: &Rate| (rate.nano_usd, rate.unit.clone(), rate.hours);
        self.sku_id == other.sku_id
            && match (&self.rate, &other.rate) {
                (Ok(one), Ok(other)) => said(one) == said(other),
                (one, other) => one == other,
            }
    }
}

/// Each part is a fraction of these: MiB of a GiB, quarters of a core.
const PARTS: u128 = 1_024;

impl SkuList {
    /// So many prices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether it has none: then it is no catalogue of Compute Engine's.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// What a machine costs by the hour: the sum of all its parts, each by exactly one SKU, rounded once; and these parts: `2922-40C5-B19F: 8 × 31611000 billionths of
    /// a dollar per h; …; as of 2026-11-26T22:49:22.905126Z`, the latest of the moments that Google names.
    ///
    /// # Errors
    /// Which part has no price, and why.
    pub fn price(&self, bill: &Bill) -> Result<ReadPrice, Unpriced> {
        let mut rated = Vec::new();
        for part in &bill.parts {
            let Row { sku_id, rate } = self.row(bill, part)?;
            let wrong = |why: String| Unpriced::Row { sku: sku_id.clone(), why };
            let rate = rate.as_ref().map_err(|why| wrong(why.clone()))?;
            if !part.units.contains(&rate.unit.as_str()) {
                return Err(wrong(format!("its price is per `{}`", rate.unit)));
            }
            rated.push((part.amount, sku_id, rate));
        }
        let hours: BTreeSet<u64> = rated.iter().map(|(.., rate)| rate.hours).collect();
        let parts = hours.iter().try_fold(PARTS, |parts, hours| parts.checked_mul((*hours).into()));
        let parts = parts.ok_or(Unpriced::TooMuch)?;
        let (mut sum, mut as_of) = (0_u128, Timestamp::MIN);
        for ((amount, of), _, rate) in &rated {
            let times = parts / (u128::from(*of) * u128::from(rate.hours));
            let cost = u128::from(rate.nano_usd).checked_mul(u128::from(*amount) * times);
            sum = cost.and_then(|cost| sum.checked_add(cost)).ok_or(Unpriced::TooMuch)?;
            as_of = as_of.max(rate.as_of);
        }
        // Billionths to millionths, half up.
        let micros = (sum + parts * 500) / (parts * 1_000);
        let micros = i64::try_from(micros).map_err(|_| Unpriced::TooMuch)?;
        let told = |((amount, of), sku, rate): &((u64, u64), &String, &Rate)| {
            let amount = if amount % of == 0 { (amount / of).to_string() } else { format!("{amount}/{of}") };
            let hours = if rate.hours == 1 { String::new() } else { format!(" of {} hours", rate.hours) };
            format!("{sku}: {amount} × {} billionths of a dollar per {}{hours}", rate.nano_usd, rate.unit)
        };
        let rows: Vec<String> = rated.iter().map(told).collect();
        Ok(ReadPrice {
            per_hour: HourlyRate::from_micros(micros),
            source_rows: format!("{}; as of {as_of}", rows.join("; ")),
        })
    }

    fn row(&self, bill: &Bill, part: &Part) -> Result<&Row, Unpriced> {
        let region = &bill.key.region;
        let of = |name: &String| {
            let name = Name { region: region.clone(), name: name.clone(), spot: bill.spot };
            self.by_name.get(&name).map_or(&[][..], Vec::as_slice)
        };
        let rows: Vec<&Row> = part.names.iter().flat_map(of).collect();
        let key = || {
            let how = if bill.spot { "Spot, " } else { "" };
            let name = part.names.first().map_or("", String::as_str);
            format!("{name}, {how}in {region}, for {}", bill.key.instance_type)
        };
        match rows.as_slice() {
            [] => Err(Unpriced::NoRow(key())),
            [row] => Ok(row),
            rows => Err(Unpriced::Ambiguous { key: key(), rows: rows.len() }),
        }
    }
}
