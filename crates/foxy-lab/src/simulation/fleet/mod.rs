//! Simulates the caches of a fleet's nodes over a trace, with the proxy's functions for owners of
//! keys and for rates of keys. A *part* of a run counts only some of the nodes. The tallies of all
//! parts add up to exactly the tally of a whole run.

pub mod generated;
mod membership;
mod node_cache;
pub mod plan;
mod run;
pub mod tally;

pub use run::run;
