//! The disk's own memory: what it has read, and what it goes on reading behind a read until it is
//! sent elsewhere. Which sectors there are and when; how long the head takes is the geometry's
//! matter.

use super::profile::DiskProfile;
use foxy_base::Instant;
use std::collections::VecDeque;

/// Sectors `from..to` in the disk's memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u64,
    to: u64,
}

/// Where the head is reading ahead: from the sector `next` on, which it met at `since`, up to
/// `until` at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) since: Instant,
    pub(super) next: u64,
    until: u64,
}

/// What the buffer says about a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lookup {
    /// All of it is there.
    Held,
    /// It will all have been there once the head has read on to its end.
    Coming(Ahead),
    /// The head has to go for it.
    Missing,
}

#[derive(Debug)]
pub(super) struct DiskBuffer {
    /// The newest first; the head reads on at the end of the first.
    segments: VecDeque<Segment>,
    ahead: Option<Ahead>,
    limit: usize,
    /// Sectors read ahead at most.
    length: u64,
    disk_end: u64,
}

impl DiskBuffer {
    pub(super) fn new(profile: &DiskProfile) -> Self {
        let (limit, length) = (profile.buffer_segments as usize, profile.buffer_segment_sectors);
        Self { segments: VecDeque::new(), ahead: None, limit, length, disk_end: profile.sectors() }
    }

    /// Forgets all that was read.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.ahead = None;
    }

    pub(super) fn look_up(&self, address: u64, sectors: u64) -> Lookup {
        let end = address + sectors;
        if let (Some(ahead), Some(newest)) = (self.ahead, self.segments.front())
            && address >= newest.from
            && end > newest.to
            && end <= ahead.until
        {
            return Lookup::Coming(ahead);
        }
        let holds = |segment: &Segment| segment.from <= address && end <= segment.to;
        if self.segments.iter().any(holds) { Lookup::Held } else { Lookup::Missing }
    }

    /// Notes that the head has read on to `end` at `now`, for a request, and goes on.
    pub(super) fn came(&mut self, end: u64, now: Instant) {
        if let (Some(ahead), Some(newest)) = (&mut self.ahead, self.segments.front_mut()) {
            *ahead = Ahead { since: now, next: end, until: (end + self.length).min(self.disk_end) };
            newest.to = end;
            newest.from = newest.from.max(end.saturating_sub(self.length));
        }
    }

    /// Notes that the head leaves; by now it has read `sectors` ahead, if that many were to be.
    /// Gives the sector it is at.
    pub(super) fn leave(&mut self, sectors: u64) -> Option<u64> {
        let ahead = self.ahead.take()?;
        let reached = (ahead.next + sectors).min(ahead.until);
        if let Some(newest) = self.segments.front_mut() {
            newest.to = reached;
            newest.from = newest.from.max(reached.saturating_sub(self.length));
        }
        Some(reached)
    }

    /// Where the head reads ahead.
    pub(super) const fn ahead(&self) -> Option<Ahead> {
        self.ahead
    }

    /// Notes that the head has read sectors and goes on reading behind them.
    pub(super) fn read(&mut self, address: u64, sectors: u64, now: Instant) {
        if self.limit == 0 {
            return;
        }
        self.segments.truncate(self.limit - 1);
        let end = address + sectors;
        self.segments
            .push_front(Segment { from: address.max(end.saturating_sub(self.length)), to: end });
        self.ahead =
            Some(Ahead { since: now, next: end, until: (end + self.length).min(self.disk_end) });
    }

    /// Forgets what is written over; of a piece that goes on behind it, the rest stays.
    pub(super) fn wrote(&mut self, address: u64, sectors: u64) {
        let end = address + sectors;
        for segment in &mut self.segments {
            if segment.from < end && address < segment.to {
                segment.from = end;
            }
        }
        self.segments.retain(|segment| segment.from < segment.to);
    }
}
