//! The caching proxy: HTTP in, HTTP out. It reads no arguments, no environment and no files.
//!
//! Imports go down this list:
//! - `explain` says what the cache would do with a request.
//! - `server` accepts clients, carries out each request and logs it. `server::dispatch` leads from
//!   a request's head to its answer.
//! - `lookup` answers GET and HEAD from the cache or a flight. `slices` does so for ranges of large
//!   objects.
//! - `answer` sends responses to a `client`, which speaks HTTP/1.1 or HTTP/2.
//! - `fill` fetches for the cache.
//! - `worker` holds everything that the requests of a thread can reach.
//! - `flight` shares a fetch among requests.
//! - `settings` holds limits and waits. `intercept` ends the TLS inside a CONNECT.
//! - `request` holds a request as data. `request::exchange` decides what happens to it, as pure
//!   functions.
//! - `cache` is memory and store together, with purges.
//! - `upstream` connects to origins.
//! - `core` holds values and budgets that every part shares.

mod answer;
pub mod cache;
mod client;
pub mod core;
pub mod explain;
mod fill;
mod flight;
pub mod intercept;
mod lookup;
pub mod request;
pub mod server;
pub mod settings;
mod slices;
pub mod upstream;
mod worker;
