//! What `foxy serve` is made of, besides the proxy and the store themselves.

mod access_line;
mod access_log;
mod admin;
mod exposition;
mod log_queue;
pub mod process;
mod welcome;
