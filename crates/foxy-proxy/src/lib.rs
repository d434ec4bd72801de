//! The caching proxy: HTTP in, HTTP out. It reads no arguments, no environment and no files.
//!
//! `exchange` holds the life of a request as pure decisions; `serve` carries it out for one connection, `cached` for
//! what a cache may answer, `forward` for the rest. A miss is a `flight` that a `fill` feeds. `server` starts and stops.

mod accept;
pub mod access;
mod answer;
mod aside;
mod behind;
mod body_parts;
mod cache;
pub mod cache_status;
mod cached;
mod client_io;
mod client_sides;
pub mod client_tls;
pub mod counters;
mod doubts;
mod epoch;
mod exchange;
pub mod explain;
mod fields;
mod fill;
mod flight;
mod flights;
mod forward;
mod freshen;
mod hit;
pub mod intercept;
mod keeper;
pub mod memory;
mod news;
pub mod not_kept;
mod outgoing;
mod parts;
mod proxy_header;
mod proxy_status;
pub mod purge;
pub mod purger;
pub mod reason;
mod recording;
mod resume;
mod sender;
mod serve;
pub mod server;
pub mod settings;
mod settle;
mod several;
mod stale;
pub mod storage;
pub mod stored;
mod stream;
pub mod token;
mod tunnelling;
pub mod upstream;
mod windows;
mod worker;
