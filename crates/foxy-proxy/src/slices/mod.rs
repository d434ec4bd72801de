//! Handles ranges of large objects. A *slice* is 1 MiB of an object, aligned to 1 MiB. Each slice
//! is fetched, stored and sent on its own. The *set* of an object's slices has one stored head,
//! with the length of the object.

pub(crate) mod fill;
pub(crate) mod flight;
pub(crate) mod send;
