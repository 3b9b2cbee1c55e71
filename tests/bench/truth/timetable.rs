//! Weeks of a machine in points of five minutes, as a provider's monitoring would show them, laid out of what was measured in minutes.

use lab::labelled::{Measured, SCALE, Sample, Scenario, Truth, Week};

/// Points in an hour.
pub(crate) const AN_HOUR: usize = 12;
/// Points in a day.
pub(crate) const A_DAY: usize = 24 * AN_HOUR;
/// So long a machine is looked at, from a Monday at 0 o'clock on.
pub(crate) const DAYS: usize = 42;
/// The second Friday at 18.
const FRIDAY_EVENING: usize = 11 * A_DAY + 18 * AN_HOUR;

/// Five minutes of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// CPUs in use.
    pub(crate) busy_cpus: f64,
    /// CPUs that it has.
    pub(crate) cpus: f64,
    /// Bytes received, a second.
    pub(crate) received: f64,
    /// Bytes sent, a second.
    pub(crate) sent: f64,
}

impl Point {
    /// How much of all CPUs is in use, 0 to 1.
    pub(crate) fn utilization(&self) -> f64 {
        self.busy_cpus / self.cpus
    }

    /// Bytes received and sent, a second.
    pub(crate) fn network(&self) -> f64 {
        self.received + self.sent
    }
}

/// The weeks of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Weeks {
    pub(crate) points: Vec<Point>,
    /// From this point on it is left for good; all of its weeks if it never worked otherwise.
    pub(crate) left: usize,
}

/// Points of five minutes from samples, which are [`SCALE`] times as dense. `slower` is how many times slower the machine's CPU is than a real one.
fn points(samples: &[Sample], slower: f64) -> Vec<Point> {
    let in_a_point = f64::from(300 / SCALE);
    let mut points = Vec::new();
    let (mut seconds, mut sum) = (0.0, Point::default());
    for sample in samples {
        seconds += sample.seconds;
        // To work takes as long as there is work; what else a machine does would take a real one less.
        sum.busy_cpus += sample.work_cpu_s + sample.other_cpu_s / slower;
        sum.received += sample.received_bytes;
        sum.sent += sample.sent_bytes;
        if seconds >= in_a_point {
            let cpus = f64::from(sample.cpus);
            points.push(Point {
                busy_cpus: sum.busy_cpus / seconds,
                cpus,
                received: sum.received / seconds,
                sent: sum.sent / seconds,
            });
            (seconds, sum) = (0.0, Point::default());
        }
    }
    points
}

/// The point from which on a machine is left for good; of one that never worked otherwise the first.
pub(crate) fn left_at(scenario: &Scenario) -> usize {
    let is_idle = scenario.truth == Truth::Idle;
    if is_idle && scenario.week == Week::Office { FRIDAY_EVENING } else { 0 }
}

/// Lays out the weeks of a scenario.
///
/// # Panics
///
/// When too little was measured to fill five minutes.
pub(crate) fn weeks(measured: &Measured, slower: f64) -> Weeks {
    let (worked, left) = (points(&measured.worked, slower), points(&measured.left, slower));
    let is_enough = !left.is_empty() && (!worked.is_empty() || measured.scenario.week == Week::Always);
    assert!(is_enough, "{}: too little was measured to fill five minutes", measured.scenario.name);
    let is_at_work = |at: usize| {
        let (day, hour) = (at / A_DAY, at % A_DAY / AN_HOUR);
        match measured.scenario.week {
            Week::Always => false,
            Week::Office => at < FRIDAY_EVENING && day % 7 < 5 && (9..18).contains(&hour),
            Week::Nightly => hour == 3,
        }
    };
    let points = (0..DAYS * A_DAY).map(|at| {
        let from = if is_at_work(at) { &worked } else { &left };
        from[at % from.len()]
    });
    Weeks { points: points.collect(), left: left_at(&measured.scenario) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_five_minutes_of_a_machine_that_is_as_fast_as_a_real_one() {
        let sample = Sample {
            seconds: 2.0,
            work_cpu_s: 0.5,
            other_cpu_s: 1.0,
            cpus: 4,
            received_bytes: 200.0,
            sent_bytes: 20.0,
        };
        let points = points(&[sample; 25], 20.0);
        assert_eq!(points.len(), 2, "twenty seconds each");
        let point = points[0];
        assert!((point.busy_cpus - 0.275).abs() < 1e-9 && (point.utilization() - 0.06875).abs() < 1e-9, "{point:?}");
        assert!((point.received - 100.0).abs() < 1e-9 && (point.network() - 110.0).abs() < 1e-9, "{point:?}");
    }
}
