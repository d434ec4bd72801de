//! The plans that define the slotted schemes: layout × write order × read order.

use super::layout::LayoutKind;
use std::time::Duration;

/// The order of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each record in its own write, as it comes (R22).
    Arrival,
    /// Contiguous records gathered into whole pages (R25).
    Pages,
    /// Records gathered into the layout's stripes (R61).
    Stripes,
    /// Records gathered by origin server first, then into pages (R28).
    Sites,
}

/// The order of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    Eager,
    /// Sorted batches of `count` reads, or fewer after `patience` (R26, R27).
    Batched {
        count: usize,
        patience: Duration,
    },
}

/// The effect of a hit on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// The record counts as used; the least recently used record goes first.
    Touch,
    /// The record is written again at the head; the record written longest ago goes first (R65).
    Rewrite,
}

/// A scheme of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name, in the table of schemes and in file names.
    pub name: &'static str,
    /// The placement of records.
    pub layout: LayoutKind,
    /// The order of writes.
    pub writes: WriteOrder,
    /// The order of reads.
    pub reads: ReadOrder,
    /// The effect of a hit.
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
