//! Measurements without a network. They cover the storage simulator, the hit ratios of cache
//! policies and of fleets, the tables and figures of the papers, and the benchmarks of the default
//! engine.
#![expect(
    missing_docs,
    reason = "the lab's commands are the only users; plain names need no sentence"
)]

pub mod caches;
pub mod figures;
pub mod fleet;
pub mod storage;
pub mod store_bench;
