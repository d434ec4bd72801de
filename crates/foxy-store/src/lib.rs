//! The store: a contract ("may forget, must never lie"), the default engine webcosm, the parts that
//! other schemes share with it, and the shard loop that runs a scheme. It knows no HTTP, no runtime
//! and no clock; web knowledge reaches it only as a [`PlacementHint`].

pub mod beginning;
pub mod completion;
pub mod contract;
mod embedded;
pub mod engine;
pub mod key_map;
pub mod layout;
mod mailbox;
pub mod null;
pub mod observe;
pub mod one_file;
pub mod owed;
pub mod record;
pub mod settings;
pub mod shard;
pub mod statistics;
pub mod status;
pub mod step;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
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
pub use one_file::{journal, medium, superblock};
pub use settings::{Newcomers, Recovery, SettingsError, SizeWish, StoreSettings, WriteBudget};
pub use shard::{Reply, Shard, ShardSettings, StoreHandle};
pub use statistics::StoreStatistics;
pub use status::{OpenStoreError, StoreStatus};
pub use step::StepDriver;
