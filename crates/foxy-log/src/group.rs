//! Counts logged transactions in groups: requests, hit ratios, bytes and durations. An entry of a
//! sampled log stands for several requests; their number is the entry's weight. Each entry counts
//! with its weight, so the sums estimate the whole traffic.

use crate::field::{Field, FieldKind, Get};
use crate::histogram::Histogram;
use crate::lines::time;
use crate::transaction::Transaction;
use std::borrow::Cow;
use std::collections::HashMap;

/// Counts of logged transactions: requests, hits, errors, bytes and durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of log entries, without their weights.
    pub entries: u64,
    /// Number of requests that the entries stand for.
    pub requests: u64,
    /// Number of requests that the cache answered or could have answered.
    pub cacheable: u64,
    /// Number of answers from the cache.
    pub hits: u64,
    /// Number of requests that failed.
    pub errors: u64,
    /// Number of bytes sent to clients.
    pub bytes: u64,
    /// Number of bytes sent to clients from the cache.
    pub hit_bytes: u64,
    /// Distribution of the durations of requests.
    pub elapsed: Histogram,
    /// Distribution of the times until the first byte of the origin's response.
    pub ttfb: Histogram,
}

impl Totals {
    /// Adds a transaction with its weight to the counts.
    pub fn add(&mut self, transaction: &Transaction<'_>) {
        let weight = u64::from(transaction.weight.max(1));
        let bytes = transaction.bytes.saturating_mul(weight);
        self.entries += 1;
        self.requests += weight;
        self.bytes = self.bytes.saturating_add(bytes);
        if transaction.is_cacheable() {
            self.cacheable += weight;
        }
        if transaction.is_hit() {
            self.hits += weight;
            self.hit_bytes = self.hit_bytes.saturating_add(bytes);
        }
        if transaction.is_error() {
            self.errors += weight;
        }
        if let Some(micros) = transaction.elapsed {
            self.elapsed.add(micros, weight);
        }
        if let Some(micros) = transaction.origin_ttfb {
            self.ttfb.add(micros, weight);
        }
    }

    /// Adds the counts of another part of the log to these counts.
    pub fn merge(&mut self, other: &Self) {
        self.entries += other.entries;
        self.requests += other.requests;
        self.cacheable += other.cacheable;
        self.hits += other.hits;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.hit_bytes += other.hit_bytes;
        self.elapsed.merge(&other.elapsed);
        self.ttfb.merge(&other.ttfb);
    }

    /// Returns true if some entries stand for several requests, so that the counts are estimates.
    pub const fn is_estimate(&self) -> bool {
        self.entries != self.requests
    }

    /// Returns the fraction of the cacheable requests that the cache answered.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.cacheable > 0).then(|| self.hits as f64 / self.cacheable as f64)
    }

    /// Returns the fraction of the bytes sent to clients that came from the cache.
    pub fn byte_ratio(&self) -> Option<f64> {
        (self.bytes > 0 && self.cacheable > 0).then(|| self.hit_bytes as f64 / self.bytes as f64)
    }
}

/// Counts the transactions for each value of a field.
#[derive(Clone, Debug)]
pub struct Groups {
    get: Get,
    kind: FieldKind,
    groups: HashMap<String, Totals>,
}

impl Groups {
    /// Creates an empty table for the values of `field`.
    pub fn by(field: &Field) -> Self {
        Self { get: field.get, kind: field.kind, groups: HashMap::new() }
    }

    /// Counts a transaction in the group of its value of the field.
    pub fn add(&mut self, transaction: &Transaction<'_>) {
        let value = match self.get {
            Get::Text(get) => Cow::Borrowed(get(transaction)),
            Get::Number(get) => self.kind.group(get(transaction)).into(),
        };
        match self.groups.get_mut(&*value) {
            Some(totals) => totals.add(transaction),
            None => self.groups.entry(value.into_owned()).or_default().add(transaction),
        }
    }

    /// Adds the counts of another part of the log. Both tables must count values of the same field.
    pub fn merge(&mut self, other: Self) {
        for (value, totals) in other.groups {
            self.groups.entry(value).or_default().merge(&totals);
        }
    }

    /// Returns each value with its counts. The value with the most requests is the first. If the
    /// values are times, they are in the order of time.
    pub fn sorted(&self) -> Vec<(&str, &Totals)> {
        let mut all: Vec<_> =
            self.groups.iter().map(|(value, totals)| (&**value, totals)).collect();
        match self.kind {
            FieldKind::Time => all.sort_by_key(|(value, _)| *value),
            _ => all.sort_by_key(|(value, totals)| (u64::MAX - totals.requests, *value)),
        }
        all
    }
}

impl FieldKind {
    /// Returns the name of the group to which a number belongs. A group of times is a minute. A
    /// group of durations or bytes is a range between two powers of ten.
    fn group(self, number: Option<u64>) -> String {
        let Some(number) = number else { return String::new() };
        match self {
            Self::Time => time::shown(number)[..16].to_owned(),
            Self::Duration => match number.checked_ilog10() {
                None | Some(0..3) => "below 1ms".to_owned(),
                Some(digits @ 3..6) => format!("from {}ms", 10_u64.pow(digits - 3)),
                Some(digits) => format!("from {}s", 10_u64.pow(digits - 6)),
            },
            Self::Bytes => match number.checked_ilog10() {
                None => "0".to_owned(),
                Some(digits) => format!("from {}", 10_u64.pow(digits)),
            },
            Self::Number | Self::Text | Self::Host | Self::Address => number.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;
    use crate::transaction::Text;

    fn transaction(outcome: &'static str, weight: u32, elapsed: u64) -> Transaction<'static> {
        let mut transaction = Transaction {
            end: 1_764_198_000_000,
            weight,
            bytes: 10,
            elapsed: Some(elapsed),
            ..Transaction::default()
        };
        transaction.texts[Text::Outcome as usize] = outcome.into();
        transaction
    }

    #[test]
    fn groups_count_weights_and_merge() {
        let by = field::named("outcome").expect("a field");
        let (mut one, mut two) = (Groups::by(by), Groups::by(by));
        one.add(&transaction("memory-hit", 30, 50));
        one.add(&transaction("miss", 10, 9_000));
        two.add(&transaction("miss", 1, 90_000));
        one.merge(two);
        let found: Vec<_> = one.sorted().iter().map(|(name, t)| (*name, t.requests)).collect();
        assert_eq!(found, [("memory-hit", 30), ("miss", 11)]);
        let mut all = Totals::default();
        one.sorted().iter().for_each(|(_, totals)| all.merge(totals));
        assert_eq!((all.entries, all.hits, all.cacheable, all.bytes), (3, 30, 41, 410));
        assert!(all.is_estimate() && !Totals::default().is_estimate());
        assert_eq!((all.hit_ratio(), all.byte_ratio()), (Some(30.0 / 41.0), Some(300.0 / 410.0)));
    }

    #[test]
    fn numbers_are_grouped_by_their_size() {
        for (field, expected) in [("time", "2025-11-26T23:00"), ("elapsed", "from 10ms")] {
            let mut groups = Groups::by(field::named(field).expect("a field"));
            groups.add(&transaction("miss", 1, 45_000));
            assert_eq!(groups.sorted()[0].0, expected);
        }
        for (kind, number, expected) in [
            (FieldKind::Duration, 999, "below 1ms"),
            (FieldKind::Duration, 1_000, "from 1ms"),
            (FieldKind::Duration, 59_000_000, "from 10s"),
            (FieldKind::Bytes, 0, "0"),
            (FieldKind::Bytes, 4096, "from 1000"),
            (FieldKind::Number, 404, "404"),
        ] {
            assert_eq!(kind.group(Some(number)), expected, "{number}");
        }
    }
}
