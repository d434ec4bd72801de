//! The control law of the peak finder. It computes the next load from the mean response time of the
//! current load.

use std::time::Duration;

/// The share by which the load rises or falls from one window (span of time with a constant load)
/// to the next, if it changes.
pub const STEP: f64 = 0.05;
/// The mean response time of the PolyMix-4 workload at a proxy with almost no load. The servers of
/// this workload delay misses by 2.5 s, and hits have no delay.
pub const UNLOADED: Duration = Duration::from_millis(1410);
/// The range of response times in appendix D of *Squid: The Definitive Guide*: 1.50 to 1.75 s. The
/// lower end is 1.06 times [`UNLOADED`].
pub const WINDOW: (Duration, Duration) = (Duration::from_millis(1500), Duration::from_millis(1750));

/// The range of mean response times in which the load stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// If the mean response time is below this time, the load increases.
    pub low: Duration,
    /// If the mean response time is above this time, the load decreases.
    pub high: Duration,
}

impl Law {
    /// Returns the range of response times for a run whose server delays are shorter by the factor
    /// `delay_scale`. The range shrinks by the same factor.
    pub fn scaled(delay_scale: u32) -> Self {
        Self { low: WINDOW.0 / delay_scale, high: WINDOW.1 / delay_scale }
    }

    /// Returns the next load in requests per second. `mean` is the mean response time at the
    /// current load.
    pub fn next(&self, load: f64, mean: Option<Duration>) -> f64 {
        match mean {
            Some(mean) if mean < self.low => load * (1.0 + STEP),
            Some(mean) if mean > self.high => load * (1.0 - STEP),
            _ => load,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn the_load_follows_the_window_and_holds_without_samples() {
        let law = Law::scaled(1);
        let next = |milliseconds| law.next(100.0, Some(Duration::from_millis(milliseconds)));
        assert_eq!([next(1499), next(1500), next(1750), next(1751)], [105.0, 100.0, 100.0, 95.0]);
        assert_eq!(law.next(100.0, None), 100.0);
    }

    /// A simulated queue with one server and exponential service times (M/M/1), plus a fixed delay.
    struct Queue {
        random: Random,
        served_per_second: f64,
        now: f64,
        free_at: f64,
    }

    impl Queue {
        /// Returns the mean response time of the requests that arrive within a minute at this
        /// `load`, in requests per second.
        fn minute(&mut self, load: f64, delay: f64) -> Option<Duration> {
            let end = self.now + 60.0;
            let (mut count, mut sum) = (0.0, 0.0);
            loop {
                self.now -= (1.0 - self.random.unit()).ln() / load;
                if self.now >= end {
                    self.now = end;
                    return (count > 0.0).then(|| Duration::from_secs_f64(sum / count));
                }
                let service = -(1.0 - self.random.unit()).ln() / self.served_per_second;
                self.free_at = self.free_at.max(self.now) + service;
                count += 1.0;
                sum += delay + self.free_at - self.now;
            }
        }
    }

    /// The mean time in an M/M/1 queue is 1 / (service rate - load). From this formula, the test
    /// computes the loads at both ends of the range of response times. The mean load that the
    /// finder chooses over many minutes must lie between these loads. Single minutes vary widely
    /// near full load.
    #[test]
    fn on_a_queue_of_known_capacity_it_finds_the_load_within_5_percent() {
        let law = Law::scaled(1);
        let delay = UNLOADED.as_secs_f64();
        for (served_per_second, start) in [(100.0, 10.0), (100.0, 300.0), (40.0, 40.0)] {
            let load_at = |time: Duration| served_per_second - 1.0 / (time.as_secs_f64() - delay);
            let (lowest, highest) = (load_at(law.low), load_at(law.high));
            for seed in 1..=5 {
                let mut queue =
                    Queue { random: Random::new(seed), served_per_second, now: 0.0, free_at: 0.0 };
                let (mut load, mut sum) = (start, 0.0);
                for window in 0..600 {
                    load = law.next(load, queue.minute(load, delay));
                    sum += if window >= 200 { load } else { 0.0 };
                }
                let found = sum / 400.0;
                assert!(
                    (lowest * 0.95..=highest * 1.05).contains(&found),
                    "{found:.1}/s, analytic {lowest:.1} to {highest:.1}/s, seed {seed}"
                );
            }
        }
    }
}
