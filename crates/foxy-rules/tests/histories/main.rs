//! Tests whole histories of a cache in virtual time: the clauses of the RFCs, and properties that
//! hold for every history.

mod history;
mod leaks;
#[path = "../miniature/mod.rs"]
mod miniature;
mod virtual_time;
