//! What a proxy used of the processor over a while, and how long the devices below its cache were
//! busy meanwhile.

use super::usage::{self, Usage};
use foxy_base::{Instant, clock};
use std::path::PathBuf;
use std::time::Duration;

/// What had been used so far at one moment.
#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

/// What was used between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    elapsed: Duration,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

impl Moment {
    /// Now, at which processes have used so much and their caches lie in these folders.
    pub fn now(usage: Usage, caches: &[PathBuf]) -> Self {
        let disks =
            caches.iter().map(|cache| usage::of_device(cache).map(|device| device.busy)).collect();
        Self { at: clock::monotonic(), processor: usage.processor, disks }
    }

    /// What was used from this moment to a later one.
    pub fn until(&self, later: &Self) -> Spent {
        let disks = self.disks.iter().zip(&later.disks);
        let disks = disks.map(|(&before, &after)| Some(after?.saturating_sub(before?)));
        Spent {
            elapsed: later.at.since(self.at),
            processor: later.processor.saturating_sub(self.processor),
            disks: disks.collect(),
        }
    }
}

impl Spent {
    /// This and what was used in another while, whose devices are the same.
    pub fn and(&self, other: &Self) -> Self {
        let disks = self.disks.iter().zip(&other.disks).map(|(&one, &more)| Some(one? + more?));
        Self {
            elapsed: self.elapsed + other.elapsed,
            processor: self.processor + other.processor,
            disks: disks.collect(),
        }
    }

    /// How many cores were at work on average.
    pub fn cores(&self) -> f64 {
        self.processor.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Microseconds of the processor for each of so many requests; none without requests.
    #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
    pub fn each(&self, requests: u64) -> Option<f64> {
        (requests > 0).then(|| self.processor.as_secs_f64() * 1e6 / requests as f64)
    }

    /// For each cache, the share of the time in which the device below it had something to do; none
    /// where there is no device. The kernel counts that in its ticks and may count one too many.
    pub fn disks(&self) -> impl Iterator<Item = Option<f64>> {
        let elapsed = self.elapsed.as_secs_f64().max(1e-9);
        self.disks.iter().map(move |busy| Some((busy.as_ref()?.as_secs_f64() / elapsed).min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at: u64, processor: u64, disks: &[Option<u64>]) -> Moment {
        let disks = disks.iter().map(|busy| busy.map(Duration::from_millis)).collect();
        Moment { at: Instant(at * 1_000_000), processor: Duration::from_millis(processor), disks }
    }

    #[test]
    fn what_was_used_between_moments_is_a_share_of_the_time_between_them() {
        let [first, second, third] = [
            moment(1000, 100, &[Some(7), None]),
            moment(3000, 3100, &[Some(507), None]),
            moment(5000, 3100, &[Some(2600), None]),
        ];
        let (one, two) = (first.until(&second), second.until(&third));
        assert_eq!((one.cores(), one.each(1000)), (1.5, Some(3000.0)));
        assert_eq!(one.disks().collect::<Vec<_>>(), [Some(0.25), None]);
        assert_eq!(
            two.disks().next(),
            Some(Some(1.0)),
            "a tick too many is not more than all the time"
        );
        assert_eq!((two.cores(), two.each(0)), (0.0, None));
        assert_eq!(one.and(&two), first.until(&third));
        assert_eq!(one.and(&two).cores(), 0.75);
    }
}
