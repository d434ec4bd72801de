//! Frees space. Evicts records when the used space exceeds a watermark: at a put, or every second
//! like Squid. The policy chooses the records, and their files are deleted.

use super::{Ufs, UfsJob, UfsPhase};
use crate::UfsReclaim;
use foxy_device::{IoError, IoOp};
use foxy_store::contract::Outbox;
use std::time::Duration;

const MAX_UNLINKS: usize = 32;
/// The interval at which records are evicted with `UfsReclaim::EverySecond`, as in Squid.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Returns how many records Squid 5 evicts in a second, given the used space and both watermarks in
/// bytes. The number rises linearly from 20 at the low watermark to 320 at the high watermark, and
/// further above.
fn removals_in_a_second(living: u64, low: u64, high: u64) -> u64 {
    match (living.checked_sub(low), high.saturating_sub(low)) {
        (None, _) => 0,
        (Some(_), 0) => 320,
        (Some(above), gap) => 20 + 300 * above / gap,
    }
}

impl Ufs {
    fn watermarks(&self) -> (u64, u64) {
        let share = |percent: u8| self.capacity() / 100 * u64::from(percent);
        (share(self.settings.low_watermark), share(self.settings.high_watermark))
    }

    /// Evicts records so that a file of `wanted` bytes fits. Also evicts a record if no file number
    /// is free.
    pub(super) fn make_room(&mut self, wanted: u64, out: &mut Outbox) {
        let (low, high) = self.watermarks();
        let (begin, end) = match self.settings.ufs_reclaim {
            UfsReclaim::AtOnce => (high, low),
            UfsReclaim::EverySecond => (self.capacity(), self.capacity()),
        };
        if self.index.live_bytes() + wanted > begin {
            while self.index.live_bytes() + wanted > end && self.evict(out) {}
        }
        if self.index.is_full() && self.unlinking == 0 {
            self.evict(out);
        }
        for number in std::mem::take(&mut self.failed_unlinks) {
            self.unlink(number, out);
        }
        if self.settings.ufs_reclaim == UfsReclaim::EverySecond
            && self.index.live_bytes() + wanted >= low
        {
            self.maintain_by.get_or_insert(self.now + MAINTENANCE_INTERVAL);
        }
    }

    fn evict(&mut self, out: &mut Outbox) -> bool {
        let victim = self.index.victim();
        if let Some(number) = victim {
            self.observer.statistics.evicted.add(1);
            self.forget(number, out);
        }
        victim.is_some()
    }

    pub(super) fn run_timers(&mut self, out: &mut Outbox) {
        if self.maintain_by.take_if(|due| *due <= self.now).is_some()
            && matches!(self.phase, UfsPhase::Serving)
        {
            self.maintain(out);
        }
        if self.commit_by.take_if(|due| *due <= self.now).is_some() {
            self.begin_commit(out);
        }
    }

    pub(super) fn unlink(&mut self, number: u32, out: &mut Outbox) {
        self.to_unlink.push_back(number);
        self.unlink_some(out);
    }

    fn unlink_some(&mut self, out: &mut Outbox) {
        while self.unlinking < MAX_UNLINKS
            && let Some(number) = self.to_unlink.pop_front()
        {
            self.unlinking += 1;
            let path = self.mapping.location(number, self.index.slot(number).record.place).path();
            self.submit(IoOp::Remove { path }, UfsJob::Unlink(number), out);
        }
    }

    pub(super) fn unlinked(&mut self, number: u32, result: Result<(), IoError>, out: &mut Outbox) {
        self.unlinking -= 1;
        match result {
            Ok(()) | Err(IoError::NotFound) => self.index.release(number),
            Err(_) => self.failed_unlinks.push(number),
        }
        self.unlink_some(out);
        self.update_gauges();
        self.retry_waiting(out);
    }

    fn maintain(&mut self, out: &mut Outbox) {
        let (low, high) = self.watermarks();
        for _ in 0..removals_in_a_second(self.index.live_bytes(), low, high) {
            if self.index.live_bytes() < low || !self.evict(out) {
                break;
            }
        }
        self.maintain_by =
            (self.index.live_bytes() >= low).then_some(self.now + MAINTENANCE_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squid_removes_the_more_the_fuller_the_directory_is() {
        let check = |living, expected| {
            assert_eq!(removals_in_a_second(living, 900, 1000), expected, "{living}")
        };
        check(899, 0);
        check(900, 20);
        check(950, 170);
        check(1000, 320);
        check(1100, 620);
        assert_eq!(removals_in_a_second(900, 900, 900), 320);
    }
}
