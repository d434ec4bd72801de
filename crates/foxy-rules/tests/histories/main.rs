//! Tests histories of a cache (sequences of exchanges) in virtual time: the clauses of the RFCs,
//! and properties that hold for every history.

mod history;
mod leaks;
#[path = "../miniature/mod.rs"]
mod miniature;
mod virtual_time;
