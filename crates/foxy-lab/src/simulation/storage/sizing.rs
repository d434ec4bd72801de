//! Computes the sizes of stores and of the modelled disk. The utilization is the share of slots
//! (units of 512 bytes) that hold live data. The modelled disk shrinks with the scale of the run.

use super::drive::PIECE_BYTES;
use super::operation::{Operation, OperationKind, Operations};
use foxy_device::DiskProfile;
use foxy_device::mechanical::SystemProfile;
use foxy_schemes::{SchemeName, SchemeSettings, locality_buffers};
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::record::slots_for;
use foxy_store::settings::MINIMUM_SIZE;
use std::fmt;
use std::time::Duration;

pub fn slots_of(size: u64) -> u64 {
    sum_of_pieces(size, u64::from)
}

pub fn pieces_of(size: u64) -> u64 {
    size.div_ceil(PIECE_BYTES).max(1)
}

/// Returns the largest number of slots (units of 512 bytes) that hold live data at the same time.
pub fn peak_slots(operations: &Operations) -> u64 {
    peak(operations, slots_of)
}

/// Returns the largest number of records that are stored at the same time, plus a reserve.
pub fn peak_records(operations: &Operations) -> u32 {
    let peak = peak(operations, pieces_of);
    u32::try_from(peak + peak / 8 + 1024).unwrap_or(u32::MAX)
}

/// Returns the bytes of disk for the object of a URL if each of its records is a file. A file takes
/// whole pages.
fn file_bytes_of(size: u64) -> u64 {
    sum_of_pieces(size, |slots| (u64::from(slots) * SLOT as u64).next_multiple_of(PAGE as u64))
}

/// Returns the sum of `weigh(slots)` over the records of an object.
fn sum_of_pieces(size: u64, weigh: impl Fn(u32) -> u64) -> u64 {
    let (whole, rest) = (size / PIECE_BYTES, (size % PIECE_BYTES) as usize);
    let last = if rest > 0 || whole == 0 { weigh(slots_for(rest)) } else { 0 };
    whole * weigh(slots_for(PIECE_BYTES as usize)) + last
}

/// Returns the largest sum of `weigh` over the objects stored at the same time.
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

/// Returns the size in bytes of a one-file store. In the store, `live_slots` are the share
/// `utilization` of all slots (units of 512 bytes). Adds room for the index (1/32 of the store) and
/// the superblocks.
pub fn store_size(live_slots: u64, utilization: f64) -> u64 {
    let data = (live_slots as f64 / utilization).ceil() * SLOT as f64;
    let size = ((data + 4.0 * PAGE as f64) * 32.0 / 31.0) as u64;
    size.next_multiple_of(PAGE as u64)
}

/// The largest number of bookkeeping bytes per record, in a store with a file for each record.
const RECORD_OVERHEAD: u64 = 32;

pub fn fewer_buffers(scheme: SchemeName, settings: &SchemeSettings) -> Option<FewerBuffers> {
    let gathers = scheme.row().gathers_by_site();
    let (there, asked) = (locality_buffers(settings), usize::from(settings.locality_buffers));
    (gathers && there < asked).then_some(FewerBuffers { there, asked })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewerBuffers {
    pub there: usize,
    pub asked: usize,
}

impl fmt::Display for FewerBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { there, asked } = self;
        write!(
            f,
            "{there} instead of {asked} locality buffers, because all buffers together may take at \
             most a quarter of the store"
        )
    }
}

/// Returns the size in bytes of a store for these operations, with the bookkeeping of
/// `record_limit` records. The size of a one-file store follows from the utilization. Any other
/// store gets four times the disk cache, or twice the size of its files if this is larger. So it
/// never runs out of room.
pub fn size_for(
    scheme: SchemeName,
    utilization: f64,
    operations: &Operations,
    record_limit: u64,
) -> u64 {
    let size = if scheme.row().has_utilization() {
        store_size(peak_slots(operations), utilization)
    } else {
        let files = peak(operations, file_bytes_of).saturating_mul(2);
        let room = operations.disk.saturating_mul(4).max(files);
        let size = room.saturating_add(record_limit * RECORD_OVERHEAD);
        size.checked_next_multiple_of(PAGE as u64).unwrap_or(u64::MAX)
    };
    size.max(MINIMUM_SIZE)
}

/// The number of disk cylinders with Squid's 4,096 directories. It does not shrink with the cache.
const DIRECTORY_CYLINDERS: u32 = 48;
/// The bytes of inode and directory blocks that the WebCoSM paper's machine kept in memory. Solaris
/// keeps 2 % by default, here of 384 MB.
const METADATA_CACHE: u64 = 8 << 20;

/// The longest time for which the modelled system keeps writes in memory. The time is long, so that
/// a technique can gather all its writes.
pub(super) const FLUSH_AFTER: Duration = Duration::from_secs(3600);
/// The largest number of bytes that may wait for the disk in a store. A store in a proxy has this
/// limit too. The modelled system has a second, smaller limit.
const WAITING_BYTES: usize = 16 << 20;
/// The number of bytes that Solaris lets a process have in unfinished writes (`ufs_HW`). A single
/// record may always wait, whatever its size.
const LEAST_WAITING: usize = 384 << 10;

/// Returns the number of bytes that may wait for the disk in a store of `size` bytes. The limit is
/// a quarter of the store (between `LEAST_WAITING` and `WAITING_BYTES`), because slots cannot be
/// reused while they are being written. Locality buffers have no slots yet, so their bytes do not
/// count.
pub(super) fn waiting_bytes(size: u64) -> usize {
    usize::try_from(size / 4).unwrap_or(usize::MAX).clamp(LEAST_WAITING, WAITING_BYTES)
}

/// Returns the modelled disk at this scale. A smaller disk has fewer cylinders, smaller system
/// caches and smaller directories. The times for a full movement of the arm and for a search of a
/// directory stay the same.
pub fn paper_disk(scale: f64) -> DiskProfile {
    let profile = DiskProfile::st15150w();
    let cylinders = |count: u32| ((f64::from(count) * scale) as u32).max(64);
    let count = |count: u64| ((count as f64 * scale) as u64).max(1);
    let bytes = |bytes: u64| count(bytes).max(64 << 10);
    let system = SystemProfile {
        page_cache: bytes(profile.system.page_cache),
        metadata_cache: bytes(METADATA_CACHE),
        name_cache: count(profile.system.name_cache),
        search_rate: count(profile.system.search_rate),
        ..profile.system
    };
    let scaled = cylinders(profile.cylinders);
    DiskProfile {
        cylinders: scaled.saturating_add(DIRECTORY_CYLINDERS).min(scaled.max(profile.cylinders)),
        seek_bend: cylinders(profile.seek_bend),
        system,
        ..profile
    }
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
        check(PIECE_BYTES, 2049);
        check(PIECE_BYTES + 1, 2050);
    }

    #[test]
    fn the_peak_counts_live_slots() {
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

    #[test]
    fn the_disk_shrinks_and_grows_with_the_scale_and_keeps_room_for_directories() {
        let whole = DiskProfile::st15150w();
        let check =
            |scale, cylinders| assert_eq!(paper_disk(scale).cylinders, cylinders, "{scale}");
        check(1.0, whole.cylinders);
        check(2.0, 2 * whole.cylinders);
        check(0.1, 464 + DIRECTORY_CYLINDERS);
        check(0.0001, 64 + DIRECTORY_CYLINDERS);
        assert_eq!(paper_disk(0.1).seek_longest, whole.seek_longest);
        assert!(paper_disk(0.1).system.page_cache < whole.system.page_cache);
        assert_eq!(paper_disk(0.1).system.search_rate, whole.system.search_rate / 10);
    }
}
