//! Opens a store and rebuilds its index, also after a crash.

mod head;
mod open;
pub(crate) mod rebuild;
pub(crate) mod resize;
pub(crate) mod summaries;
mod switch;

use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::Segment;
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
pub(crate) use open::formatted;
use rebuild::Rebuild;
use std::collections::BTreeSet;

/// The progress of opening a store.
#[derive(Default)]
pub struct StoreRecovery {
    /// The new size of the store in bytes, if the opening changes the size.
    resizing: Option<u64>,
    journal_reads: u32,
    /// Empty segments that are followed by segments with content. These empty segments are marked
    /// as void.
    gaps: BTreeSet<Segment>,
    gaps_in_a_row: BTreeSet<Segment>,
    pub rebuild: Rebuild,
}

/// The parts of the storage scheme that an opening changes.
pub struct Parts<'a> {
    pub cx: &'a mut Context,
    pub writer: &'a mut Writer,
    pub tombstones: &'a mut Tombstones,
}
