//! Tests the operator's decisions: which clients the proxy serves, the rules for requests, and the
//! PAC file.

mod admission;
mod auto_config;
mod limits;
mod rules;
mod users;
