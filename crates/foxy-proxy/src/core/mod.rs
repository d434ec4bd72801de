//! Values and budgets that every part of the proxy shares: addresses, counters, HTTP/2 frames,
//! places of connections, TLS with clients.

pub(crate) mod client_block;
pub mod client_tls;
pub mod counters;
pub(crate) mod crypto;
pub(crate) mod fields;
pub mod forward_reason;
pub(crate) mod frames;
pub mod hit_source;
pub(crate) mod places;
pub mod token;
pub(crate) mod transport;
pub(crate) mod waiting;
