//! The disk format: how a file is divided, and how pages are encoded. No IO.

pub(crate) mod geometry;
pub(crate) mod incarnation;
pub(crate) mod location;
pub(crate) mod packed;
pub(crate) mod summary;
pub(crate) mod use_pages;
