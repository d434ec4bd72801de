//! What makes each of the schemes that keep records in slots of files: layout × write order × read
//! order.

use super::layouts::LayoutKind;
use std::time::Duration;

/// In what order records go to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each as it comes, in a write of its own (R22).
    Arrival,
    /// As they come, what is contiguous gathered into whole pages (R25).
    Pages,
    /// As they come, gathered into the layout's stripes (R61).
    Stripes,
    /// Gathered by origin server first, then as pages (R28).
    Sites,
}

/// In what order records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    /// Each at once.
    Eager,
    /// So many together, sorted by place, or after a while (R26, R27).
    Batched {
        /// How many.
        count: usize,
        /// How long one may wait for the others.
        patience: Duration,
    },
}

/// What happens to a record that is read from disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// It counts as used; the record unused for longest goes first (LRU).
    Touch,
    /// It is written again at the head; the record written longest ago goes first (R65).
    Rewrite,
}

/// A scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name, in the table of schemes and in file names.
    pub name: &'static str,
    /// Where records lie.
    pub layout: LayoutKind,
    /// In what order they are written.
    pub writes: WriteOrder,
    /// In what order they are read.
    pub reads: ReadOrder,
    /// What a hit changes.
    pub on_hit: OnHit,
}

const LAZY: ReadOrder = ReadOrder::Batched { count: 10, patience: Duration::from_millis(250) };

/// STREAM.
pub const STREAM: Plan = Plan {
    name: "stream",
    layout: LayoutKind::Cyclic,
    writes: WriteOrder::Arrival,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Touch,
};

/// STREAM-PACKETIZER as the paper has it.
pub const PACKETIZER: Plan = Plan { name: "packetizer", writes: WriteOrder::Pages, ..STREAM };

/// LAZY-READS.
pub const LAZY_READS: Plan = Plan { name: "lazy-reads", reads: LAZY, ..PACKETIZER };

/// LAZY-READS-LOC.
pub const LAZY_READS_LOC: Plan =
    Plan { name: "lazy-reads-loc", writes: WriteOrder::Sites, ..LAZY_READS };

/// BUDDY.
pub const BUDDY: Plan = Plan { name: "buddy", layout: LayoutKind::Classes, ..STREAM };

/// SQUIDM of the work cited (R37): small records in a mapped file, whose pages are written as they
/// fill.
pub const SQUIDM: Plan = Plan { name: "squidm", layout: LayoutKind::Mapped, ..PACKETIZER };

/// SQUIDMLA: the same, small records gathered by origin server and kept within pages.
pub const SQUIDMLA: Plan = Plan {
    name: "squidmla",
    layout: LayoutKind::MappedAligned,
    writes: WriteOrder::Sites,
    ..PACKETIZER
};

/// Squid's coss.
pub const COSS: Plan = Plan {
    name: "coss",
    layout: LayoutKind::Ring,
    writes: WriteOrder::Stripes,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Rewrite,
};
