//! Addresses of clients, and their use towards origins.

pub mod client_ends;
pub mod proxy_header;
pub mod transparency;
