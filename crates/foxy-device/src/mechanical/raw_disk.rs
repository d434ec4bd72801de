//! A simulated mechanical disk without a file system or page cache. It computes the times of reads
//! and writes at byte addresses.

use super::counts::{MechanicalCounts, RequestKind, ServiceRecord};
use super::geometry::Geometry;
use super::profile::{DiskProfile, SECTOR};
use super::spindle::{DiskRequest, RequestId, Spindle};
use foxy_base::Instant;
use std::sync::Arc;

/// Computes how long requests to one disk take. It stores no content and reads no clock.
#[derive(Debug)]
pub struct RawDisk {
    spindle: Spindle,
    last_request: RequestId,
}

impl RawDisk {
    /// Creates an idle disk. The random `seed` determines its angle of rotation at time zero.
    #[must_use]
    pub fn new(profile: &DiskProfile, seed: u64) -> Self {
        let geometry = Arc::new(Geometry::new(profile));
        Self { spindle: Spindle::new(0, profile, geometry, seed), last_request: 0 }
    }

    /// Queues a request for `bytes` bytes at byte `offset`, and returns the number of the request.
    /// Partial sectors count as whole sectors. The request must lie within the profile's capacity.
    pub fn submit(&mut self, kind: RequestKind, offset: u64, bytes: u64, arrival: Instant) -> u64 {
        self.last_request += 1;
        let id = self.last_request;
        let address = offset / SECTOR;
        let sectors = ((offset + bytes).div_ceil(SECTOR) - address).max(1);
        self.spindle.push(DiskRequest { id, kind, address, sectors, arrival });
        id
    }

    /// Returns the time at which the disk finishes the request that it serves now.
    #[must_use]
    pub fn next_finish(&self) -> Option<Instant> {
        self.spindle.next_finish()
    }

    /// Finishes the current request, and starts the next request from the queue. Returns the number
    /// of the finished request.
    pub fn finish(&mut self) -> Option<(u64, ServiceRecord)> {
        let finished = self.spindle.finish();
        self.spindle.resume();
        finished
    }

    /// Returns the counts of requests since the start.
    #[must_use]
    pub const fn counts(&self) -> MechanicalCounts {
        self.spindle.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_partial_sector_takes_a_whole_sector_and_requests_finish_in_order_of_address() {
        let mut disk = RawDisk::new(&DiskProfile::st15150w(), 1);
        let [first, far, near] = [(0, 100), (2_000_000_000, 4096), (1_000_000_000, 4096)]
            .map(|(offset, bytes)| disk.submit(RequestKind::Read, offset, bytes, Instant::ZERO));
        let mut finished = Vec::new();
        let mut last = Instant::ZERO;
        while let Some((id, record)) = disk.finish() {
            assert!(record.finish > last && record.finish.since(last) < Duration::from_millis(40));
            last = record.finish;
            finished.push((id, record.size));
        }
        assert_eq!(finished, [(first, 512), (near, 4096), (far, 4096)]);
        assert_eq!(disk.counts().device_reads, 3);
    }
}
