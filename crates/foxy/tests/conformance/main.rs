//! Runs the public test suite for HTTP caches, `http-cache-tests`, in two ways: over sockets with a
//! running foxy, and in virtual time with foxy's caching rules alone. The failures must be exactly
//! the failures that docs/conformance.md lists. Another test
//! sends gRPC calls through foxy.

mod checks;
mod grpc;
#[path = "../../../foxy-rules/tests/miniature/mod.rs"]
mod miniature;
mod player;
mod sockets;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod vectors;
mod virtual_time;
