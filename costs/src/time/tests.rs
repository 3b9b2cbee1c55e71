use super::*;

const DOLLAR: HourlyRate = HourlyRate::from_micros(1_000_000);

fn seen(from_s: i64, until_s: Option<i64>, launched_s: i64) -> Version {
    Version { from_s, until_s, runs: Some(true), launched_s: Some(launched_s) }
}

fn stopped(from_s: i64, until_s: Option<i64>) -> Version {
    Version { from_s, until_s, runs: Some(false), launched_s: None }
}

type Spans = Vec<(i64, i64)>;

/// When it is billed, and when nobody knows.
fn told(versions: &[Version], not_listed: &[(i64, i64)]) -> (Spans, Spans) {
    let stretches = stretches(versions, not_listed, 100_000);
    let of = |is: bool| {
        let these = stretches.iter().filter(|one| (one.billed == Billed::Yes) == is && one.from_s < one.until_s);
        these.map(|one| (one.from_s, one.until_s)).collect()
    };
    (of(true), of(false))
}

#[test]
fn a_start_is_billed_from_its_begin_to_the_first_listing_that_shows_it_no_more() {
    assert_eq!(told(&[seen(900, Some(1_800), 500)], &[]).0, [(500, 1_800)]);
    // It was stopped before, and started between two listings.
    let versions = [stopped(0, Some(900)), seen(900, Some(1_800), 500), stopped(1_800, None)];
    assert_eq!(told(&versions, &[]).0, [(500, 1_800)]);
    // One that lasts, and a tag that changes.
    assert_eq!(told(&[seen(900, Some(1_800), 500), seen(1_800, None, 500)], &[]).0, [(500, 1_800), (1_800, 100_000)]);
    // A start that the provider dates behind the listing that shows it.
    assert_eq!(told(&[seen(900, Some(1_800), 901)], &[]).0, [(900, 1_800)]);
}

#[test]
fn a_restart_between_two_listings_begins_a_start_and_nothing_is_billed_twice() {
    let versions = [seen(900, Some(1_800), 500), seen(1_800, None, 1_700)];
    assert_eq!(told(&versions, &[]).0, [(500, 1_700), (1_700, 100_000)]);
    // The first of two starts was 20 s long: 60 are billed, beside the second.
    let versions = [seen(900, Some(960), 890), seen(960, None, 910)];
    assert_eq!(told(&versions, &[]).0, [(890, 950), (910, 100_000)]);
}

#[test]
fn no_start_that_is_over_is_billed_for_less_than_a_minute() {
    assert_eq!(told(&[seen(900, Some(930), 890)], &[]).0, [(890, 950)]);
    assert_eq!(told(&[seen(900, Some(930), 890), stopped(930, None)], &[]).0, [(890, 950)]);
    assert_eq!(told(&[seen(900, Some(910), 890), seen(910, Some(920), 890)], &[]).0, [(890, 910), (910, 950)]);
    // It may go on.
    assert_eq!(told(&[seen(99_990, None, 99_990)], &[]).0, [(99_990, 100_000)]);
}

#[test]
fn what_ended_while_nobody_could_list_it_is_not_known_from_then_on() {
    let not_listed = [(1_000, 2_000), (5_000, i64::MAX)];
    assert_eq!(told(&[seen(900, Some(2_000), 500)], &not_listed), (vec![(500, 1_000)], vec![(1_000, 2_000)]));
    // It is listed behind it, with the same start and another tag, or as it was: it ran through.
    let through = [seen(900, Some(2_000), 500), seen(2_000, Some(3_000), 500)];
    assert_eq!(told(&through, &not_listed), (vec![(500, 2_000), (2_000, 3_000)], vec![]));
    assert_eq!(told(&[seen(900, Some(3_000), 500)], &not_listed), (vec![(500, 3_000)], vec![]));
    // It was started anew meanwhile.
    let anew = [seen(900, Some(2_000), 500), seen(2_000, Some(3_000), 1_500)];
    assert_eq!(told(&anew, &not_listed), (vec![(500, 1_000), (1_500, 3_000)], vec![(1_000, 1_500)]));
    // No sweep has been there since.
    assert_eq!(told(&[seen(900, None, 500)], &not_listed), (vec![(500, 5_000)], vec![(5_000, 100_000)]));
    // It was begun behind it, as the provider tells.
    assert_eq!(told(&[seen(2_000, Some(3_000), 1_200)], &not_listed), (vec![(1_200, 3_000)], vec![]));
}

#[test]
fn what_the_provider_does_not_say_is_not_known() {
    let unsaid = Version { runs: None, launched_s: None, ..seen(900, Some(1_800), 0) };
    assert_eq!(told(&[unsaid], &[]), (vec![], vec![(900, 1_800)]));
    assert_eq!(told(&[], &[]), (vec![], vec![]));
}

#[test]
fn an_hour_comes_to_its_seconds_at_the_price_that_was_in_force() {
    let why: Arc<str> = "no price".into();
    let stretch = Stretch { from_s: 1_800, until_s: 7_201, billed: Billed::Yes, version: 0 };
    let price = |from_s, per_hour| PriceFrom { from_s, good_until_s: 50_000, per_hour };
    let bills = |prices: &[PriceFrom]| {
        let hours = hours(&priced(&stretch, prices, &why), 0, 7_200 + 3_600);
        hours.into_iter().map(|hour| (hour.start_s, hour.micros, hour.billed_s, hour.not_known)).collect::<Vec<_>>()
    };
    let second = 278; // $1 ÷ 3,600 = 277.8 micro-dollars.
    assert_eq!(
        bills(&[price(0, DOLLAR)]),
        [(0, 500_000, 1_800, vec![]), (3_600, 1_000_000, 3_600, vec![]), (7_200, second, 1, vec![])]
    );
    // Two prices within an hour: 900 s at $1 and 2,700 s at $2.
    let twice = [price(0, DOLLAR), price(4_500, HourlyRate::from_micros(2_000_000))];
    assert_eq!(bills(&twice)[1], (3_600, 1_750_000, 3_600, vec![]));
    // None before the first was read, and none once the last is too old.
    let late = [PriceFrom { from_s: 2_700, good_until_s: 5_400, per_hour: DOLLAR }];
    let not_known = |seconds| vec![(Arc::clone(&why), seconds)];
    assert_eq!(
        bills(&late),
        [(0, 250_000, 900, not_known(900)), (3_600, 500_000, 1_800, not_known(1_800)), (7_200, 0, 0, not_known(1))]
    );
    assert_eq!(bills(&[])[1], (3_600, 0, 0, not_known(3_600)));
    // A third of a cent for 7 s: 6.48 micro-dollars, rounded once.
    let stretch = Stretch { from_s: 0, until_s: 7, billed: Billed::At(HourlyRate::from_micros(3_333)), version: 0 };
    assert_eq!(hours(&[stretch], 0, 3_600)[0].micros, 6);
}
