//! The lab's commands, and their shared parts. This crate reads arguments, workloads and logs,
//! starts proxies, and writes records and pages; crate `foxy-lab` measures.

mod arguments;
mod bars;
mod certificates;
mod collector;
mod commands;
mod descriptors;
mod experiment;
mod facts;
mod fault;
mod folder;
mod leftovers;
mod line_log;
mod logs;
mod measured;
mod mounts;
mod names;
mod origin;
mod peers;
mod reference;
mod run;
mod trust;
mod workloads;

pub use commands::{COMMANDS, store_bench};
pub use experiment::note_start;
