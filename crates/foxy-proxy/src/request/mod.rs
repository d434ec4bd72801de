//! A request as data: what was asked, what is decided, and what is recorded of its answer. Nothing
//! here waits or does input and output.

pub mod access;
pub(crate) mod answer_options;
pub mod cache_status;
pub(crate) mod exchange;
pub(crate) mod forwarding_fields;
pub mod mode;
pub(crate) mod opening;
pub(crate) mod progress;
pub(crate) mod proxy_status;
pub mod reason;
pub(crate) mod sent;
pub(crate) mod wanted;
