//! Models of published traces for the generator in [`synthetic`](super::synthetic). The generator
//! draws fetches of pages, which consist of an object and its images. Each model contains the
//! published figures that its generated traces must match.

/// The parameters of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceModel {
    /// Name on the command line.
    pub name: &'static str,
    /// Number of GET requests in the published trace.
    pub gets: u64,
    /// Published number of URLs. A generated trace has exactly this number, scaled by the trace's
    /// length. With `None`, the random fetches determine the number.
    pub urls: Option<u64>,
    /// Share of page fetches that repeat an earlier fetch.
    pub repeats: f64,
    /// Share of repeats that choose the earlier fetch with a log-uniform distance, so that recent
    /// fetches are more likely. The other repeats choose among all earlier fetches with equal
    /// probability. The distance is a number of fetches.
    pub recent: f64,
    /// Share of new pages that no later request repeats.
    pub once: f64,
    /// Mean size of a GET response in bytes.
    pub mean_size: f64,
    /// Mean size of objects on pages that are never repeated, as a multiple of the mean size of
    /// other objects.
    pub once_larger: f64,
    /// Share of objects with sizes from a Pareto distribution. The other sizes are lognormal.
    pub tail: f64,
    /// Largest size in bytes of an object on a page that is never fetched again. For other objects,
    /// the largest size is this number divided by `once_larger`.
    pub largest: f64,
    /// Mean number of GET requests for a page with its images.
    pub burst: f64,
    /// Number of clients that fetch pages at the same time.
    pub interleaved: u32,
    /// Total number of clients.
    pub clients: u32,
    /// GET requests per second.
    pub rate: f64,
    /// Published figures that a generated trace must match.
    pub targets: &'static [Target],
}

impl TraceModel {
    /// Returns the number of URLs in a trace of `gets` requests. Returns `None` if the model gives
    /// no number of URLs.
    pub(super) fn urls_of(&self, gets: usize) -> Option<u64> {
        let published = u128::from(self.urls?);
        let (gets, whole) = (gets as u128, u128::from(self.gets.max(1)));
        let scaled = (gets * published + whole / 2) / whole;
        Some(u64::try_from(scaled.clamp(gets.min(1), gets)).unwrap_or(u64::MAX))
    }
}

/// The trace of the proxy of Digital Equipment in the week from 29 August 1996.
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

/// A part of [`DEC`], as in Table 1 of the WebCoSM paper (paper 001 in docs/figures.md). In front
/// of a disk of 2 GB, a memory of 512 MB answers 32 % of the requests. Another 4 % read the disk.
/// The other 64 % each write a record to the disk, 10.55 KB on average.
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

/// Clients at Boston University without browser caches, November 1994 to February 1995. The
/// parameters are fitted to the published hit ratios of LRU caches. In a model with pages of one
/// object, `repeats`, `recent` and `once` would be .647, .85 and .5.
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

/// The IRCache trace of 2004, which the LEAP paper (paper 002 in docs/figures.md) replayed. The
/// authors of this trace published only its number of requests and its number of different URLs.
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

/// All models of traces.
pub const MODELS: &[TraceModel] = &[TABLE1, DEC, BU95, IRCACHE];

/// A published figure of a trace. `hits` and `bytes` are the hit ratios by requests and by bytes.
#[expect(missing_docs, reason = "the variants document their fields")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Number of requests and of different URLs.
    Urls { gets: u64, urls: u64 },
    /// Mean bytes of a response.
    MeanSize(f64),
    /// Hit ratios of a cache that never evicts.
    Infinite { hits: f64, bytes: f64 },
    /// Hit ratios of an LRU cache. The size of the cache is `percent` of the sum of all URLs'
    /// sizes.
    Lru { percent: f64, hits: f64, bytes: f64 },
    /// An LRU memory in front of an LRU disk, with their sizes in bytes. `shares` are the shares of
    /// requests that hit memory, read the disk and write to the disk.
    TwoLevels { memory: u64, disk: u64, shares: [f64; 3] },
}
