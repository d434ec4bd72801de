//! The lab's commands, and their shared parts. This crate reads arguments, workloads and logs,
//! starts proxies, and writes records and pages; crate `foxy-lab` measures.

mod arguments;
mod bars;
mod certificates;
mod collector;
mod commands;
mod descriptors;
mod ending;
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
mod page;
mod peers;
mod records;
mod reference;
mod run;
mod seed;
mod trust;
mod workloads;

pub use commands::{COMMANDS, store_bench};
pub use records::note_start;
