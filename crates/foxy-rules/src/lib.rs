//! The rules of HTTP caching (RFC 9111 and related RFCs) as pure functions without IO and clocks.
//! Every refusal has a named reason. The modules follow the order of RFC 9111: `storable` (§3),
//! `key` (§2, §4.1), `reuse` (§4), `freshness` (§4.2), `validate` (§4.3), `head` (§4.3.5),
//! `invalidate` (§4.4), `cache_control` (§5.2, RFC 9213). `coding` follows RFC 9110 §8.4.

pub mod cache_control;
pub mod coding;
pub mod date;
pub mod explain;
pub mod fields;
pub mod freshness;
pub mod head;
pub mod invalidate;
mod key;
pub mod multipart;
pub mod operator;
mod package;
pub mod partial;
pub mod range;
pub mod reuse;
pub mod storable;
pub mod validate;

pub use cache_control::{RequestControl, ResponseControl, Role};
pub use fields::Fields;
pub use freshness::{Lifetime, Policy, StoredTimes};
pub use head::{HeadSays, head_says};
pub use invalidate::invalidates;
pub use key::{Vary, VaryError, cache_key};
pub use multipart::Multipart;
pub use partial::Part;
pub use range::{RangeAnswer, RangeSpec, Span, UpstreamRange, requested_range, upstream_range};
pub use reuse::{Failure, Permit, Reuse, RevalidateReason, may_reuse};
pub use storable::{NotStoredReason, Storability, storability};
pub use validate::{Conditional, Validators, evaluate, merges_into_stored};
