//! The lab's commands and their shared code. This crate parses arguments, reads workloads and logs,
//! starts proxies, and writes records and pages. The crate `foxy-lab` performs the measurements.

mod arguments;
mod bars;
mod certificates;
mod collector;
mod commands;
mod experiment;
mod fault;
mod floor;
mod folder;
mod logs;
mod measured;
mod mounts;
mod origin;
mod peers;
mod reference;
mod run;
mod trust;
mod workloads;

pub use commands::figure::requirements;
pub use commands::{COMMANDS, store_bench};
pub use experiment::note_start;
