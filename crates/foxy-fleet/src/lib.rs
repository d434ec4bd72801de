//! Several foxy nodes that share one cache. Each cache key has an *owner*: the node that fetches
//! and stores the key's responses. The crate reads no files and no clock, and does no IO.
//!
//! - `member` has the nodes of a fleet as the operator lists them.
//! - `rendezvous` orders the members for a cache key: the owner first, then its substitutes.

pub mod member;
pub mod rendezvous;

pub use member::{BadFleet, BadMember, Member, MemberId, Members};
pub use rendezvous::Rendezvous;
