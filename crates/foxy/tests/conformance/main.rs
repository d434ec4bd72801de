//! Runs the public test suite for HTTP caches, `http-cache-tests`. One run uses sockets and a
//! running foxy. The other run uses virtual time and only foxy's caching rules. The failures must
//! be exactly those in docs/conformance.md.

mod checks;
#[path = "../../../foxy-rules/tests/miniature/mod.rs"]
mod miniature;
mod player;
mod sockets;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod vectors;
mod virtual_time;
