//! The public suite of checks for HTTP caches, `http-cache-tests`: over sockets against a running
//! foxy, and in virtual time against the rules alone. What either may find is what
//! docs/conformance.md says, no more and no less.

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
