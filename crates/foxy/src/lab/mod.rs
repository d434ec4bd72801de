//! The lab on the command line: its commands, and the parts that they share. Crate `foxy-lab`
//! measures and reads no files; this module reads arguments, workloads and logs, starts proxies,
//! and writes records and pages. A build without the feature `lab` leaves it out.

pub mod arguments;
pub mod bars;
pub mod certificates;
pub mod collector;
pub mod commands;
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
pub mod records;
pub mod reference;
pub mod run;
pub mod seed;
pub mod trust;
pub mod workloads;
