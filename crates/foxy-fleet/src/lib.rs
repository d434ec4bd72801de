//! Several foxy nodes that share one cache. Each cache key has an *owner*: the node that fetches
//! and stores the key's responses. Only the engines `purges::nats` and `purges::redis`, `cold` and
//! `found` do IO. Only `purges::runner` and `cold` have threads.
//!
//! - `nodes` tells the proxy which node to ask, and which nodes are lost or busy.
//!   `node_table` has their numbers while the list of members changes.
//! - `member` has the nodes of a fleet as the operator lists them.
//! - `found` finds the members by DNS.
//! - `joining` tells how much of its keys a node takes while it joins or leaves.
//! - `times` measures how fast nodes answer.
//! - `purges` orders the purges of all nodes, and knows when a purge holds everywhere.
//! - `cold` keeps stored responses in a store that speaks S3. It works without a fleet too.
//!
//! `foxy_base::Rendezvous` chooses the owner of a key. `foxy_base::KeyRates` measures how often
//! nodes ask for each key.

#[cfg(feature = "cold")]
pub mod cold;
pub mod found;
mod joining;
pub mod member;
mod node_table;
pub mod nodes;
pub mod purges;
mod times;

pub use joining::JoinTerms;
pub use member::{BadFleet, BadMember, Member, MemberId, Members};
pub use nodes::{NodeStatus, Nodes};
