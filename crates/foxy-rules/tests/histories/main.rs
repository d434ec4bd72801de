//! Whole histories of a cache in virtual time: what the RFCs say clause by clause, and what no
//! history may ever do.

mod history;
mod leaks;
#[path = "../miniature/mod.rs"]
mod miniature;
mod virtual_time;
