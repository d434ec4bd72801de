//! Deterministic simulation tests of the store: random schedules of requests, completions, faults
//! and crashes, run on a modelled disk in virtual time and judged by a model of the contract.
//! Failures shrink to a script. Nothing depends on this crate, and it knows no HTTP.

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
