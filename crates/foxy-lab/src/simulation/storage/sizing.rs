//! How large a store must be so that a stream of operations fills it to a given utilization: live
//! slots over all slots (R23).

use super::drive::PIECE;
use super::operation::{Operation, OperationKind, Operations};
use foxy_schemes::locality_buffers;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::record::slots_for;
use foxy_store::settings::MINIMUM_SIZE;
use std::fmt;

/// Slots that a URL takes: one record for each piece of it.
pub fn slots_of(size: u64) -> u64 {
    let whole = size / PIECE;
    let rest = (size % PIECE) as usize;
    let last = if rest > 0 || whole == 0 { u64::from(slots_for(rest)) } else { 0 };
    whole * u64::from(slots_for(PIECE as usize)) + last
}

/// Records that a URL takes.
pub fn pieces_of(size: u64) -> u64 {
    size.div_ceil(PIECE).max(1)
}

/// The most slots that are live at once in the course of the operations.
pub fn peak_slots(operations: &Operations) -> u64 {
    peak(operations, slots_of)
}

/// The most records that exist at once in the course of the operations, and some more.
pub fn peak_records(operations: &Operations) -> u32 {
    let peak = peak(operations, pieces_of);
    u32::try_from(peak + peak / 8 + 1024).unwrap_or(u32::MAX)
}

/// Bytes of disk that a URL takes with a file for each record: whole pages.
fn file_bytes_of(size: u64) -> u64 {
    let pages = |slots: u64| (slots * SLOT as u64).next_multiple_of(PAGE as u64);
    let (whole, rest) = (size / PIECE, size % PIECE);
    let last = if rest > 0 || whole == 0 { pages(u64::from(slots_for(rest as usize))) } else { 0 };
    whole * pages(u64::from(slots_for(PIECE as usize))) + last
}

/// The highest sum over what is stored at once in the course of the operations.
fn peak(operations: &Operations, weigh: fn(u64) -> u64) -> u64 {
    let (mut live, mut peak): (u64, u64) = (0, 0);
    for Operation { kind, size, .. } in &operations.list {
        match kind {
            OperationKind::Write => live = live.saturating_add(weigh(*size)),
            OperationKind::Delete => live = live.saturating_sub(weigh(*size)),
            OperationKind::Read => {}
        }
        peak = peak.max(live);
    }
    peak
}

/// Bytes of a one-file store in which so many live slots are a share of all slots: what the store
/// keeps for its index (1/32) and its superblocks comes on top.
pub fn store_size(live_slots: u64, utilization: f64) -> u64 {
    let data = (live_slots as f64 / utilization).ceil() * SLOT as f64;
    let size = ((data + 4.0 * PAGE as f64) * 32.0 / 31.0) as u64;
    size.next_multiple_of(PAGE as u64)
}

/// Bytes that a record's bookkeeping takes at most in a store of one file a record.
const RECORD_OVERHEAD: u64 = 32;

/// Whether a scheme keeps its records in slots of one file, so that utilization is its to choose.
pub const fn has_utilization(scheme: SchemeName) -> bool {
    matches!(
        scheme,
        SchemeName::Stream
            | SchemeName::Packetizer
            | SchemeName::LazyReads
            | SchemeName::LazyReadsLoc
            | SchemeName::StreamPacketizer
            | SchemeName::Coss
    )
}

/// Locality buffers, of a scheme that has them and a store that has room for fewer than were asked
/// for.
pub fn fewer_buffers(scheme: SchemeName, settings: &SchemeSettings) -> Option<FewerBuffers> {
    let gathers = matches!(scheme, SchemeName::LazyReadsLoc | SchemeName::Squidmla);
    let (there, asked) = (locality_buffers(settings), usize::from(settings.locality_buffers));
    (gathers && there < asked).then_some(FewerBuffers { there, asked })
}

/// A store that is too small for the locality buffers that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewerBuffers {
    /// Those it has.
    pub there: usize,
    /// Those that were asked for.
    pub asked: usize,
}

impl fmt::Display for FewerBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { there, asked } = self;
        write!(f, "{there} of {asked} locality buffers: a quarter of so small a store")
    }
}

/// Bytes of a store for these operations: the utilization's where the scheme has one; else four
/// times the disk cache, or twice what its files take at most if they are so small that this is
/// more, so that room never runs out; and the bookkeeping of `record_limit` records.
pub fn size_for(
    scheme: SchemeName,
    utilization: f64,
    operations: &Operations,
    record_limit: u64,
) -> u64 {
    let size = if has_utilization(scheme) {
        store_size(peak_slots(operations), utilization)
    } else {
        let files = peak(operations, file_bytes_of).saturating_mul(2);
        let room = operations.disk.saturating_mul(4).max(files);
        let size = room.saturating_add(record_limit * RECORD_OVERHEAD);
        size.checked_next_multiple_of(PAGE as u64).unwrap_or(u64::MAX)
    };
    size.max(MINIMUM_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::Observer;

    #[test]
    fn a_url_takes_the_slots_of_its_records() {
        let check = |size, slots| assert_eq!(slots_of(size), slots, "{size} bytes");
        check(0, 1);
        check(448, 1);
        check(449, 2);
        check(PIECE, 2049);
        check(PIECE + 1, 2050);
    }

    #[test]
    fn the_peak_counts_what_lives_at_once() {
        let operation = |kind, size| Operation { kind, url: 0, site: 0, size };
        let list = vec![
            operation(OperationKind::Write, 448),
            operation(OperationKind::Write, 449),
            operation(OperationKind::Delete, 448),
            operation(OperationKind::Read, 449),
            operation(OperationKind::Write, 100),
        ];
        assert_eq!(peak_slots(&Operations { list, ..Operations::default() }), 3);
    }

    #[test]
    fn the_store_has_the_slots_that_the_utilization_asks_for() {
        for (live, utilization) in [(2000, 0.5), (100_000, 0.76), (4_000_000, 0.95)] {
            let settings = SchemeSettings::with_size(store_size(live, utilization));
            let observer = Observer::default();
            let scheme: SchemeName = "stream".parse().expect("a scheme");
            let scheme = scheme.make(&settings, observer);
            let slots: u64 = scheme.free_runs().iter().map(|run| u64::from(run.1)).sum();
            let found = live as f64 / slots as f64;
            assert!((found / utilization - 1.0).abs() < 0.01, "{found} instead of {utilization}");
        }
    }
    #[test]
    fn a_store_of_files_is_large_whatever_the_utilization() {
        let list = vec![Operation { kind: OperationKind::Write, url: 0, site: 0, size: 4 << 20 }];
        let operations = Operations { list, gets: 1, memory_hits: 0, disk: 8 << 20 };
        let check = |scheme: &str, least, most| {
            let scheme = scheme.parse().expect("a scheme");
            let size = size_for(scheme, 0.5, &operations, 100);
            assert!((least..most).contains(&(size >> 20)), "{scheme}: {size}");
        };
        check("stream", 8, 9);
        check("ufs", 32, 33);
        check("buddy", 32, 33);
    }

    #[test]
    fn small_files_take_a_page_each() {
        let write = |url| Operation { kind: OperationKind::Write, url, site: 0, size: 100 };
        let operations = Operations {
            list: (0..300).map(write).collect(),
            gets: 300,
            memory_hits: 0,
            disk: 30_000,
        };
        let size = size_for("ufs".parse().expect("a scheme"), 0.75, &operations, 300);
        assert!(size >= 300 * 4096, "{size}");
    }
}
