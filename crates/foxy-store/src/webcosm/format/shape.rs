//! The numbers of a store's layout that decide how long records stay. The model of the engine's
//! rules in `foxy-schemes` needs them.

use crate::layout::PAGE;
use crate::settings::MINIMUM_SIZE;
use crate::webcosm::format::geometry::{FEW_SEGMENTS, Geometry, LogName, group_size, kept_clean};
use crate::webcosm::write::ghost_places;

/// The summary (list of records) of a segment takes about this many pages.
const SUMMARY_PAGES: u64 = 2;

/// The layout of a store of a certain size, as far as it decides how long records stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of a segment that records can take.
    pub record_bytes: u64,
    /// Number of segments of the main log, and of the probation log (for large new records).
    pub segments: [u32; 2],
    /// Number of complete segments that each log keeps beside its open segment. Records of the
    /// others leave the index.
    pub kept: [f64; 2],
    /// Bytes of the largest object that enters the probation log.
    pub probation_object: u64,
    /// Number of records that the ghost (table of records that left probation) has room for.
    pub ghost_places: u64,
}

impl Shape {
    /// Returns the shape of a store of `size` bytes.
    pub fn of(size: u64) -> Self {
        let geometry = Geometry::of(size.max(MINIMUM_SIZE));
        let segments = LogName::ALL.map(|log| geometry.segments(log));
        // Discarded segments leave the index in groups, so half of a group is still there. A log of
        // few segments keeps no clean segment while a segment is open.
        let kept = |segments: u32| {
            let late = f64::from(group_size(segments) - 1) / 2.0;
            let clean = if segments < FEW_SEGMENTS { 0 } else { kept_clean(segments) };
            f64::from(segments.saturating_sub(1 + clean)) + late
        };
        let segment_bytes = geometry.segment_bytes();
        Self {
            segment_bytes,
            record_bytes: segment_bytes - SUMMARY_PAGES * PAGE as u64,
            segments,
            kept: segments.map(kept),
            probation_object: geometry.probation_object(),
            ghost_places: ghost_places(&geometry),
        }
    }
}
