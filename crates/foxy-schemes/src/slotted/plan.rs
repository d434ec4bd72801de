//! The plans that define the slotted schemes: a layout, a write order and a read order.

use super::layout::LayoutKind;
use std::time::Duration;

/// The order of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each record in its own write, in order of arrival (R22).
    Arrival,
    /// Contiguous records collected into whole pages (R25).
    Pages,
    /// Records collected into the stripes of the layout (R61).
    Stripes,
    /// Records grouped by origin server, then collected into pages (R28).
    Sites,
}

/// The order of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    Eager,
    /// Sorted batches of `count` reads, or fewer reads after the time `patience` (R26, R27).
    Batched {
        count: usize,
        patience: Duration,
    },
}

/// The effect of a hit on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// Note the use. The least recently used record is evicted first.
    Touch,
    /// Write the record again at the write position. The record written longest ago is evicted
    /// first (R65).
    Rewrite,
}

/// The definition of a slotted scheme.
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

/// STREAM-PACKETIZER as described in the paper.
pub const PACKETIZER: Plan = Plan { name: "packetizer", writes: WriteOrder::Pages, ..STREAM };

/// LAZY-READS.
pub const LAZY_READS: Plan = Plan { name: "lazy-reads", reads: LAZY, ..PACKETIZER };

/// LAZY-READS-LOC.
pub const LAZY_READS_LOC: Plan =
    Plan { name: "lazy-reads-loc", writes: WriteOrder::Sites, ..LAZY_READS };

/// BUDDY.
pub const BUDDY: Plan = Plan { name: "buddy", layout: LayoutKind::Classes, ..STREAM };

/// SQUIDM of the cited work (R37): small records in a mapped file, whose pages are written once
/// they are full.
pub const SQUIDM: Plan = Plan { name: "squidm", layout: LayoutKind::Mapped, ..PACKETIZER };

/// SQUIDMLA: like SQUIDM, but small records are grouped by origin server and never cross a page
/// boundary.
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
