//! Deterministic simulation tests of the store. Random schedules of requests, disk completions,
//! faults and crashes run against a storage scheme on a simulated disk in virtual time. A model of
//! the store's contract checks every answer. A failing schedule shrinks to a small script. No crate
//! depends on this crate.

pub mod campaign;
pub mod canary;
pub mod content;
pub mod disk;
mod files;
pub mod generate;
pub mod model;
pub mod panics;
mod pending;
pub mod run;
pub mod script;
pub mod shrink;
pub mod subject;
pub mod tally;
pub mod violation;
