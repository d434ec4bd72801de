//! CPU time of a proxy and busy time of the devices below its caches over an interval.

use super::usage::{self, Usage};
use foxy_base::{Instant, clock};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    elapsed: Duration,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

impl Moment {
    pub fn now(usage: Usage, caches: &[PathBuf]) -> Self {
        let disks =
            caches.iter().map(|cache| usage::of_device(cache).map(|device| device.busy)).collect();
        Self { at: clock::monotonic(), processor: usage.processor, disks }
    }

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
    /// Sums two intervals. Both must cover the same devices.
    pub fn and(&self, other: &Self) -> Self {
        let disks = self.disks.iter().zip(&other.disks).map(|(&one, &more)| Some(one? + more?));
        Self {
            elapsed: self.elapsed + other.elapsed,
            processor: self.processor + other.processor,
            disks: disks.collect(),
        }
    }

    pub fn cores(&self) -> f64 {
        self.processor.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
    pub fn each(&self, requests: u64) -> Option<f64> {
        (requests > 0).then(|| self.processor.as_secs_f64() * 1e6 / requests as f64)
    }

    /// Per cache, the busy share of the device below it; `None` without a device. The kernel counts
    /// in ticks, perhaps one too many.
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
