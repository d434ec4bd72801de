//! Handles ranges of large objects. An object is divided into slices of equal size. Each slice is
//! stored, fetched and sent separately.

pub(crate) mod fill;
pub(crate) mod flight;
pub(crate) mod send;
