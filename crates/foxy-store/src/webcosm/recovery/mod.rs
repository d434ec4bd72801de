//! Opening, and what a store learns of its records after a stop or a crash.

pub(crate) mod bad_slots;
pub(crate) mod head;
pub(crate) mod open;
pub(crate) mod phase;
pub(crate) mod rebuild;
pub(crate) mod resize;
pub(crate) mod summaries;
pub(crate) mod switch;
