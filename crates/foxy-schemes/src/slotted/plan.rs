//! The plans, which define the slotted storage schemes. A plan consists of a layout (which 512-byte
//! slots a record takes), a write order, a read order and the effect of a hit. The names in
//! capitals come from the papers.

use super::layout::LayoutKind;

/// The order in which a storage scheme writes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each record is a separate write, in the order of the puts.
    Arrival,
    /// Contiguous records are collected into whole pages.
    Pages,
    /// Records are collected into stripes, and each stripe is written whole. A stripe is a section
    /// of the store's file, usually of 1 MiB.
    Stripes,
    /// Records wait in a buffer per origin server. The records of a buffer are then collected into
    /// pages.
    Sites,
}

/// The order in which a storage scheme reads records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    Eager,
    /// Several reads start together, sorted by disk place. [`SchemeSettings::read_batch`] is the
    /// number of reads.
    ///
    /// [`SchemeSettings::read_batch`]: crate::SchemeSettings::read_batch
    Batched,
}

/// Change that a hit makes to its record on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// Makes the record the most recently used. The least recently used record is evicted first.
    Touch,
    /// Writes the record again as the newest record. The record that was written longest ago is
    /// evicted first.
    Rewrite,
}

/// The definition of a slotted storage scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name in the table of storage schemes and in file names.
    pub name: &'static str,
    pub layout: LayoutKind,
    pub writes: WriteOrder,
    pub reads: ReadOrder,
    pub on_hit: OnHit,
}

impl Plan {
    /// Returns whether all records share the slots (512 bytes each) of one file.
    pub const fn has_one_file(&self) -> bool {
        matches!(self.layout, LayoutKind::Cyclic | LayoutKind::Ring)
    }

    /// Returns whether the store collects records in a buffer for each origin server.
    pub const fn gathers_by_site(&self) -> bool {
        matches!(self.writes, WriteOrder::Sites)
    }
}

/// The storage scheme STREAM of the WebCoSM paper (paper 001 in docs/figures.md): one file, in
/// which each record takes the next free slots (512 bytes each).
pub const STREAM: Plan = Plan {
    name: "stream",
    layout: LayoutKind::Cyclic,
    writes: WriteOrder::Arrival,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Touch,
};

/// The storage scheme STREAM-PACKETIZER as the WebCoSM paper (paper 001 in docs/figures.md)
/// describes it: STREAM with writes of whole pages.
pub const PACKETIZER: Plan = Plan { name: "packetizer", writes: WriteOrder::Pages, ..STREAM };

/// The storage scheme STREAM-LOC of the WebCoSM paper (paper 001 in docs/figures.md): a buffer per
/// origin server for writes, and immediate reads.
pub const STREAM_LOC: Plan = Plan { name: "stream-loc", writes: WriteOrder::Sites, ..PACKETIZER };

/// The storage scheme LAZY-READS of the WebCoSM paper (paper 001 in docs/figures.md): several reads
/// start together, sorted by disk place.
pub const LAZY_READS: Plan = Plan { name: "lazy-reads", reads: ReadOrder::Batched, ..PACKETIZER };

/// The storage scheme LAZY-READS-LOC of the WebCoSM paper (paper 001 in docs/figures.md):
/// LAZY-READS with a buffer per origin server for writes.
pub const LAZY_READS_LOC: Plan =
    Plan { name: "lazy-reads-loc", writes: WriteOrder::Sites, ..LAZY_READS };

/// The storage scheme BUDDY of the WebCoSM paper (paper 001 in docs/figures.md): one file for each
/// record size.
pub const BUDDY: Plan = Plan { name: "buddy", layout: LayoutKind::Classes, ..STREAM };

/// The storage scheme SQUIDM (Maltzahn, Richardson and Grunwald, USENIX 1999). Small records share
/// large files, whose pages are written once they are full.
pub const SQUIDM: Plan = Plan { name: "squidm", layout: LayoutKind::Mapped, ..PACKETIZER };

/// The storage scheme SQUIDMLA (Maltzahn, Richardson and Grunwald, USENIX 1999). Unlike SQUIDM, it
/// groups small records by origin server, and keeps each within one page if possible.
pub const SQUIDMLA: Plan = Plan {
    name: "squidmla",
    layout: LayoutKind::MappedAligned,
    writes: WriteOrder::Sites,
    ..PACKETIZER
};

/// Squid's storage scheme coss: one file of stripes. The newest stripe overwrites the oldest.
pub const COSS: Plan = Plan {
    name: "coss",
    layout: LayoutKind::Ring,
    writes: WriteOrder::Stripes,
    reads: ReadOrder::Eager,
    on_hit: OnHit::Rewrite,
};
