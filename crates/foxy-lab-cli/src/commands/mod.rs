//! The commands of the lab. Each command has its own file or folder.

pub mod collector;
pub mod compare;
pub mod disk;
pub mod figure;
pub mod floor;
pub mod leap;
pub mod load;
pub mod origin;
pub mod passthrough;
pub mod peak;
pub mod reference;
pub mod report;
pub mod sim;
pub mod store_bench;
pub mod trace;
pub mod wpb;

use foxy_cli::Entry;

/// The lab's commands, in the order in which `foxy --help` lists them.
pub const COMMANDS: &[Entry] = &[
    Entry { command: disk::command, run: disk::run },
    Entry { command: figure::command, run: figure::run },
    Entry { command: leap::command, run: leap::run },
    Entry { command: collector::command, run: collector::run },
    Entry { command: load::command, run: load::run },
    Entry { command: compare::command, run: compare::run },
    Entry { command: floor::command, run: floor::run },
    Entry { command: origin::command, run: origin::run },
    Entry { command: passthrough::command, run: passthrough::run },
    Entry { command: peak::command, run: peak::run },
    Entry { command: reference::command, run: reference::run },
    Entry { command: report::command, run: report::run },
    Entry { command: sim::command, run: sim::run },
    Entry { command: trace::command, run: trace::run },
    Entry { command: wpb::command, run: wpb::run },
];
