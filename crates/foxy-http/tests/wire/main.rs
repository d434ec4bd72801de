//! Tests of the codec with bytes as on the wire. Each file tests one subject.

mod allocations;
mod chunked;
mod connection;
mod encode;
mod headers;
mod http2;
mod limits;
mod plain;
mod properties;
mod request_hazards;
mod response_hazards;
mod support;
mod targets;
