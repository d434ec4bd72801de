//! Several foxy nodes that share one cache. Each cache key has an *owner*: the node that fetches
//! and stores the key's responses. Only `purges::redis` does IO, and only `purges::runner` has
//! threads.
//!
//! - `member` has the nodes of a fleet as the operator lists them.
//! - `rendezvous` orders the members for a cache key: the owner first, then its substitutes.
//! - `purges` orders the purges of all nodes, and knows when a purge holds everywhere.

pub mod member;
pub mod purges;
pub mod rendezvous;

pub use member::{BadFleet, BadMember, Member, MemberId, Members};
pub use rendezvous::Rendezvous;
