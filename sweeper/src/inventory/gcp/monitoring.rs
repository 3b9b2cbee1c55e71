//! What Cloud Monitoring measured of machines from outside: weak evidence, see [`Usage`].
//!
//! Three chains of pages for a whole project (processor, bytes received, bytes sent), each with 24 points of an hour for each machine
//! that ran. <https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list>

use ::model::ResourceKey;
use std::collections::{BTreeMap, BTreeSet};

use google_cloud_monitoring_v3::model::{
    Aggregation, ListTimeSeriesResponse, Point, TimeInterval, TimeSeries,
    aggregation::{Aligner, Reducer},
    list_time_series_request::TimeSeriesView,
    typed_value,
};
use google_cloud_wkt as wkt;
use jiff::Timestamp;

use super::{collect::machines_failed, place::Place};
use crate::inventory::{
    Failure, FailureKind, InstanceState, Inventory, Kind, Listing, Outcome, Usage, UsageSource,
    reader::{Api, Refused, Remedy},
};

const LIST: Api = Api::google("monitoring.timeSeries.list", "monitoring");
const PERIOD_S: u32 = 3_600;
const PERIODS: u32 = 24;
/// Points of one page, the most that there may be.
const PAGE_SIZE: i32 = 100_000;

const CPU: &str = "compute.googleapis.com/instance/cpu/utilization";
const RECEIVED: &str = "compute.googleapis.com/instance/network/received_bytes_count";
const SENT: &str = "compute.googleapis.com/instance/network/sent_bytes_count";

/// Zone and number of a machine.
type Machine = (String, String);
/// By machine and the second at which a period ends.
type Points = BTreeMap<Machine, BTreeMap<i64, f64>>;

/// What was measured of all machines of a project.
pub(super) struct Measured {
    from: Timestamp,
    until: Timestamp,
    cpu: Points,
    received: Points,
    sent: Points,
}

/// The last 24 whole hours.
pub(super) async fn usage(place: &Place<'_>) -> Result<Measured, Failure> {
    let now = Timestamp::now().as_second();
    let period = i64::from(PERIOD_S);
    let until = now - now.rem_euclid(period);
    let from = until - period * i64::from(PERIODS);
    let interval = (from, until);
    let (cpu, received, sent) = futures::try_join!(
        points(place, CPU, Aligner::AlignMean, interval),
        points(place, RECEIVED, Aligner::AlignRate, interval),
        points(place, SENT, Aligner::AlignRate, interval),
    )?;
    let at = |second| Timestamp::from_second(second).unwrap_or_default();
    Ok(Measured { from: at(from), until: at(until), cpu, received, sent })
}

async fn points(
    place: &Place<'_>,
    metric: &str,
    aligner: Aligner,
    (from, until): (i64, i64),
) -> Result<Points, Failure> {
    let series = place.pages(LIST, |token| {
        let at = |second| wkt::Timestamp::clamp(second, 0);
        let aggregation = Aggregation::new()
            .set_alignment_period(wkt::Duration::clamp(i64::from(PERIOD_S), 0))
            .set_per_series_aligner(aligner.clone())
            // One metric may have several series for a machine, such as its traffic with and without load balancing.
            .set_cross_series_reducer(Reducer::ReduceSum)
            .set_group_by_fields(["resource.labels.instance_id", "resource.labels.zone", "resource.labels.project_id"]);
        let request = place.clients().monitoring.list_time_series();
        let request = request
            .set_name(format!("projects/{}", place.project()))
            .set_filter(format!("metric.type = \"{metric}\" AND resource.type = \"gce_instance\""))
            .set_interval(TimeInterval::new().set_start_time(at(from)).set_end_time(at(until)))
            .set_aggregation(aggregation)
            .set_view(TimeSeriesView::Full)
            .set_page_size(PAGE_SIZE)
            .set_page_token(token.unwrap_or_default());
        async move {
            let ListTimeSeriesResponse { time_series, next_page_token, execution_errors, .. } = request.send().await?;
            if let Some(error) = execution_errors.first() {
                let message = format!("not all of it could be read: {}", error.message);
                return Err(Refused { why: Failure { kind: FailureKind::Provider, message }, remedy: Remedy::Again });
            }
            Ok((time_series, Some(next_page_token)))
        }
    });
    let mut points = Points::new();
    for series in series.await? {
        let Some(machine) = machine(&series) else { continue };
        let of = points.entry(machine).or_default();
        for point in &series.points {
            if let Some((second, value)) = value(point) {
                *of.entry(second).or_default() += value;
            }
        }
    }
    Ok(points)
}

fn machine(series: &TimeSeries) -> Option<Machine> {
    let labels = &series.resource.as_ref()?.labels;
    Some((labels.get("zone")?.clone(), labels.get("instance_id")?.clone()))
}

/// None for a value that is no number: a point that says nothing is no zero.
fn value(point: &Point) -> Option<(i64, f64)> {
    let second = point.interval.as_ref()?.end_time.as_ref()?.seconds();
    let value = match point.value.as_ref()?.value.as_ref()? {
        typed_value::Value::DoubleValue(value) => *value,
        _ => return None,
    };
    (value.is_finite() && value >= 0.0).then_some((second, value))
}

/// Takes it into the inventory, for the machines that are listed there as running.
pub(super) fn add(place: &Place<'_>, measured: Result<Measured, Failure>, inventory: &mut Inventory) {
    let outcome = match (measured, machines_failed(inventory)) {
        (Ok(_), Some(failed)) => failed,
        (Ok(measured), None) => {
            let is_running = |instance: &&crate::inventory::Instance| instance.state == InstanceState::Running;
            let running = inventory.instances.iter().filter(is_running);
            inventory.usage = running.filter_map(|instance| of(&instance.id, &measured)).collect();
            place.told(Kind::Usage, inventory.usage.len());
            Outcome::Complete { listed: inventory.usage.len() }
        }
        (Err(why), _) => Outcome::Failed { what: LIST.name.to_owned(), why },
    };
    inventory.listings.push(Listing::of(place.scope, Kind::Usage, outcome));
}

/// None for a machine of which nothing was measured.
fn of(id: &ResourceKey, measured: &Measured) -> Option<Usage> {
    let machine = (id.location.clone(), id.id.clone());
    let cpu = measured.cpu.get(&machine);
    // Both directions, or it is not known.
    let network = measured.received.get(&machine).zip(measured.sent.get(&machine)).map(|(received, sent)| {
        let both = received.iter().filter_map(|(second, value)| Some((*second, value + sent.get(second)?)));
        both.collect::<BTreeMap<i64, f64>>()
    });
    let cpu = cpu.filter(|points| !points.is_empty());
    let network = network.as_ref().filter(|points| !points.is_empty());
    let seconds = |points: &BTreeMap<i64, f64>| points.keys().copied().collect::<BTreeSet<i64>>();
    let periods = match (cpu.map(seconds), network.map(seconds)) {
        (None, None) => return None,
        (Some(one), None) | (None, Some(one)) => one.len(),
        (Some(one), Some(other)) => one.intersection(&other).count(),
    };
    let busiest = |points: &BTreeMap<i64, f64>| points.values().copied().fold(0.0, f64::max);
    Some(Usage {
        id: id.clone(),
        source: UsageSource::CloudMonitoring,
        from: measured.from,
        until: measured.until,
        period_s: PERIOD_S,
        periods: u32::try_from(periods).unwrap_or(u32::MAX),
        busiest_cpu_millionths: cpu.map(|points| millionths(busiest(points))),
        busiest_network_bytes_per_s: network.map(|points| whole(busiest(points))),
    })
}

/// Rounded up: what is just above nothing is not nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped before to what the type holds; the value is finite and not negative"
)]
fn millionths(share: f64) -> u32 {
    (share * 1e6).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}

/// Likewise.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped before to what the type holds exactly; the value is finite and not negative"
)]
fn whole(bytes: f64) -> u64 {
    bytes.ceil().clamp(0.0, 1e15) as u64
}
