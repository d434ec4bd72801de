//! Measurements without a network: the storage simulator, the hit ratios of cache policies, the
//! seeds' tables and figures, and the benchmark of the default engine.
#![expect(
    missing_docs,
    reason = "the lab's commands are the only users; plain names need no sentence"
)]

pub mod caches;
pub mod figures;
pub mod storage;
pub mod store_bench;
