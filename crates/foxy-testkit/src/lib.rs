//! Origins, clients and stores for the tests of several crates. Every helper panics where a test
//! would fail. Crates name this one only in their `dev-dependencies`.

pub mod certificates;
pub mod client;
pub mod http;
pub mod http2;
pub mod origin;
pub mod store;
pub mod tunnel;
pub mod wait;
