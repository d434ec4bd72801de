//! Opens a store and finds its records after a stop or a crash.

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

#[derive(Default)]
pub struct StoreRecovery {
    /// The new size of the store, if it changes.
    resizing: Option<u64>,
    journal_reads: u32,
    /// Empty segments that lie before segments with content.
    gaps: BTreeSet<Segment>,
    gaps_in_a_row: BTreeSet<Segment>,
    pub rebuild: Rebuild,
}

/// The parts of the engine that an opening fills.
pub struct Parts<'a> {
    pub cx: &'a mut Context,
    pub writer: &'a mut Writer,
    pub tombstones: &'a mut Tombstones,
}
