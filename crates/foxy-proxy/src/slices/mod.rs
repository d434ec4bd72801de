//! Ranges of large objects. An object is divided into slices of equal size, and each slice is
//! stored, fetched and sent separately.

pub(crate) mod fill;
pub(crate) mod flight;
pub(crate) mod send;
