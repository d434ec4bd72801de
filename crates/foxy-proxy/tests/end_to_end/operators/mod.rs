//! Tests the operator's decisions: which clients the proxy serves, and the rules for requests.

mod admission;
mod limits;
mod rules;
mod users;
