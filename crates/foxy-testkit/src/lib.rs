//! Shared test helpers: origins, clients and stores. A helper panics on any error, and so fails the
//! test. Crates list this crate only in their `dev-dependencies`.

pub mod certificates;
pub mod changing_server;
pub mod client;
pub mod http;
pub mod http2;
pub mod origin;
pub mod parent;
pub mod ports;
pub mod store;
pub mod tunnel;
pub mod wait;
