//! Ranges of large objects by aligned slices: each slice is stored, fetched and sent by itself.

pub(crate) mod fill;
pub(crate) mod flight;
pub(crate) mod send;
