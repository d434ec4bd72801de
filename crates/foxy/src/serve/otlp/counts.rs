//! Counts what the collector received and what was dropped.

use crate::serve::admin::metrics::{Exposition, FamilyKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of exported data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpSignal {
    Spans,
    LogRecords,
}

impl OtlpSignal {
    pub const ALL: [Self; 2] = [Self::Spans, Self::LogRecords];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::LogRecords => "log-records",
        }
    }

    /// Returns the name of the kind in messages to the operator, in the plural.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Spans => "traces",
            Self::LogRecords => "log records",
        }
    }
}

/// The reason why spans or log records were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpDrop {
    /// The queue was full, because the collector was too slow.
    QueueFull,
    /// The collector refused the data.
    Refused,
    /// The collector did not answer in several attempts, or foxy stopped.
    Undelivered,
}

impl OtlpDrop {
    const ALL: [Self; 3] = [Self::QueueFull, Self::Refused, Self::Undelivered];

    const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Refused => "refused",
            Self::Undelivered => "undelivered",
        }
    }
}

#[derive(Debug, Default)]
pub struct OtlpCounts {
    exported: [AtomicU64; OtlpSignal::ALL.len()],
    dropped: [[AtomicU64; OtlpDrop::ALL.len()]; OtlpSignal::ALL.len()],
}

impl OtlpCounts {
    pub fn exported(&self, signal: OtlpSignal, count: u64) {
        self.exported[signal as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub fn dropped(&self, signal: OtlpSignal, why: OtlpDrop, count: u64) {
        self.dropped[signal as usize][why as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Adds the counts of exported and dropped spans and log records to the page `/metrics`.
    pub fn expose(&self, exposition: &mut Exposition) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let labels = OtlpSignal::ALL.map(|signal| [("signal", signal.name())]);
        let samples = labels.iter().zip(&self.exported);
        let samples = samples.map(|(labels, count)| (&labels[..], read(count)));
        let help = "Spans and log records that the OTLP collector accepted.";
        exposition.family("foxy_otlp_exported_total", FamilyKind::Counter, help, samples);
        let pairs = OtlpSignal::ALL.into_iter().flat_map(|signal| {
            OtlpDrop::ALL.map(|why| {
                let count = read(&self.dropped[signal as usize][why as usize]);
                ([("signal", signal.name()), ("reason", why.name())], count)
            })
        });
        let pairs: Vec<_> = pairs.collect();
        let samples = pairs.iter().map(|(labels, count)| (&labels[..], *count));
        let help = "Spans and log records that the OTLP collector did not get, by reason.";
        exposition.family("foxy_otlp_dropped_total", FamilyKind::Counter, help, samples);
    }
}
