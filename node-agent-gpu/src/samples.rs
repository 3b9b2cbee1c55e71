//! The driver's own samples of utilisation: what share of each a kernel ran. They follow one another without a gap (each 200 ms on an H100), so that together they
//! tell of all the time there was. The present utilisation is the last of them alone: whoever reads that once a second sees a fifth of the time, and of kernels that ran for
//! 100 ms of each second it said 0 % for as long as both kept time (docs/journal/2026-11-27-a-real-gpu.md).

use std::time::Duration;

/// Twice the longest sample period that NVIDIA names. Time between two samples that lie further apart was not sampled, or somebody set the clock.
const LONGEST_US: u64 = 2_000_000;
/// Without a newer sample for so long, the last one's time stamp is not believed any more: they are of the wall clock, which may have been set back.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// What the first samples are, and those after a clock was set.
const FIRST: &str = "the driver's samples are read from here on";

/// The newest sample of one device that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    at_us: u64,
    read: Duration,
}

/// What is known of one device's samples so far.
#[derive(Debug, Default)]
pub(crate) struct Seen(Option<Last>);

/// What newer samples say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// For how long kernels ran, in microseconds.
    pub(crate) busy_us: u64,
    /// Why that does not cover all the time since what was read before.
    pub(crate) gap: Option<String>,
}

impl Seen {
    /// What to ask for newer ones than; `None` for all that there are.
    pub(crate) fn newest_us(&self) -> Option<u64> {
        self.0.map(|last| last.at_us)
    }

    /// Takes samples, each with its end on the wall clock in microseconds and its utilisation in per cent, at this time of a clock that nobody sets. The first ones are
    /// what later ones begin at, and speak of no time that anybody asked about: they are a gap.
    pub(crate) fn take(&mut self, mut samples: Vec<(u64, u32)>, now: Duration) -> Ran {
        let Some(last) = self.0 else {
            self.0 = samples.iter().map(|(at_us, _)| *at_us).max().map(|at_us| Last { at_us, read: now });
            let gap = if self.0.is_some() { FIRST } else { "the driver has no samples" };
            return Ran { busy_us: 0, gap: Some(gap.to_owned()) };
        };
        let mut ran = Ran { busy_us: 0, gap: None };
        samples.retain(|(at_us, _)| *at_us > last.at_us);
        samples.sort_unstable();
        let mut until_us = last.at_us;
        for (at_us, percent) in &samples {
            let length_us = at_us - until_us;
            if length_us > LONGEST_US {
                ran.gap = Some(format!("the driver's samples lack {} ms", length_us / 1000));
            } else {
                ran.busy_us += length_us * u64::from((*percent).min(100)) / 100;
            }
            until_us = *at_us;
        }
        if !samples.is_empty() {
            self.0 = Some(Last { at_us: until_us, read: now });
        } else if now.saturating_sub(last.read) > LONGEST_WAIT {
            self.0 = None;
            ran.gap = Some(format!("the driver took no sample for {} s", (now.saturating_sub(last.read)).as_secs()));
        }
        ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn first() -> Ran {
        Ran { busy_us: 0, gap: Some(FIRST.to_owned()) }
    }

    fn every_200_ms(from_us: u64, percents: &[u32]) -> Vec<(u64, u32)> {
        (1..).map(|number| from_us + number * 200_000).zip(percents.iter().copied()).collect()
    }

    #[test]
    fn what_an_h100_said_of_100_ms_in_each_second_comes_to_a_tenth() {
        let mut seen = Seen::default();
        assert_eq!(seen.take(every_200_ms(0, &[100; 5]), at(1)), first(), "of before");
        let (mut busy_us, mut begin) = (0, S);
        for second in 2..12 {
            assert_eq!(seen.newest_us(), Some(begin));
            let ran = seen.take(every_200_ms(begin, &[0, 0, 0, 15, 35]), at(second));
            assert_eq!(ran.gap, None);
            busy_us += ran.busy_us;
            begin += S;
        }
        assert_eq!(busy_us, S);
    }

    #[test]
    fn samples_count_once_in_whatever_order_they_come() {
        let mut seen = Seen::default();
        seen.take(vec![(S, 0)], at(1));
        let three = vec![(2 * S, 50), (S, 100), (2 * S - 500_000, 101)];
        assert_eq!(seen.take(three.clone(), at(2)), Ran { busy_us: 750_000, gap: None });
        assert_eq!(seen.take(three, at(2)), Ran { busy_us: 0, gap: None });
    }

    #[test]
    fn what_was_not_sampled_is_told_and_not_counted() {
        let mut seen = Seen::default();
        seen.take(vec![(S, 0)], at(1));
        let ran = seen.take(vec![(5 * S, 100), (6 * S, 100)], at(6));
        assert_eq!(ran, Ran { busy_us: S, gap: Some("the driver's samples lack 4000 ms".to_owned()) });
        assert_eq!(seen.take(vec![(7 * S, 100)], at(7)), Ran { busy_us: S, gap: None });
    }

    #[test]
    fn a_clock_that_was_set_back_makes_one_gap() {
        let mut seen = Seen::default();
        seen.take(vec![(3600 * S, 0)], at(1));
        assert_eq!(seen.take(vec![(S, 100)], at(4)), Ran { busy_us: 0, gap: None }, "none yet: it may come");
        let ran = seen.take(vec![], at(5));
        assert_eq!(ran, Ran { busy_us: 0, gap: Some("the driver took no sample for 4 s".to_owned()) });
        assert_eq!(seen.newest_us(), None);
        assert_eq!(seen.take(vec![(2 * S, 100)], at(6)), first());
        assert_eq!(seen.take(vec![(3 * S, 100)], at(7)), Ran { busy_us: S, gap: None });
    }

    #[test]
    fn a_driver_that_never_samples_is_not_idle() {
        let mut seen = Seen::default();
        for second in 1..10 {
            let ran = seen.take(vec![], at(second));
            assert_eq!(ran, Ran { busy_us: 0, gap: Some("the driver has no samples".to_owned()) });
        }
    }
}
