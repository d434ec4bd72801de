//! What the lab's commands share: arguments, bars, facts about this machine, a progress line, logs,
//! record files, pages, an origin, the seed, whom to trust, workloads by name or file. The lab
//! itself (crate foxy-lab) reads no files; this does it for it.

pub mod arguments;
pub mod bars;
pub mod certificates;
pub mod collector;
pub mod descriptors;
pub mod ending;
pub mod facts;
pub mod fault;
pub mod folder;
pub mod leftovers;
pub mod line_log;
pub mod logs;
pub mod measured;
pub mod mounts;
pub mod names;
pub mod origin;
pub mod page;
pub mod peers;
pub mod progress;
pub mod records;
pub mod reference;
pub mod run;
pub mod seed;
pub mod temporary;
pub mod trust;
pub mod workloads;
