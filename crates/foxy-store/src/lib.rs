//! The store: a contract ("may forget, must never lie"), schemes that keep it, and the shard loop
//! that runs one. It knows no HTTP, no runtime and no clock; web knowledge reaches it only as a
//! [`PlacementHint`].

pub mod beginning;
pub mod checkpoint;
mod completion;
pub mod contract;
mod embedded;
pub mod engine;
pub mod index;
pub mod journal;
pub mod key_map;
pub mod layout;
pub mod lru;
mod mailbox;
pub mod medium;
pub mod observe;
mod opening;
pub mod owed;
pub mod pages;
mod phases;
pub mod policy;
pub mod record;
pub mod schemes;
pub mod settings;
pub mod shard;
pub mod statistics;
pub mod status;
pub mod step;
pub mod superblock;
pub mod webcosm;
pub mod worth;

pub use beginning::{AnewReason, Beginning};
pub use contract::{
    AbsentReason, Answer, Key, Lifetime, Look, Lookup, Outbox, PlacementHint, ReadNow, Record,
    RefusedReason, Scheme, Site, StoreReply, StoreRequest, Ticket,
};
pub use embedded::{OpenError, PendingAnswer, Store};
pub use engine::Ask;
pub use key_map::{KeyMap, KeySet};
pub use observe::Observer;
pub use policy::{Policy, PolicyName, PolicySettings, UnknownPolicy};
pub use schemes::{SchemeName, UnknownScheme};
pub use settings::{Newcomers, Recovery, SettingsError, SizeWish, StoreSettings, WriteBudget};
pub use shard::{Reply, Shard, ShardSettings, StoreHandle};
pub use statistics::StoreStatistics;
pub use status::{OpenStoreError, StoreStatus};
pub use step::StepDriver;
