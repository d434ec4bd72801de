//! The storage schemes other than webcosm (foxy's own engine), and the replacement policies. A
//! scheme decides where the store puts its records on disk. The schemes come from Squid (ufs, aufs,
//! diskd, coss), from the WebCoSM paper (Markatos and others), and from Squid-M (Maltzahn and
//! others). [`SCHEMES`] lists all schemes, including the default scheme of [`foxy_store`]. `foxy
//! figure requirements` names the requirement of the papers that each scheme meets.

mod checkpoint;
mod index;
mod lru;
mod pages;
pub mod policy;
mod scheme_name;
mod settings;
mod slotted;
pub mod stream_packetizer;
mod table;
mod tuning;
mod ufs;

pub use policy::{POLICIES, Policy, PolicyName, PolicySettings, UnknownPolicy};
pub use scheme_name::{SchemeName, UnknownScheme};
pub use settings::{AufsWrites, SchemeSettings, SchemeSettingsError, UfsMapping, UfsReclaim};
pub use slotted::{BufferChoice, locality_buffers};
pub use table::{PreferredDevice, SCHEMES, SchemeRow};
pub use tuning::{TUNING, TuningRow};
