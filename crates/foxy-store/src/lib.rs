//! A disk store for cached web objects. The crate contains the contract of the store, the default
//! storage scheme webcosm, and the loop that runs a scheme on a thread. The store may lose a
//! record, but never returns a wrong record. The store contains no HTTP code, no async runtime and
//! no clock. All it knows about the web is [`PlacementHint`].
//!
//! Start with [`Store`]. The hidden modules are for foxy's own schemes, tools and tests.

pub mod beginning;
#[doc(hidden)]
pub mod completion;
pub mod contract;
mod embedded;
pub mod key_map;
#[doc(hidden)]
pub mod layout;
pub mod map;
#[doc(hidden)]
pub mod null;
pub mod observe;
#[doc(hidden)]
pub mod one_file;
#[doc(hidden)]
pub mod record;
pub mod settings;
pub mod shard;
pub mod statistics;
pub mod status;
#[doc(hidden)]
pub mod step;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
#[doc(hidden)]
pub mod webcosm;
#[doc(hidden)]
pub mod worth;

pub use beginning::{AnewReason, Beginning};
pub use contract::{
    AbsentReason, Answer, Find, Key, Lifetime, Look, Lookup, Outbox, PlacementHint, ReadNow,
    Record, RecordPlace, RefusedReason, Scheme, Site, StoreReply, StoreRequest, Ticket,
};
pub use embedded::{OpenError, PendingAnswer, Store};
pub use key_map::{KeyMap, KeySet};
pub use observe::Observer;
#[doc(hidden)]
pub use one_file::{journal, medium, superblock};
pub use settings::{Newcomers, Recovery, SettingsError, SizeWish, StoreSettings, WriteBudget};
#[doc(hidden)]
pub use shard::engine;
pub use shard::engine::Ask;
pub use shard::{Reply, Shard, ShardSettings, StoreHandle, ThreadRing};
pub use statistics::StoreStatistics;
pub use status::{OpenStoreError, StoreStatus};
#[doc(hidden)]
pub use step::StepDriver;
