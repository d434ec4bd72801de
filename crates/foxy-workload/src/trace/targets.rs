//! Published figures that a synthetic trace is to meet. How the trace is made is in
//! [`synthetic`](super::synthetic); what it has instead is for the lab to find out, which has the
//! caches.

/// Something published about a trace. Ratios are shares of the gets or of the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// How many gets of how many different URLs there are.
    Urls {
        /// Gets.
        gets: u64,
        /// Different URLs.
        urls: u64,
    },
    /// Mean bytes of a get.
    MeanSize(f64),
    /// Of a cache that never evicts.
    Infinite {
        /// Hit ratio.
        hits: f64,
        /// Byte hit ratio.
        bytes: f64,
    },
    /// Of an LRU cache.
    Lru {
        /// Its size in percent of the unique bytes.
        percent: f64,
        /// Hit ratio.
        hits: f64,
        /// Byte hit ratio.
        bytes: f64,
    },
    /// Of an LRU memory before an LRU disk.
    TwoLevels {
        /// Bytes of memory.
        memory: u64,
        /// Bytes of disk.
        disk: u64,
        /// Hits in memory, reads and writes.
        shares: [f64; 3],
    },
}
