//! A request as data: its target, the decisions about it, and the record of its answer. No input or
//! output here.

pub mod access;
pub(crate) mod answered;
pub mod cache_status;
pub(crate) mod exchange;
pub(crate) mod forwarding_fields;
pub mod mode;
pub(crate) mod proxy_status;
pub mod reason;
