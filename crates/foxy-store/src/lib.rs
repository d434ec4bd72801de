//! The store: a contract ("may forget, must never lie"), schemes that keep it, and the shard loop that runs one.
//! It knows no HTTP, no runtime and no clock; web knowledge reaches it only as a [`PlacementHint`].

pub mod contract;
pub mod observe;
pub mod schemes;
pub mod settings;
pub mod statistics;
pub mod status;

pub use contract::{
    AbsentReason, Answer, Key, Lifetime, Outbox, PlacementHint, Record, RefusedReason, Scheme, Site,
    StoreReply, StoreRequest, Ticket,
};
pub use observe::Observer;
pub use schemes::{SchemeName, UnknownScheme};
pub use settings::{SettingsError, StoreSettings};
pub use statistics::StoreStatistics;
pub use status::{OpenStoreError, StoreStatus};
