//! Runs `http-cache-tests`, the public test suite for HTTP caches, in two ways. One way uses
//! sockets and a running foxy. The other uses foxy's caching rules alone, in virtual time. The
//! failures must be exactly the failures that docs/conformance.md lists. Another test sends gRPC
//! calls through foxy.

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
