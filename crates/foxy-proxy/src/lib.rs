//! The caching proxy. It receives HTTP requests and sends HTTP requests. It reads no arguments, no
//! environment and no files.
//!
//! Each module imports only modules below it in this list:
//! - `explain` tells how the proxy would answer a request.
//! - `server` accepts clients, handles each request and logs it. `server::dispatch` leads from the
//!   head of a request to its answer.
//! - `lookup` answers GET and HEAD from the cache or from a flight. `slices` answers requests for
//!   ranges of large objects.
//! - `answer` sends responses to a `client`, which speaks HTTP/1.1 or HTTP/2.
//! - `fill` fetches responses for the cache.
//! - `worker` contains everything that the requests of a thread share.
//! - `flight` shares a fetch among several requests.
//! - `settings` contains limits and timeouts. `intercept` decrypts the TLS inside a CONNECT.
//! - `request` represents a request as data. `request::exchange` decides how to handle it, with
//!   pure functions.
//! - `cache` combines memory and store, with purges.
//! - `upstream` connects to origins.
//! - `core` contains values and budgets that all modules share.
//!
//! Terms that the modules share:
//! - *Worker*: a thread that serves clients, with its own async runtime.
//! - *Store*: the cache on disk, from the crate `foxy-store`. It stores records.
//! - *Part*: up to 1 MiB of a stored body. Each part of a large body is one record of the store.
//! - *Slice*: 1 MiB of an object, aligned to 1 MiB, that the cache fetches and stores on its own.
//! - *Flight*: a fetch that several requests share. Its *fill* receives the response from the
//!   origin, and its *readers* send the response to clients.
//! - *Tee*: stores an answer while the answer passes to one client.
//! - *Variant*: one of several responses of a URL. The *Vary list* of the URL names the request
//!   headers that choose among them.
//! - *Epoch*: tells when a look-up or fetch began, by a number that orders the events of a URL.
//! - *Watch*: a note that a look-up or fetch of a URL is in progress. While it exists, the cache
//!   records all writes to the URL, so that no outdated response enters the cache.
//! - *Purge*: a rule that removes stored responses.
//! - *Place*: permits one client connection. The number of places is limited.
//! - *Exchange*: one request to an origin, with its response.
//! - *Route*: the way to an origin, directly or through a parent proxy.

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
