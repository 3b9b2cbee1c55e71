//! What answers come to, page by page and metric by metric.

use super::*;
use aws_sdk_cloudwatch::types::StatusCode;
use jiff::SignedDuration;
use model::{Provider, ResourceKey, ResourceKind};
use proptest::prelude::*;

const HOUR: i64 = 3_600;

fn window() -> UsageWindow {
    let now = Timestamp::from_second(1_790_000_000).unwrap_or_default();
    UsageWindow::hours_before(now, SignedDuration::from_hours(24))
}

fn machine() -> ResourceKey {
    let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
    scope.key(ResourceKind::Instance, "i-1")
}

fn result(id: &str, status: &str, points: &[(i64, f64)]) -> MetricDataResult {
    let from = window().from.as_second();
    let time = |(hour, _): &(i64, f64)| DateTime::from_secs(from + hour * HOUR);
    MetricDataResult::builder()
        .id(id)
        .status_code(StatusCode::from(status))
        .set_timestamps(Some(points.iter().map(time).collect()))
        .set_values(Some(points.iter().map(|(_, value)| *value).collect()))
        .build()
}

fn usage_of(results: Vec<MetricDataResult>) -> Result<Option<Usage>, Failure> {
    let mut series: HashMap<String, Series> = HashMap::new();
    for result in results {
        let part = part(result).expect("a query's name");
        series.entry(part.query.clone()).or_default().take(part);
    }
    of_machine(&series, 0, &machine(), &window())
}

fn whole(cpu: &[(i64, f64)], received: &[(i64, f64)], sent: &[(i64, f64)]) -> Vec<MetricDataResult> {
    [cpu, received, sent].iter().zip(0..).map(|(points, n)| result(&query(0, n), "Complete", points)).collect()
}

#[test]
fn the_busiest_hour_of_both_directions_together_is_told_and_rounded_up() {
    let usage = usage_of(whole(
        &[(0, 0.5), (1, 1.234_567), (2, 0.1)],
        &[(0, 3_600.0), (1, 7_200.0), (2, 0.0)],
        &[(0, 3_601.0), (1, 0.0), (2, 0.0)],
    ));
    let usage = usage.expect("known").expect("measured");
    assert_eq!((usage.busiest_cpu_millionths, usage.busiest_network_bytes_per_s), (Some(12_346), Some(3)));
    assert_eq!((usage.periods, usage.period_s), (3, 3_600));
}

#[test]
fn nothing_measured_is_none_and_never_zero() {
    assert_eq!(usage_of(whole(&[], &[], &[])), Ok(None));
    let usage = usage_of(whole(&[(0, 0.0)], &[], &[])).expect("known").expect("measured");
    assert_eq!((usage.busiest_cpu_millionths, usage.busiest_network_bytes_per_s), (Some(0), None));
    let one_way = usage_of(whole(&[], &[(0, 5.0)], &[])).expect("known");
    assert_eq!(one_way, None, "what was received alone says nothing of the network");
}

#[test]
fn a_period_counts_only_where_all_that_is_told_was_measured() {
    let usage = usage_of(whole(&[(0, 1.0), (1, 1.0)], &[(1, 1.0), (2, 1.0)], &[(1, 1.0), (2, 1.0), (3, 9e9)]));
    assert_eq!(usage.expect("known").expect("measured").periods, 1);
}

#[test]
fn pages_of_one_query_are_one_series_and_the_last_word_counts() {
    let mut pages = vec![result("m0_0", "PartialData", &[(0, 9.0)])];
    pages.extend(whole(&[(1, 2.0)], &[], &[]));
    assert_eq!(usage_of(pages).expect("known").expect("measured").busiest_cpu_millionths, Some(90_000));
    let mut cut = whole(&[(1, 2.0)], &[], &[]);
    cut.push(result("m0_0", "PartialData", &[(2, 2.0)]));
    assert_eq!(usage_of(cut).expect_err("not to its end").kind, FailureKind::Provider);
}

#[test]
fn an_answer_that_cannot_be_makes_the_machine_not_known() {
    for (status, kind) in [
        ("Forbidden", FailureKind::Denied),
        ("InternalError", FailureKind::Provider),
        ("PartialData", FailureKind::Provider),
        ("BrandNew", FailureKind::Provider),
    ] {
        let mut results = whole(&[], &[], &[]);
        results[1] = result("m0_1", status, &[(0, 1.0)]);
        let why = usage_of(results).expect_err("not known");
        assert_eq!(why.kind, kind);
        assert_eq!(why.message, format!("NetworkIn of i-1: {status}"));
    }
    for points in [[(0, -1.0)], [(0, f64::NAN)], [(0, f64::INFINITY)], [(-1, 1.0)], [(24, 1.0)]] {
        let why = usage_of(whole(&points, &[], &[])).expect_err("not known");
        assert_eq!(why.kind, FailureKind::Malformed, "{points:?}");
    }
    assert_eq!(usage_of(Vec::new()).expect_err("no answer").kind, FailureKind::Malformed);
    let mut unlike = whole(&[(0, 1.0)], &[], &[]);
    unlike[0].timestamps = None;
    assert_eq!(usage_of(unlike).expect_err("no times").kind, FailureKind::Malformed);
    let mut silent = whole(&[(0, 1.0)], &[], &[]);
    silent[2].status_code = None;
    assert_eq!(usage_of(silent).expect_err("no status").kind, FailureKind::Malformed);
    assert!(part(MetricDataResult::builder().build()).is_err(), "nobody knows whose it is");
}

#[test]
fn a_full_call_has_no_more_queries_than_aws_takes() {
    let machines = vec![machine(); QUERIES / ASKED.len()];
    let queries = queries(&machines, &window());
    assert_eq!(queries.len(), 498);
    let names: std::collections::HashSet<_> = queries.iter().filter_map(|query| query.id.clone()).collect();
    assert_eq!(names.len(), queries.len());
}

proptest! {
    #[test]
    fn no_machine_looks_quieter_than_any_of_its_points(
        cpu in prop::collection::btree_map(0_i64..24, 0.0_f64..100.0, 0..24),
        received in prop::collection::btree_map(0_i64..24, 0.0_f64..1e12, 0..24),
        sent in prop::collection::btree_map(0_i64..24, 0.0_f64..1e12, 0..24),
    ) {
        let points = |map: &BTreeMap<i64, f64>| map.iter().map(|(hour, value)| (*hour, *value)).collect::<Vec<_>>();
        let usage = usage_of(whole(&points(&cpu), &points(&received), &points(&sent))).expect("known");
        let told = usage.as_ref().and_then(|usage| usage.busiest_cpu_millionths);
        prop_assert_eq!(told.is_some(), !cpu.is_empty() );
        for value in cpu.values() {
            prop_assert!(f64::from(told.unwrap_or(0)) >= value * 10_000.0);
        }
        let both = received.keys().filter(|hour| sent.contains_key(hour)).count();
        prop_assert_eq!(usage.as_ref().and_then(|usage| usage.busiest_network_bytes_per_s).is_some(), both > 0);
        prop_assert!(usage.is_none_or(|usage| usage.periods <= 24));
    }
}
