//! Making room in ufs: which fill level evicts how many records, at once or second by second as
//! Squid does (R50, R70). Who goes is the policy's choice; its file is unlinked.

use super::{Ufs, UfsJob, UfsPhase};
use crate::UfsReclaim;
use foxy_base::Instant;
use foxy_device::{IoError, IoOp};
use foxy_store::contract::Outbox;
use std::time::Duration;

/// Files unlinked at the same time.
const UNLINKS_AT_ONCE: usize = 32;
/// How often Squid maintains.
const MAINTENANCE: Duration = Duration::from_secs(1);

/// Records that Squid removes in a second: 20 at the low watermark, 320 at the high one, and on in
/// a line (5.x).
fn removals(living: u64, low: u64, high: u64) -> u64 {
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

    /// Evicts for `wanted` more bytes, and when no file number is free.
    pub(super) fn make_room(&mut self, wanted: u64, out: &mut Outbox) {
        let (low, high) = self.watermarks();
        let (begin, end) = match self.settings.ufs_reclaim {
            UfsReclaim::AtOnce => (high, low),
            UfsReclaim::EverySecond => (self.capacity(), self.capacity()),
        };
        if self.shelf.living() + wanted > begin {
            while self.shelf.living() + wanted > end && self.evict(out) {}
        }
        if self.shelf.is_full() && self.unlinking == 0 {
            self.evict(out);
        }
        for number in std::mem::take(&mut self.stuck) {
            self.unlink(number, out);
        }
        if self.settings.ufs_reclaim == UfsReclaim::EverySecond
            && self.shelf.living() + wanted >= low
        {
            self.maintain_by.get_or_insert(self.now + MAINTENANCE);
        }
    }

    fn evict(&mut self, out: &mut Outbox) -> bool {
        let victim = self.shelf.victim();
        if let Some(number) = victim {
            self.observer.statistics.evicted.add(1);
            self.forget(number, out);
        }
        victim.is_some()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.commit_by.into_iter().chain(self.maintain_by).min()
    }

    /// Does what is due.
    pub(super) fn keep_time(&mut self, out: &mut Outbox) {
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
        self.doomed.push_back(number);
        self.unlink_some(out);
    }

    fn unlink_some(&mut self, out: &mut Outbox) {
        while self.unlinking < UNLINKS_AT_ONCE
            && let Some(number) = self.doomed.pop_front()
        {
            self.unlinking += 1;
            let path = self.mapping.spot(number, self.shelf.slot(number).place).path();
            self.submit(IoOp::Remove { path }, UfsJob::Unlink(number), out);
        }
    }

    pub(super) fn unlinked(&mut self, number: u32, result: Result<(), IoError>, out: &mut Outbox) {
        self.unlinking -= 1;
        match result {
            Ok(()) | Err(IoError::NotFound) => self.shelf.release(number),
            Err(_) => self.stuck.push(number),
        }
        self.unlink_some(out);
        self.gauge();
        self.retry_waiting(out);
    }

    fn maintain(&mut self, out: &mut Outbox) {
        let (low, high) = self.watermarks();
        for _ in 0..removals(self.shelf.living(), low, high) {
            if self.shelf.living() < low || !self.evict(out) {
                break;
            }
        }
        self.maintain_by = (self.shelf.living() >= low).then_some(self.now + MAINTENANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squid_removes_the_more_the_fuller_the_directory_is() {
        let check =
            |living, expected| assert_eq!(removals(living, 900, 1000), expected, "{living}");
        check(899, 0);
        check(900, 20);
        check(950, 170);
        check(1000, 320);
        check(1100, 620);
        assert_eq!(removals(900, 900, 900), 320);
    }
}
