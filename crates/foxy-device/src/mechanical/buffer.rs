//! The buffer inside a simulated disk. It contains sectors that the disk read for requests or read
//! ahead. After a read, the disk reads ahead until its head moves away for another request.

use super::profile::DiskProfile;
use foxy_base::Instant;
use std::collections::VecDeque;

/// A run of adjacent sectors in the buffer.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u64,
    to: u64,
}

/// The state of the read-ahead, in which the disk reads sectors that nobody has requested yet. At
/// time `since`, the read-ahead was at sector `next`. It ends at sector `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) since: Instant,
    pub(super) next: u64,
    until: u64,
}

/// How the disk can serve a read: from its buffer, by waiting for the read-ahead, or from the disk
/// itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lookup {
    /// The buffer contains all sectors of the request.
    Held,
    /// The read-ahead will reach the last sector of the request, so the head need not move.
    Coming(Ahead),
    /// The disk must move its head for the request.
    Missing,
}

#[derive(Debug)]
pub(super) struct DiskBuffer {
    /// The segments from newest to oldest. The read-ahead extends the newest segment.
    segments: VecDeque<Segment>,
    ahead: Option<Ahead>,
    limit: usize,
    /// Maximum number of sectors in one segment of the disk's buffer. The disk also reads ahead at
    /// most this number of sectors.
    length: u64,
    disk_end: u64,
}

impl DiskBuffer {
    pub(super) fn new(profile: &DiskProfile) -> Self {
        let (limit, length) = (profile.buffer_segments as usize, profile.buffer_segment_sectors);
        Self { segments: VecDeque::new(), ahead: None, limit, length, disk_end: profile.sectors() }
    }

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

    /// Notes that a request was answered because the read-ahead reached sector `end` at `now`. The
    /// read-ahead continues after this sector.
    pub(super) fn came(&mut self, end: u64, now: Instant) {
        if let (Some(ahead), Some(newest)) = (&mut self.ahead, self.segments.front_mut()) {
            *ahead = Ahead { since: now, next: end, until: (end + self.length).min(self.disk_end) };
            newest.to = end;
            newest.from = newest.from.max(end.saturating_sub(self.length));
        }
    }

    /// Ends the read-ahead, because the head moves away. Before the move, the head had time to read
    /// `sectors` more sectors. Returns the sector that the read-ahead reached, or `None` if the
    /// disk did not read ahead.
    pub(super) fn leave(&mut self, sectors: u64) -> Option<u64> {
        let ahead = self.ahead.take()?;
        let reached = (ahead.next + sectors).min(ahead.until);
        if let Some(newest) = self.segments.front_mut() {
            newest.to = reached;
            newest.from = newest.from.max(reached.saturating_sub(self.length));
        }
        Some(reached)
    }

    pub(super) const fn ahead(&self) -> Option<Ahead> {
        self.ahead
    }

    /// Notes that the disk read sectors for a request. The read-ahead continues after the last of
    /// these sectors.
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

    /// Drops overwritten sectors from the buffer. A segment that contains overwritten sectors keeps
    /// only the sectors after them.
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
