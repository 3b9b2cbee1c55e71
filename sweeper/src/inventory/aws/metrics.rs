//! What CloudWatch measured of machines, read for those alone that are named: it is billed.
//!
//! Needs `cloudwatch:GetMetricData`. Three metrics for each machine (CPU, network in, network out) as means or sums of an
//! hour, 500 metrics a call, so 166 machines. AWS bills $0.01 for 1,000 metrics, however many points each has:
//! 1,000 machines once a day are $0.90 in 30 days. A look-back of 14 days is 336 points for each metric, two pages for
//! a full call; at 80 % of the rate that AWS allows 50,000 machines take 13 minutes. <https://aws.amazon.com/cloudwatch/pricing/>
//!
//! It refuses to guess: a metric that is not answered as complete makes its machine not known, and so does a point that
//! cannot be; a metric without any point is none, not zero. What was answered for one machine is known whatever happens to
//! the others, since each is asked for by name.

use model::ResourceKey;
use std::collections::{BTreeMap, HashMap};

use aws_sdk_cloudwatch::{
    primitives::DateTime,
    types::{Dimension, Metric, MetricDataQuery, MetricDataResult, MetricStat, ScanBy},
};
use futures::{StreamExt, stream};
use jiff::Timestamp;

use super::{Accounts, collect::list, place::Place};
use crate::inventory::{
    Failure, FailureKind, Kind, Listing, Outcome, Progress, Scope, Usage, UsageAnswer, UsageSource, UsageWindow,
    reader::{Api, Refused},
};

const METRICS: Api = Api::cloudwatch("cloudwatch:GetMetricData");
/// CloudWatch refuses more in one call.
const QUERIES: usize = 500;
/// Calls that are under way at once in one scope; the limiter spaces them.
const AT_ONCE: usize = 4;

/// What is asked of each machine: the metric, and what of each period.
const ASKED: [(&str, &str); 3] = [("CPUUtilization", "Average"), ("NetworkIn", "Sum"), ("NetworkOut", "Sum")];

/// What could be read, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Of the machines that were answered for.
    pub answers: Vec<UsageAnswer>,
    /// Why the others are not known, if there are any.
    pub failed: Option<Failure>,
}

impl Measured {
    /// What the report says of it, if this many answers are known with those that were kept.
    #[must_use]
    pub fn listing(&self, scope: &Scope, known: usize) -> Listing {
        let outcome = match &self.failed {
            None => Outcome::Complete { listed: known },
            Some(why) => Outcome::Failed { what: METRICS.name.to_owned(), why: why.clone() },
        };
        Listing::of(scope, Kind::Usage, outcome)
    }
}

/// Asks for these machines of one scope.
pub async fn usage(
    accounts: &Accounts,
    scope: &Scope,
    machines: &[ResourceKey],
    window: &UsageWindow,
    now: Timestamp,
    progress: &dyn Progress,
) -> Measured {
    let Some(place) = accounts.place(scope) else {
        let message = format!("account {} is not open here", scope.account);
        let failed = Some(Failure { kind: FailureKind::Credentials, message });
        return Measured { failed, ..Measured::default() };
    };
    let place = &place;
    let calls: Vec<Vec<ResourceKey>> = machines.chunks(QUERIES / ASKED.len()).map(<[_]>::to_vec).collect();
    let mut reading = stream::iter(calls)
        .map(|machines| async move {
            let read = ask(place, &machines, window, scope, progress).await;
            (machines, read)
        })
        .buffer_unordered(AT_ONCE);
    let (mut measured, mut unknown) = (Measured::default(), Vec::new());
    while let Some((machines, read)) = reading.next().await {
        let series = match read {
            Ok(series) => series,
            // The other calls would fail alike, and each has its price.
            Err(why) => {
                measured.failed = Some(why);
                return measured;
            }
        };
        for (number, id) in machines.iter().enumerate() {
            match of_machine(&series, number, id, window) {
                Ok(usage) => {
                    let source = UsageSource::CloudWatch;
                    measured.answers.push(UsageAnswer { id: id.clone(), source, asked_at: now, usage });
                }
                Err(why) => unknown.push(why),
            }
        }
    }
    if let Some(first) = unknown.first() {
        let message = format!("not known of {} of {} machines: {}", unknown.len(), machines.len(), first.message);
        measured.failed = Some(Failure { kind: first.kind, message });
    }
    measured
}

async fn ask(
    place: &Place,
    machines: &[ResourceKey],
    window: &UsageWindow,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<HashMap<String, Series>, Failure> {
    let queries = queries(machines, window);
    let told = |listed| progress.page(scope, Kind::Usage, listed);
    let parts = place.pages(METRICS, told, |token| {
        let request = place.cloudwatch().get_metric_data().set_metric_data_queries(Some(queries.clone()));
        let request = request.start_time(DateTime::from_secs(window.from.as_second()));
        let request = request.end_time(DateTime::from_secs(window.until.as_second()));
        let request = request.scan_by(ScanBy::TimestampAscending).set_next_token(token);
        async move {
            let page = request.send().await?;
            let parts = list(page.metric_data_results, "metric data results")?;
            let parts: Result<Vec<_>, _> = parts.into_iter().map(part).collect();
            Ok((parts.map_err(Refused::malformed)?, page.next_token))
        }
    });
    let mut series: HashMap<String, Series> = HashMap::new();
    for part in parts.await? {
        series.entry(part.query.clone()).or_default().take(part);
    }
    Ok(series)
}

/// The name of a query within its call: `m17_0` is the first metric of the machine of that number.
fn query(machine: usize, metric: usize) -> String {
    format!("m{machine}_{metric}")
}

fn queries(machines: &[ResourceKey], window: &UsageWindow) -> Vec<MetricDataQuery> {
    let mut queries = Vec::with_capacity(machines.len() * ASKED.len());
    for (machine, id) in machines.iter().enumerate() {
        for (number, (metric, stat)) in ASKED.into_iter().enumerate() {
            let metric = Metric::builder()
                .namespace("AWS/EC2")
                .metric_name(metric)
                .dimensions(Dimension::builder().name("InstanceId").value(&id.id).build())
                .build();
            let period = i32::try_from(window.period_s).unwrap_or(i32::MAX);
            let stat = MetricStat::builder().metric(metric).period(period).stat(stat).build();
            let query = MetricDataQuery::builder().id(query(machine, number)).metric_stat(stat).return_data(true);
            queries.push(query.build());
        }
    }
    queries
}

/// What one page says of one query.
#[derive(Debug)]
struct Part {
    query: String,
    status: Option<String>,
    /// By the second that the period begins with; none if an answer's times and values do not belong together.
    points: Option<Vec<(i64, f64)>>,
}

fn part(result: MetricDataResult) -> Result<Part, String> {
    let query = result.id.ok_or("a metric data result does not say which query it answers")?;
    let (times, values) = (result.timestamps.unwrap_or_default(), result.values.unwrap_or_default());
    let points = (times.len() == values.len()).then(|| times.iter().map(DateTime::secs).zip(values).collect());
    Ok(Part { query, status: result.status_code.map(|status| status.as_str().to_owned()), points })
}

/// All pages of one query together.
#[derive(Debug, Default)]
struct Series {
    /// That of the last page which speaks of it: the ones before it are partial by their nature.
    status: Option<String>,
    points: BTreeMap<i64, f64>,
    broken: bool,
}

impl Series {
    fn take(&mut self, part: Part) {
        self.status = part.status;
        match part.points {
            Some(points) => self.points.extend(points),
            None => self.broken = true,
        }
    }
}

/// What one machine's answers come to; none if nothing was measured.
fn of_machine(
    series: &HashMap<String, Series>,
    number: usize,
    id: &ResourceKey,
    window: &UsageWindow,
) -> Result<Option<Usage>, Failure> {
    let of = |metric: usize| {
        let points = series.get(&query(number, metric)).ok_or("no answer").map_err(|why| (FailureKind::Malformed, why));
        let points = points.and_then(|series| points_of(series, window));
        points.map_err(|(kind, why)| Failure { kind, message: format!("{} of {}: {why}", ASKED[metric].0, id.id) })
    };
    let (cpu, received, sent) = (of(0)?, of(1)?, of(2)?);
    let both = |(second, received): (&i64, &f64)| Some((*second, received + sent.get(second)?));
    let network: BTreeMap<i64, f64> = received.iter().filter_map(both).collect();
    let periods = match (cpu.is_empty(), network.is_empty()) {
        (true, true) => return Ok(None),
        (false, true) => cpu.len(),
        (true, false) => network.len(),
        (false, false) => cpu.keys().filter(|second| network.contains_key(second)).count(),
    };
    let highest = |points: &BTreeMap<i64, f64>| points.values().copied().reduce(f64::max);
    Ok(Some(Usage {
        id: id.clone(),
        source: UsageSource::CloudWatch,
        from: window.from,
        until: window.until,
        period_s: window.period_s,
        periods: u32::try_from(periods).unwrap_or(u32::MAX),
        // A per cent is 10,000 millionths.
        busiest_cpu_millionths: highest(cpu).map(|percent| u32::try_from(up(percent * 10_000.0)).unwrap_or(u32::MAX)),
        busiest_network_bytes_per_s: highest(&network).map(|bytes| up(bytes / f64::from(window.period_s))),
    }))
}

fn points_of<'a>(series: &'a Series, window: &UsageWindow) -> Result<&'a BTreeMap<i64, f64>, (FailureKind, &'a str)> {
    match series.status.as_deref() {
        Some("Complete") => {}
        Some("Forbidden") => return Err((FailureKind::Denied, "Forbidden")),
        Some(other) => return Err((FailureKind::Provider, other)),
        None => return Err((FailureKind::Malformed, "the answer has no status")),
    }
    if series.broken {
        return Err((FailureKind::Malformed, "times and values do not belong together"));
    }
    let asked = window.from.as_second()..window.until.as_second();
    if series.points.keys().any(|second| !asked.contains(second)) {
        return Err((FailureKind::Malformed, "a point of another time than was asked for"));
    }
    if series.points.values().any(|value| !value.is_finite() || *value < 0.0) {
        return Err((FailureKind::Malformed, "a value that cannot be"));
    }
    Ok(&series.points)
}

/// The next whole number, so that a machine never looks quieter than it was.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0 ..= 2^53 before, which both types hold exactly"
)]
fn up(value: f64) -> u64 {
    value.ceil().clamp(0.0, 9_007_199_254_740_992.0) as u64
}

#[cfg(test)]
mod tests;
