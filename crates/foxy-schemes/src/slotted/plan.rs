//! The plans of the slotted schemes. A plan consists of a layout, a write order and a read order.

use super::layout::LayoutKind;

/// The order of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each record is a separate write, in the order of arrival (requirement R22).
    Arrival,
    /// Contiguous records are collected into whole pages (requirement R25).
    Pages,
    /// Records are collected into the stripes of the layout (requirement R61).
    Stripes,
    /// Records are grouped by origin server, then collected into pages (requirement R28).
    Sites,
}

/// The order of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    Eager,
    /// Sorted batches (requirements R26, R27). [`SchemeSettings`] gives their size.
    ///
    /// [`SchemeSettings`]: crate::SchemeSettings
    Batched,
}

/// The effect of a hit on a record on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// Notes the use. The least recently used record is evicted first.
    Touch,
    /// Writes the record again at the write position. The record that was written longest ago is
    /// evicted first (requirement R65).
    Rewrite,
}

/// The definition of a slotted scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name in the table of schemes and in file names.
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

impl Plan {
    /// Whether all records are in one file without size classes.
    pub const fn has_one_file(&self) -> bool {
        matches!(self.layout, LayoutKind::Cyclic | LayoutKind::Ring)
    }

    /// Whether the store collects writes in a buffer for each origin server.
    pub const fn gathers_by_site(&self) -> bool {
        matches!(self.writes, WriteOrder::Sites)
    }
}

/// The scheme STREAM of the paper.
pub const STREAM: Plan = Plan {
    name: "stream",
    layout: LayoutKind::Cyclic,
    writes: WriteOrder::Arrival,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Touch,
};

/// The scheme STREAM-PACKETIZER as the paper describes it.
pub const PACKETIZER: Plan = Plan { name: "packetizer", writes: WriteOrder::Pages, ..STREAM };

/// The scheme STREAM-LOC of the paper: locality buffers without lazy reads (requirement R73).
pub const STREAM_LOC: Plan = Plan { name: "stream-loc", writes: WriteOrder::Sites, ..PACKETIZER };

/// The scheme LAZY-READS of the paper.
pub const LAZY_READS: Plan = Plan { name: "lazy-reads", reads: ReadOrder::Batched, ..PACKETIZER };

/// The scheme LAZY-READS-LOC of the paper.
pub const LAZY_READS_LOC: Plan =
    Plan { name: "lazy-reads-loc", writes: WriteOrder::Sites, ..LAZY_READS };

/// The scheme BUDDY of the paper.
pub const BUDDY: Plan = Plan { name: "buddy", layout: LayoutKind::Classes, ..STREAM };

/// The scheme SQUIDM of the cited work (requirement R37). Small records are in a mapped file, whose
/// pages are written once they are full.
pub const SQUIDM: Plan = Plan { name: "squidm", layout: LayoutKind::Mapped, ..PACKETIZER };

/// The scheme SQUIDMLA. Unlike SQUIDM, it groups small records by origin server. These records
/// never cross a page boundary.
pub const SQUIDMLA: Plan = Plan {
    name: "squidmla",
    layout: LayoutKind::MappedAligned,
    writes: WriteOrder::Sites,
    ..PACKETIZER
};

/// Squid's scheme coss.
pub const COSS: Plan = Plan {
    name: "coss",
    layout: LayoutKind::Ring,
    writes: WriteOrder::Stripes,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Rewrite,
};
