//! The rules by which others call a machine idle, as their own documentation states them, over points of five minutes.

use crate::timetable::{A_DAY, AN_HOUR, Point};

/// What a provider's own documents call a megabyte.
const MEGABYTE: f64 = 1e6;
const SECONDS_A_POINT: f64 = 300.0;

/// A rule that somebody uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// What it says, and where that is written.
    pub(crate) says: &'static str,
    /// Points after which it is asked again.
    pub(crate) every: usize,
    /// Whether it calls a machine idle that has shown these points so far.
    pub(crate) is_idle: fn(&[Point]) -> bool,
}

/// All of them.
pub(crate) const RULES: [Rule; 6] = [
    Rule {
        name: "AWS Compute Optimizer",
        says: "highest CPU below 5 % and network below 5 MB a day, over 14 days, from 30 hours of data on",
        every: A_DAY,
        is_idle: compute_optimizer,
    },
    Rule {
        name: "AWS Trusted Advisor",
        says: "on 4 of the last 14 days an average CPU of 10 % or less and network of 5 MB or less",
        every: A_DAY,
        is_idle: trusted_advisor,
    },
    Rule {
        name: "GCP idle VM",
        says: "over 14 days less than 0.03 vCPU in use for 97 % of the time, and for 95 % less than 2,000 B/s received and 1,000 B/s sent",
        every: A_DAY,
        is_idle: gcp,
    },
    Rule {
        name: "OptScale",
        says: "average CPU of 5 % or less and 1,000 B/s or less over 7 days",
        every: A_DAY,
        is_idle: optscale,
    },
    Rule {
        name: "daily average below 20 %",
        says: "average CPU below 20 % over the last 24 hours",
        every: AN_HOUR,
        is_idle: daily_average,
    },
    Rule {
        name: "CPU below 5 % for half an hour",
        says: "no five minutes of the last 30 minutes with a CPU of 5 % or more",
        every: 1,
        is_idle: half_an_hour,
    },
];

/// The last so many points; none if there are less.
fn last(points: &[Point], count: usize) -> Option<&[Point]> {
    Some(&points[points.len().checked_sub(count)?..])
}

fn average(points: &[Point], value: impl Fn(&Point) -> f64) -> f64 {
    let count = u32::try_from(points.len()).unwrap_or(u32::MAX);
    points.iter().map(value).sum::<f64>() / f64::from(count.max(1))
}

fn bytes(points: &[Point]) -> f64 {
    points.iter().map(|point| point.network() * SECONDS_A_POINT).sum()
}

/// How many of a hundred points are so.
fn per_cent(points: &[Point], is_so: impl Fn(&Point) -> bool) -> f64 {
    100.0 * average(points, |point| if is_so(point) { 1.0 } else { 0.0 })
}

/// Whole days up to now, the newest first.
fn days(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.rchunks_exact(A_DAY)
}

fn compute_optimizer(points: &[Point]) -> bool {
    let seen = last(points, 14 * A_DAY).unwrap_or(points);
    let has_data = seen.len() >= 30 * AN_HOUR;
    has_data
        && seen.iter().all(|point| point.utilization() < 0.05)
        && seen.rchunks(A_DAY).all(|day| bytes(day) < 5.0 * MEGABYTE)
}

fn trusted_advisor(points: &[Point]) -> bool {
    let is_low = |day: &&[Point]| average(day, Point::utilization) <= 0.10 && bytes(day) <= 5.0 * MEGABYTE;
    // It looks at 14 days.
    points.len() >= 14 * A_DAY && days(points).take(14).filter(is_low).count() >= 4
}

fn gcp(points: &[Point]) -> bool {
    last(points, 14 * A_DAY).is_some_and(|seen| {
        per_cent(seen, |point| point.busy_cpus < 0.03) >= 97.0
            && per_cent(seen, |point| point.received < 2_000.0) >= 95.0
            && per_cent(seen, |point| point.sent < 1_000.0) >= 95.0
    })
}

fn optscale(points: &[Point]) -> bool {
    last(points, 7 * A_DAY)
        .is_some_and(|seen| average(seen, Point::utilization) <= 0.05 && average(seen, Point::network) <= 1_000.0)
}

fn daily_average(points: &[Point]) -> bool {
    last(points, A_DAY).is_some_and(|seen| average(seen, Point::utilization) < 0.20)
}

fn half_an_hour(points: &[Point]) -> bool {
    last(points, AN_HOUR / 2).is_some_and(|seen| seen.iter().all(|point| point.utilization() < 0.05))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many days of it; one CPU of two.
    fn steady(days: usize, busy_cpus: f64, received: f64, sent: f64) -> Vec<Point> {
        vec![Point { busy_cpus, cpus: 2.0, received, sent }; days * A_DAY]
    }

    #[test]
    fn compute_optimizer_needs_30_hours_and_takes_one_peak_for_work() {
        let mut seen = steady(14, 0.098, 20.0, 20.0);
        assert!(compute_optimizer(&seen));
        assert!(compute_optimizer(&seen[..30 * AN_HOUR]));
        assert!(!compute_optimizer(&seen[..30 * AN_HOUR - 1]));
        assert!(!compute_optimizer(&steady(14, 0.098, 29.0, 29.0)), "5.01 MB a day");
        seen[0].busy_cpus = 0.1;
        assert!(!compute_optimizer(&seen), "5 %, thirteen days ago");
    }

    #[test]
    fn trusted_advisor_takes_four_quiet_days_of_fourteen() {
        let of = |quiet: usize| {
            trusted_advisor(&[steady(14 - quiet, 1.0, 0.0, 0.0), steady(quiet, 0.198, 20.0, 20.0)].concat())
        };
        assert_eq!([of(3), of(4), of(14)], [false, true, true]);
        assert!(!trusted_advisor(&steady(13, 0.0, 0.0, 0.0)), "too young");
        assert!(!trusted_advisor(&steady(14, 0.202, 0.0, 0.0)));
        assert!(!trusted_advisor(&steady(14, 0.198, 58.0, 0.0)));
    }

    #[test]
    fn gcp_lets_three_of_a_hundred_points_be_busy_and_five_talk() {
        let of = |busy: usize, received: usize, sent: usize| {
            let mut seen = steady(14, 0.029, 1_999.0, 999.0);
            let all = seen.len();
            seen[..all * busy / 100].iter_mut().for_each(|point| point.busy_cpus = 0.03);
            seen[..all * received / 100].iter_mut().for_each(|point| point.received = 2_000.0);
            seen[..all * sent / 100].iter_mut().for_each(|point| point.sent = 1_000.0);
            gcp(&seen)
        };
        assert!(of(3, 5, 5));
        assert!(!of(4, 5, 5) && !of(3, 6, 5) && !of(3, 5, 6));
        assert!(!gcp(&steady(13, 0.0, 0.0, 0.0)));
    }

    #[test]
    fn the_others_are_averages() {
        assert!(optscale(&steady(7, 0.1, 500.0, 500.0)));
        assert!(!optscale(&steady(6, 0.1, 500.0, 500.0)));
        assert!(!optscale(&steady(7, 0.102, 500.0, 500.0)) && !optscale(&steady(7, 0.1, 501.0, 500.0)));
        assert!(daily_average(&steady(1, 0.398, 1e9, 1e9)) && !daily_average(&steady(1, 0.4, 0.0, 0.0)));
        assert!(half_an_hour(&steady(1, 0.098, 1e9, 1e9)) && !half_an_hour(&steady(1, 0.1, 0.0, 0.0)));
    }
}
