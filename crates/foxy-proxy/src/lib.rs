//! The caching proxy. It receives HTTP requests and sends HTTP requests. It reads no arguments, no
//! environment and no files.
//!
//! Each module imports only modules below it in this list:
//! - `explain` tells how the proxy would answer a request.
//! - `server` accepts clients, handles each request and logs it. `server::dispatch` leads from the
//!   head of a request to its answer.
//! - `lookup` answers GET and HEAD from the cache or from a flight. A *flight* is a fetch that
//!   several requests share.
//! - `slices` answers requests for ranges of large objects. A *slice* is 1 MiB of an object,
//!   aligned to 1 MiB, which the cache stores on its own.
//! - `answer` sends responses to a `client`, which speaks HTTP/1.1 or HTTP/2.
//! - `fill` fetches responses for the cache.
//! - `worker` contains everything that the requests of a thread share.
//! - `flight` shares a fetch among several requests.
//! - `settings` contains limits and timeouts. `intercept` decrypts the TLS inside a CONNECT.
//! - `request` represents a request as data. `request::exchange` decides how to handle it, with
//!   pure functions.
//! - `cache` combines memory and store, with purges. The *store* is the cache on disk, from the
//!   crate `foxy-store`.
//! - `upstream` connects to origins.
//! - `core` contains values and budgets that all modules share.

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
