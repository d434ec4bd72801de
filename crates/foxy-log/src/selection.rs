//! Chooses the transactions for the ring (log file of fixed size). The ring receives every error,
//! the slowest 1 % of the transactions with each outcome, and a random sample of the rest. The
//! sampling rate adapts to the rate of requests. The choice costs a few dozen instructions, because
//! a worker thread chooses after each request.

use crate::transaction::Kept;
use foxy_base::Instant;
use std::cell::Cell;
use std::time::Duration;

/// Number of outcomes. Each outcome has its own limit for slow transactions.
pub const OUTCOMES: usize = 13;

/// When a worker thread has taken this number of samples within a second, it halves its sampling
/// rate.
const MOST_SAMPLES: u32 = 16;
/// Largest weight: a sampled transaction stands for at most this number of transactions.
const MAX_WEIGHT: u32 = 1 << 20;
/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// The duration limit for slow transactions is a fixed-point number. This constant is its number of
/// binary digits after the point.
const FRACTION: u32 = 20;
/// A transaction that takes longer than the limit for slow transactions raises this limit by
/// 1/`STEP`. Any other transaction lowers the limit by 1/(99 × `STEP`). So 1 % of the transactions
/// are above the limit in the long run.
const STEP: u64 = 64;

/// The state with which one worker thread chooses transactions for the ring (log file of fixed
/// size).
#[derive(Debug)]
pub struct Selector {
    /// Running 99th percentile of the durations with each outcome, in ns. A fixed-point number with
    /// [`FRACTION`] bits after the point. 0 before the first transaction.
    slow: [Cell<u64>; OUTCOMES],
    /// The weight of the next sample, a power of two. On average, one transaction in `weight` is
    /// sampled.
    weight: Cell<u32>,
    /// Number of samples that were taken in the current second. This second ends at the time
    /// `second`.
    samples: Cell<u32>,
    second: Cell<u64>,
    drawn: Cell<u32>,
    seen: Cell<u32>,
    lost: Cell<u32>,
}

/// The reason why a transaction enters the ring (log file of fixed size), and the numbers that the
/// ring stores with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The reason why the ring keeps the transaction.
    pub kept: Kept,
    /// Number of transactions that the chosen transaction stands for.
    pub weight: u32,
    /// Number of the worker thread's transactions since its previous transaction in the ring,
    /// including this transaction.
    pub seen: u32,
    /// Number of chosen transactions that could not be written since the thread's previous
    /// transaction in the ring.
    pub lost: u32,
}

impl Selector {
    /// Creates the state of a worker thread before its first transaction.
    pub const fn new() -> Self {
        Self {
            slow: [const { Cell::new(0) }; OUTCOMES],
            weight: Cell::new(1),
            samples: Cell::new(0),
            second: Cell::new(0),
            drawn: Cell::new(0),
            seen: Cell::new(0),
            lost: Cell::new(0),
        }
    }

    /// Decides whether a finished transaction enters the ring, and for which reason. Returns `None`
    /// if the transaction does not enter the ring. `outcome` is the number of the transaction's
    /// outcome.
    pub fn select(
        &self,
        (is_error, outcome): (bool, usize),
        elapsed: Duration,
        now: Instant,
    ) -> Option<Selected> {
        self.seen.set(self.seen.get().saturating_add(1));
        if now.0 >= self.second.get() {
            self.begin_second(now);
        }
        let is_slow = self.is_slow(outcome, elapsed);
        let (kept, weight) = if is_error {
            (Kept::Error, 1)
        } else if is_slow {
            (Kept::Slow, 1)
        } else if self.is_drawn() {
            (Kept::Sample, self.sampled())
        } else {
            return None;
        };
        Some(Selected { kept, weight, seen: self.seen.get(), lost: self.lost.get() })
    }

    /// Notes whether the chosen transaction was written to the ring. If not, the next transaction
    /// in the ring reports the loss.
    pub fn note(&self, is_written: bool) {
        if is_written {
            self.seen.set(0);
            self.lost.set(0);
        } else {
            self.lost.set(self.lost.get().saturating_add(1));
        }
    }

    fn is_slow(&self, outcome: usize, elapsed: Duration) -> bool {
        let Some(cell) = self.slow.get(outcome) else { return false };
        let limit = cell.get();
        let nanos =
            elapsed.as_secs().saturating_mul(SECOND).saturating_add(elapsed.subsec_nanos().into());
        let value = nanos.min(1 << 43) << FRACTION;
        let is_slow = value > limit;
        cell.set(match limit {
            0 => value.max(1),
            _ if is_slow => limit + limit / STEP + 1,
            _ => limit - limit / (STEP * 99),
        });
        is_slow
    }

    /// Decides by a pseudo-random number whether to sample the transaction. With a fixed interval,
    /// periodic requests would be sampled always or never.
    fn is_drawn(&self) -> bool {
        let number = self.drawn.get().wrapping_add(1);
        self.drawn.set(number);
        let mixed = number.wrapping_mul(0x9e37_79b1);
        let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca77);
        (mixed ^ (mixed >> 13)) & (self.weight.get() - 1) == 0
    }

    /// Counts a sample and returns its weight. Doubles the weight of later samples, and so halves
    /// the sampling rate, if this second already has many samples.
    fn sampled(&self) -> u32 {
        let weight = self.weight.get();
        self.samples.set(self.samples.get() + 1);
        if self.samples.get() >= MOST_SAMPLES {
            self.weight.set((weight * 2).min(MAX_WEIGHT));
            self.samples.set(0);
        }
        weight
    }

    /// Starts a new second. If the last second had few samples, halves the weight once for each
    /// second that has passed.
    #[cold]
    fn begin_second(&self, now: Instant) {
        if self.second.get() == 0 {
            // Each thread starts elsewhere in the sequence of pseudo-random numbers. With the same
            // start, all threads would sample the same requests after each start of foxy.
            self.drawn.set((now.0 ^ (now.0 >> 32)) as u32);
        }
        let passed = 1 + (now.0 - self.second.get()) / SECOND;
        if self.samples.get() < MOST_SAMPLES / 2 {
            let halvings = u32::try_from(passed).unwrap_or(31).min(31);
            self.weight.set((self.weight.get() >> halvings).max(1));
        }
        self.second.set(now.0 + SECOND);
        self.samples.set(0);
    }
}

impl Default for Selector {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn at(micros: u64) -> Instant {
        Instant(micros * 1000)
    }

    /// Simulates `requests` requests with random durations, one every `gap` µs. Returns the chosen
    /// transactions.
    fn run(requests: u64, gap: u64) -> Vec<Selected> {
        let (selector, mut random, mut entries) = (Selector::new(), Random::new(3), Vec::new());
        for number in 0..requests {
            let elapsed = Duration::from_micros(20 + random.below(1000));
            let selected = selector.select((false, 2), elapsed, at(number * gap));
            entries.extend(selected.inspect(|_| selector.note(true)));
        }
        entries
    }

    #[test]
    fn workers_that_start_at_other_times_sample_other_transactions() {
        let sampled = |begun: u64| -> Vec<u64> {
            let selector = Selector::new();
            let select = |number: &u64| {
                let now = at(begun + number * 20);
                let selected = selector.select((false, 2), Duration::from_micros(20), now);
                selected.is_some_and(|selected| selected.kept == Kept::Sample)
            };
            (0..2_000).filter(select).collect()
        };
        assert_ne!(sampled(1_000_003), sampled(2_718_281));
    }

    #[test]
    fn about_one_percent_counts_as_slow() {
        let entries = run(500_000, 20);
        let slow = entries.iter().filter(|entry| entry.kept == Kept::Slow).count();
        assert!((4_000..6_500).contains(&slow), "{slow}");
    }

    #[test]
    fn a_busy_worker_is_sampled_and_the_weights_stand_for_all_requests() {
        let entries = run(500_000, 20);
        let samples = entries.iter().filter(|entry| entry.kept == Kept::Sample).count();
        assert!((100..600).contains(&samples), "{samples}");
        let stands_for: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
        assert!((450_000..550_000).contains(&stands_for), "{stands_for}");
        let seen: u64 = entries.iter().map(|entry| u64::from(entry.seen)).sum();
        assert!((490_000..=500_000).contains(&seen), "{seen}");
    }

    #[test]
    fn an_idle_worker_keeps_every_request() {
        assert_eq!(run(1_000, 100_000).len(), 1_000);
    }

    #[test]
    fn every_error_is_kept_and_a_lost_entry_is_reported() {
        let selector = Selector::new();
        let error = || selector.select((true, 9), Duration::from_micros(5), at(0));
        for lost in 0..3 {
            let seen = lost + 1;
            assert_eq!(error(), Some(Selected { kept: Kept::Error, weight: 1, seen, lost }));
            selector.note(false);
        }
        error();
        selector.note(true);
        assert_eq!(error().map(|entry| (entry.seen, entry.lost)), Some((1, 0)));
    }
}
