#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{inventory::sample, store::corrupt};
use model::HourlyRate;
use recommender::catalogue::{Architecture, Burst, Limits, MachineType, Platform};

const NOW: Timestamp = Timestamp::constant(1_795_000_000, 0);

fn ago(days: i64) -> Timestamp {
    NOW - SignedDuration::from_hours(24 * days)
}

fn offered_type(name: &str, modes: &[&str]) -> OfferedType {
    OfferedType {
        machine_type: MachineType {
            name: name.to_owned(),
            family: "m5".to_owned(),
            architecture: Architecture::X86_64,
            platform: Platform::Unknown,
            vcpus: 2,
            threads_per_core: None,
            mhz: None,
            memory_mib: 8_192,
            accelerators: None,
            local_disk_gib: None,
            burst: Burst::Unknown,
            network: Limits::default(),
            disk: Limits::default(),
            disk_operations: Limits::default(),
            interfaces: None,
        },
        boot_modes: Some(modes.iter().map(|mode| (*mode).to_owned()).collect()),
    }
}

fn price(micros: i64, effective_from: Timestamp, read_at: Timestamp) -> KnownPrice {
    KnownPrice { price: HourlyRate::from_micros(micros), effective_from, read_at }
}

/// The machine of the samples is an m5.large in eu-central-1a.
fn prices(of_other: Vec<KnownPrice>) -> ListPrices {
    let key = PriceKey::of(&sample::instance()).unwrap();
    let other = key.list().of_type("m5.small");
    ListPrices {
        source: PricingSource::Api,
        read_at: [(key.list(), ago(1))].into(),
        history: [(key, vec![price(115_000, ago(9), ago(1))]), (other, of_other)].into(),
        at: NOW,
    }
}

fn offered() -> Offered {
    let types = ["m5.large", "m5.small", "m5.elsewhere", "m5.legacy"];
    let modes: [&[&str]; 4] = [&["uefi"], &["legacy-bios", "uefi"], &["uefi"], &["legacy-bios"]];
    let zone = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Offered {
        types: types.iter().zip(modes).map(|(name, modes)| offered_type(name, modes)).collect(),
        zones: [
            ("eu-central-1a".to_owned(), zone(&["m5.large", "m5.small", "m5.legacy", "m5.undescribed"])),
            ("eu-central-1b".to_owned(), zone(&["m5.large", "m5.elsewhere"])),
        ]
        .into(),
    }
}

fn rate_of_other(of_other: Vec<KnownPrice>) -> Rate {
    let catalogue = of(&sample::instance(), &offered(), &prices(of_other));
    catalogue.offer("m5.small").unwrap().prices.list.clone()
}

#[test]
fn a_zone_offers_what_it_lists_and_what_boots_all_that_the_present_type_boots() {
    let catalogue = of(&sample::instance(), &offered(), &prices(vec![price(50_000, ago(9), ago(1))]));
    assert_eq!((catalogue.region.as_str(), catalogue.zone.as_str()), ("eu-central-1", "eu-central-1a"));
    let names: Vec<_> = catalogue.offers.iter().map(|offer| offer.machine_type.name.as_str()).collect();
    assert_eq!(names, ["m5.large", "m5.small"]);
    let rates: Vec<_> = catalogue.offers.iter().map(|offer| offer.prices.list.known()).collect();
    assert_eq!(rates, [115_000, 50_000].map(|micros| Some(HourlyRate::from_micros(micros))));
    assert!(
        catalogue.offers.iter().all(|offer| matches!(&offer.prices.effective, Rate::Unknown(why) if why == NOT_READ))
    );

    let elsewhere = Instance { availability_zone: None, ..sample::instance() };
    assert_eq!(of(&elsewhere, &offered(), &prices(Vec::new())).offers, []);
}

#[test]
fn a_price_is_known_if_the_list_had_it_when_it_was_last_read() {
    let known = |micros| Rate::Known(HourlyRate::from_micros(micros));
    let is_unknown =
        |rate: Rate, why: &str| assert!(matches!(&rate, Rate::Unknown(because) if because.contains(why)), "{rate:?}");
    assert_eq!(rate_of_other(vec![price(1, ago(9), ago(1))]), known(1));
    is_unknown(rate_of_other(Vec::new()), "no row for m5.small, Linux, Shared, in eu-central-1");
    // It was on the list two days ago, and no more when that was read yesterday: missing, or there twice.
    is_unknown(rate_of_other(vec![price(1, ago(9), ago(2))]), "no row for m5.small");
    // It changed two days ago.
    let changed = || vec![price(1, ago(9), ago(3)), price(2, ago(2), ago(1))];
    assert_eq!(rate_of_other(changed()), known(2));
    let then = ListPrices { at: ago(4), ..prices(changed()) };
    let catalogue = of(&sample::instance(), &offered(), &then);
    assert_eq!(catalogue.offer("m5.small").unwrap().prices.list, known(1), "the price of that day");
}

#[test]
fn a_list_that_was_not_read_and_an_old_one_tell_no_price() {
    let of = |prices: ListPrices| {
        let catalogue = of(&sample::instance(), &offered(), &prices);
        catalogue.offer("m5.large").unwrap().prices.list.clone()
    };
    let why = |rate: Rate| match rate {
        Rate::Unknown(why) => why,
        Rate::Known(rate) => panic!("{rate}"),
    };
    let unread = ListPrices { read_at: BTreeMap::new(), ..prices(Vec::new()) };
    assert_eq!(why(of(unread)), "the prices of Linux, Shared, in eu-central-1 have not been read as a whole");
    let off = ListPrices { source: PricingSource::None, ..prices(Vec::new()) };
    assert!(why(of(off)).contains("`none`"));
    let later = ListPrices { at: NOW + SignedDuration::from_hours(24 * 30), ..prices(Vec::new()) };
    assert!(why(of(later)).contains("no row"));
}

#[test]
fn a_catalogue_that_cannot_be_read_is_not_known_and_ends_nothing_else() {
    let kept = |days| Ok(Some((ago(days), offered())));
    assert!(known(kept(7), NOW).unwrap().is_ok());
    let why = |kept| known(kept, NOW).unwrap().unwrap_err();
    assert!(why(kept(8)).ends_with("more than a week ago"));
    assert!(why(Ok(None)).starts_with("a sweep reads it"));
    assert_eq!(why(Err(corrupt("the catalogue", "no JSON"))), "what was kept of it cannot be read by this version");
    // That the database does not answer is no fact about the catalogue.
    let refused = StoreError::Database { doing: "read a catalogue", source: sea_orm::DbErr::Custom("busy".to_owned()) };
    assert!(matches!(known(Err(refused), NOW), Err(StoreError::Database { .. })));
}
