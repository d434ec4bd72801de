//! HTTP caching rules (RFC 9111 and kin) as pure functions: no IO, no clock, no knowledge of how
//! bytes travel. Every "no" is a named reason. Read in the order of the RFC: `storable` (§3),
//! `vary` and `reuse` (§4), `freshness` (§4.2), `validate` (§4.3), `head` (§4.3.5), `invalidate`
//! (§4.4), `cache_control` (§5.2), `targeted` (RFC 9213).

pub mod cache_control;
pub mod date;
pub mod explain;
pub mod fields;
pub mod freshness;
pub mod head;
pub mod invalidate;
pub mod key;
pub mod multipart;
pub mod not_stored;
mod package;
pub mod partial;
pub mod policy;
pub mod range;
pub mod reuse;
pub mod slice;
pub mod storable;
mod targeted;
pub mod upstream_range;
pub mod validate;
pub mod vary;

pub use cache_control::{RequestControl, ResponseControl};
pub use fields::Fields;
pub use freshness::{Lifetime, StoredTimes};
pub use head::{HeadSays, head_says};
pub use invalidate::invalidates;
pub use key::cache_key;
pub use multipart::Multipart;
pub use not_stored::NotStoredReason;
pub use partial::Part;
pub use policy::{Policy, Role};
pub use range::{RangeAnswer, RangeSpec, Span, requested_range};
pub use reuse::{Failure, Permit, Reuse, RevalidateReason, may_reuse};
pub use storable::{Storability, storability};
pub use upstream_range::{UpstreamRange, upstream_range};
pub use validate::{Conditional, Validators, evaluate, merges_into_stored};
pub use vary::{Vary, VaryError};
