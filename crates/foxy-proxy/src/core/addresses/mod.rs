//! Addresses of clients, and the use of these addresses for connections to origins.

pub mod client_ends;
pub mod proxy_header;
pub mod transparency;
