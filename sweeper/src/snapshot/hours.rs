//! How busy a machine was in each full hour of some time, by its own agent's rollups, what that is held against, and both in words.

use crate::{
    rollup::{Activity, Counter, Sum},
    verdict::words::{bytes, cpu, span},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Length of an hour, in milliseconds.
const HOUR_MS: u64 = 3_600_000;
/// An hour of which less was measured says nothing of the rest, in milliseconds: nine of ten minutes.
const LEAST_MS: u64 = HOUR_MS / 10 * 9;

/// What counts as barely used. Each is an hour's average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoursPolicy {
    /// For so long, in seconds; whole hours are counted.
    pub after_s: u64,
    /// CPU time of the whole machine, in nanoseconds a second: 1,000,000,000 is one core.
    pub cpu_ns_per_s: u64,
    /// Bytes read from and written to storage, and likewise those sent and received, a second.
    pub bytes_per_s: u64,
    /// Work of the GPUs, in nanoseconds a second over all of them.
    pub gpu_ns_per_s: u64,
}

impl HoursPolicy {
    /// How many full hours that is; one at least.
    #[must_use]
    pub fn hours(&self) -> u32 {
        u32::try_from(self.after_s.div_ceil(3_600)).unwrap_or(u32::MAX).max(1)
    }
}

/// The busiest of a machine's hours, signal by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hours {
    /// Begin of the first.
    pub from: Timestamp,
    /// End of the last.
    pub until: Timestamp,
    /// In so many of them every signal was measured for nine tenths of the time.
    pub measured: u32,
    /// CPU time of the whole machine, in nanoseconds a second.
    pub cpu_ns_per_s: u64,
    /// Bytes read from and written to storage a second.
    pub disk_bytes_per_s: u64,
    /// Bytes received and sent a second, by sockets and by RDMA.
    pub network_bytes_per_s: u64,
    /// Work of the GPUs, in nanoseconds a second.
    pub gpu_ns_per_s: u64,
}

/// Everything that a judgement by full hours depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoursCase {
    /// What was seen.
    pub hours: Hours,
    /// What it is held against.
    pub policy: HoursPolicy,
}

impl Hours {
    /// Of what was done in each hour of a time that is told; of a machine that has GPUs (`has_gpus`) they must have been read.
    #[must_use]
    pub fn of<'a>(
        from: Timestamp,
        until: Timestamp,
        has_gpus: bool,
        hours: impl IntoIterator<Item = &'a Activity>,
    ) -> Self {
        let none = Self {
            from,
            until,
            measured: 0,
            cpu_ns_per_s: 0,
            disk_bytes_per_s: 0,
            network_bytes_per_s: 0,
            gpu_ns_per_s: 0,
        };
        hours.into_iter().fold(none, |so_far, hour| so_far.with(hour, has_gpus))
    }

    fn with(self, hour: &Activity, has_gpus: bool) -> Self {
        let mut needed =
            vec![Counter::Cpu, Counter::DiskRead, Counter::DiskWritten, Counter::NetworkReceived, Counter::NetworkSent];
        if has_gpus {
            needed.push(Counter::GpuBusy);
        }
        let is_measured = |counter: &Counter| hour.sum(*counter).is_some_and(|Sum(_, ms)| ms >= LEAST_MS);
        let rates =
            |counters: &[Counter]| counters.iter().fold(0, |sum: u64, one| sum.saturating_add(rate(hour, *one)));
        Self {
            measured: self.measured + u32::from(needed.iter().all(is_measured)),
            cpu_ns_per_s: self.cpu_ns_per_s.max(rates(&[Counter::Cpu])),
            disk_bytes_per_s: self.disk_bytes_per_s.max(rates(&[Counter::DiskRead, Counter::DiskWritten])),
            network_bytes_per_s: self.network_bytes_per_s.max(rates(&[
                Counter::NetworkReceived,
                Counter::NetworkSent,
                Counter::RdmaReceived,
                Counter::RdmaSent,
            ])),
            gpu_ns_per_s: self.gpu_ns_per_s.max(rates(&[Counter::GpuBusy])),
            ..self
        }
    }

    /// The same in words: `23 ms of CPU time, 3.1 KiB of storage traffic and 812 B of network traffic a second`.
    fn in_words(&self) -> String {
        let gpu =
            if self.gpu_ns_per_s > 0 { format!(", {} of GPU time", cpu(self.gpu_ns_per_s)) } else { String::new() };
        format!(
            "{} of CPU time{gpu}, {} of storage traffic and {} of network traffic a second",
            cpu(self.cpu_ns_per_s),
            bytes(self.disk_bytes_per_s),
            bytes(self.network_bytes_per_s)
        )
    }
}

/// An hour's average a second. What was measured for a part of the hour is no more than what the hour had at least.
fn rate(hour: &Activity, counter: Counter) -> u64 {
    let Some(Sum(amount, ms)) = hour.sum(counter) else { return 0 };
    let ms = if ms < LEAST_MS { HOUR_MS } else { ms };
    u64::try_from(u128::from(amount) * 1_000 / u128::from(ms)).unwrap_or(u64::MAX)
}

impl HoursCase {
    /// Whether an hour was busier than what counts as barely used.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        let Self { hours, policy } = self;
        hours.cpu_ns_per_s > policy.cpu_ns_per_s
            || hours.disk_bytes_per_s > policy.bytes_per_s
            || hours.network_bytes_per_s > policy.bytes_per_s
            || hours.gpu_ns_per_s > policy.gpu_ns_per_s
    }

    /// Whether every hour was measured.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.hours.measured >= self.policy.hours()
    }

    /// What the busiest of the hours had, each signal by itself.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("no full hour of the last {} had more than {}", self.span(), self.hours.in_words())
    }

    /// Why it is more than barely used.
    #[must_use]
    pub fn busier_in_words(&self) -> String {
        format!("a full hour of the last {} had up to {}", self.span(), self.hours.in_words())
    }

    fn span(&self) -> String {
        span(i64::try_from(self.policy.after_s.saturating_mul(1_000)).unwrap_or(i64::MAX))
    }

    /// What it was held against, a line each.
    #[must_use]
    pub fn thresholds(&self) -> Vec<String> {
        let Self { hours, policy } = self;
        let traffic = |what: &str, rate: u64| {
            format!("{what} in its busiest hour: {}/s (threshold {}/s)", bytes(rate), bytes(policy.bytes_per_s))
        };
        vec![
            format!(
                "CPU time in the busiest hour: {} a second (threshold {})",
                cpu(hours.cpu_ns_per_s),
                cpu(policy.cpu_ns_per_s)
            ),
            traffic("storage", hours.disk_bytes_per_s),
            traffic("network", hours.network_bytes_per_s),
            format!("hours measured: {} of {}", hours.measured, policy.hours()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn hour(others: impl IntoIterator<Item = (Counter, Sum)>) -> Activity {
        let mut hour = Activity::default();
        for counter in
            [Counter::Cpu, Counter::DiskRead, Counter::DiskWritten, Counter::NetworkReceived, Counter::NetworkSent]
        {
            hour.sums.insert(counter, Sum(3_600, HOUR_MS));
        }
        hour.sums.extend(others);
        hour
    }

    fn of(has_gpus: bool, hours: &[Activity]) -> Hours {
        Hours::of(FROM, FROM, has_gpus, hours)
    }

    #[test]
    fn the_busiest_hour_is_told_of_each_signal() {
        let quiet = of(false, &[hour([]), hour([])]);
        assert_eq!((quiet.measured, quiet.cpu_ns_per_s), (2, 1));
        assert_eq!((quiet.disk_bytes_per_s, quiet.network_bytes_per_s, quiet.gpu_ns_per_s), (2, 2, 0));
        let busy = [
            hour([(Counter::Cpu, Sum(7_200, HOUR_MS))]),
            hour([(Counter::RdmaSent, Sum(36_000, HOUR_MS))]),
            hour([(Counter::GpuBusy, Sum(3_600_000, HOUR_MS))]),
        ];
        let busiest = of(false, &busy);
        assert_eq!((busiest.cpu_ns_per_s, busiest.network_bytes_per_s, busiest.gpu_ns_per_s), (2, 12, 1_000));
    }

    #[test]
    fn an_hour_counts_as_measured_if_nine_tenths_of_it_were_of_every_signal() {
        let short = |ms| hour([(Counter::NetworkSent, Sum(0, ms))]);
        assert_eq!(of(false, &[short(LEAST_MS)]).measured, 1);
        assert_eq!(of(false, &[short(LEAST_MS - 1)]).measured, 0);
        let mut without = hour([]);
        without.sums.remove(&Counter::DiskRead);
        assert_eq!(of(false, &[without]).measured, 0);
        assert_eq!(of(true, &[hour([])]).measured, 0, "its GPUs are read, and were not");
        let read = hour([(Counter::GpuBusy, Sum(0, HOUR_MS))]);
        assert_eq!(of(true, &[read]).measured, 1);
        assert_eq!(of(false, &[]).measured, 0);
    }

    #[test]
    fn what_was_seen_for_a_moment_is_no_average_of_an_hour() {
        let moment = hour([(Counter::Cpu, Sum(3_600_000_000_000, 1))]);
        assert_eq!(of(false, &[moment]).cpu_ns_per_s, 1_000_000_000, "the hour had one core at least");
        let most = hour([(Counter::Cpu, Sum(u64::MAX, 0))]);
        assert_eq!(of(false, &[most]).cpu_ns_per_s, 5_124_095_576_030_431, "no overflow");
    }

    #[test]
    fn part_of_an_hour_is_a_whole_one() {
        let of = |after_s| HoursPolicy { after_s, cpu_ns_per_s: 0, bytes_per_s: 0, gpu_ns_per_s: 0 }.hours();
        assert_eq!([0, 3_600, 3_601, 86_400, u64::MAX].map(of), [1, 1, 2, 24, u32::MAX]);
    }
}
