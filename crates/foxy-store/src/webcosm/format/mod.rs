//! The disk format of webcosm: the layout of the file and the encoding of its pages. These modules
//! do no IO.

pub(crate) mod geometry;
pub(crate) mod incarnation;
pub(crate) mod location;
pub(crate) mod packed;
pub(crate) mod summary;
pub(crate) mod use_pages;
