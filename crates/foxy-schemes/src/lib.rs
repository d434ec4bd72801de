//! Storage schemes beside foxy's own: Squid's (ufs, aufs, diskd, coss), the schemes of the WebCoSM
//! paper and of Squid-M, and their replacement policies. [`SCHEMES`] lists all schemes, also the
//! default engine of [`foxy_store`].

pub mod checkpoint;
pub mod index;
pub mod lru;
pub mod pages;
pub mod policy;
mod scheme_name;
mod settings;
pub mod slotted;
pub mod stream_packetizer;
mod table;
pub mod ufs;

pub use policy::{POLICIES, Policy, PolicyName, PolicySettings, UnknownPolicy};
pub use scheme_name::{SchemeName, UnknownScheme};
pub use settings::{SchemeSettings, SchemeSettingsError, UfsMapping, UfsReclaim};
pub use table::{DeviceWish, SCHEMES, SchemeRow};
