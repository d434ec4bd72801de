//! The store: a contract ("may forget, must never lie"), schemes that keep it, and the shard loop that runs one.
//! It knows no HTTP, no runtime and no clock; web knowledge reaches it only as a [`PlacementHint`].

pub mod contract;

pub use contract::{
    AbsentReason, Answer, Key, Lifetime, Outbox, PlacementHint, Record, RefusedReason, Scheme, Site,
    StoreReply, StoreRequest, Ticket,
};
