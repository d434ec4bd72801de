//! The paper's disk at a smaller or larger scale, and whether a store fits it: one place for `foxy
//! sim` and the figures.

use foxy_device::DiskProfile;
use foxy_device::mechanical::SystemProfile;
use std::time::Duration;

/// Cylinders that Squid's 4,096 directories take; they do not shrink with the cache.
const DIRECTORY_CYLINDERS: u32 = 48;
/// Bytes of inode and directory blocks that the paper's machine kept: 2 % of its 384 MB, Solaris'
/// default.
const METADATA_CACHE: u64 = 8 << 20;

/// How long what was written may stay in memory: until a technique has gathered what it gathers, as
/// the paper's do.
pub const FLUSH_AFTER: Duration = Duration::from_secs(3600);
/// Bytes that may wait for the disk: as many as in a store that serves clients. The modelled system
/// has its own throttle.
const WAITING_BYTES: usize = 16 << 20;
/// As many as Solaris lets a process have under way (`ufs_HW`). One record may always wait, however
/// large it is.
const LEAST_WAITING: usize = 384 << 10;

/// Bytes that may wait in a store of `size` bytes: a quarter of it at most, as slots that are being
/// written cannot be used again. What waits in locality buffers has no slots yet, and does not
/// count.
pub(super) fn waiting_bytes(size: u64) -> usize {
    usize::try_from(size / 4).unwrap_or(usize::MAX).clamp(LEAST_WAITING, WAITING_BYTES)
}

/// The model disk, scaled: a smaller disk has fewer cylinders, and its arm takes as long from end
/// to end. The system's caches shrink with it. So do directories, and the processor takes as long
/// from end to end of one.
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
