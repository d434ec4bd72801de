//! What webcosm writes on disk: segments, pages, summaries and the places of records.

pub(crate) mod geometry;
pub(crate) mod incarnation;
pub(crate) mod location;
pub(crate) mod packed;
pub(crate) mod slot_map;
pub(crate) mod summary;
pub(crate) mod use_pages;
