//! What published traces are like, as numbers that the generator in [`synthetic`](super::synthetic)
//! works from.

use super::targets::Target;

/// What a trace is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceModel {
    /// Its name.
    pub name: &'static str,
    /// Gets of the trace that it stands for.
    pub gets: u64,
    /// Different URLs of these, where that is published: a trace of the same length has exactly so
    /// many, one of another length as many in proportion.
    pub urls: Option<u64>,
    /// The share of fetches that repeat an earlier one.
    pub repeats: f64,
    /// The share of repeats whose distance to the earlier fetch is log-uniform; for the others it
    /// is uniform.
    pub recent: f64,
    /// The share of new pages that are never fetched again.
    pub once: f64,
    /// Mean size of what is fetched, in bytes.
    pub mean_size: f64,
    /// How many times as large an object of a page that is never fetched again is, in the mean, as
    /// another.
    pub once_larger: f64,
    /// The share of objects whose size is in the Pareto tail.
    pub tail: f64,
    /// Bytes of the largest object that is never fetched again; the others are smaller by
    /// `once_larger`.
    pub largest: f64,
    /// Gets of a page and its images, in the mean.
    pub burst: f64,
    /// Clients that fetch at the same time.
    pub interleaved: u32,
    /// Clients in all.
    pub clients: u32,
    /// Gets a second.
    pub rate: f64,
    /// Published figures that its traces are to meet.
    pub targets: &'static [Target],
}

impl TraceModel {
    /// How many different URLs a trace of so many gets has; none where chance decides.
    pub fn urls_of(&self, gets: usize) -> Option<u64> {
        let published = u128::from(self.urls?);
        let (gets, whole) = (gets as u128, u128::from(self.gets.max(1)));
        let scaled = (gets * published + whole / 2) / whole;
        Some(u64::try_from(scaled.clamp(gets.min(1), gets)).unwrap_or(u64::MAX))
    }
}

/// Digital's proxy in the week from 29 August 1996.
pub const DEC: TraceModel = TraceModel {
    name: "dec",
    gets: 3_543_968,
    urls: None,
    repeats: 0.49,
    recent: 0.85,
    once: 0.6,
    mean_size: 12_700.0,
    once_larger: 2.2,
    tail: 0.07,
    largest: 50e6,
    burst: 4.0,
    interleaved: 64,
    clients: 10_089,
    rate: 5.9,
    targets: &[Target::MeanSize(12_700.0), Target::Infinite { hits: 0.49, bytes: 0.36 }],
};

/// A slice of it, as the paper's Table 1 has it: 32 % of the gets are hits in 512 MB of memory, 4 %
/// are reads of a 2 GB disk, 64 % are writes of 10.55 KB in the mean.
pub const TABLE1: TraceModel = TraceModel {
    name: "table1",
    gets: 1_058_206,
    repeats: 0.38,
    recent: 0.95,
    mean_size: 10_650.0,
    once_larger: 1.0,
    rate: 10.0,
    targets: &[
        Target::MeanSize(10_550.0),
        Target::TwoLevels { memory: 512 << 20, disk: 2 << 30, shares: [0.32, 0.04, 0.64] },
    ],
    ..DEC
};

/// Boston University's clients, November 1994 to February 1995, browser caches removed. Fitted to
/// the curve of LRU caches with pages in bursts; the rule alone, get by get, has .647, .85 and .5
/// for the first three.
pub const BU95: TraceModel = TraceModel {
    name: "bu95",
    gets: 135_382,
    urls: Some(50_237),
    repeats: 0.63,
    recent: 0.82,
    once: 0.42,
    mean_size: 14_700.0,
    once_larger: 4.6,
    tail: 0.2,
    largest: 17e6,
    burst: 1.2,
    interleaved: 4,
    clients: 591,
    rate: 0.0157,
    targets: &[
        Target::MeanSize(14_664.0),
        Target::Lru { percent: 0.1, hits: 0.269, bytes: 0.106 },
        Target::Lru { percent: 1.0, hits: 0.382, bytes: 0.190 },
        Target::Lru { percent: 5.0, hits: 0.479, bytes: 0.272 },
        Target::Lru { percent: 10.0, hits: 0.530, bytes: 0.316 },
        Target::Lru { percent: 30.0, hits: 0.599, bytes: 0.380 },
        Target::Infinite { hits: 0.629, bytes: 0.405 },
    ],
};

/// IRCache, 2004, as LEAP replayed it (SEEDS §1.3); its curve was not published, so there is
/// nothing to meet but its counts.
pub const IRCACHE: TraceModel = TraceModel {
    name: "ircache",
    gets: 97_462,
    urls: Some(57_685),
    repeats: 0.408,
    recent: 0.7,
    mean_size: 10_550.0,
    once_larger: 1.0,
    clients: 200,
    rate: 5.0,
    targets: &[Target::Urls { gets: 97_462, urls: 57_685 }],
    ..DEC
};

/// The models there are.
pub const MODELS: &[TraceModel] = &[TABLE1, DEC, BU95, IRCACHE];
