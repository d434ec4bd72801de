//! Locality buffers. Each buffer collects the records of one origin server, so that they are side
//! by side on disk. They are written when the buffer is full, when they get too old, or when
//! another server needs the buffer.

use super::entries::EntryId;
use foxy_base::{Instant, Random};
use foxy_store::contract::Site;
use foxy_store::layout::SLOT;
use std::collections::HashMap;

/// Selects the buffer to write out when another server needs a buffer. The WebCoSM paper (paper 001
/// in docs/figures.md) names no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferChoice {
    /// Writes out the buffer that has received no record for the longest time.
    #[default]
    LeastRecentlyUsed,
    /// Writes out the buffer with the most bytes.
    Fullest,
    /// Writes out a random buffer.
    Random,
}

#[derive(Debug)]
struct Buffer {
    site: Site,
    records: Vec<EntryId>,
    bytes: usize,
    used: u64,
    since: Instant,
}

#[derive(Debug)]
pub struct Locality {
    buffers: Vec<Buffer>,
    by_site: HashMap<Site, usize>,
    count: usize,
    limit: usize,
    choice: BufferChoice,
    random: Random,
    uses: u64,
}

impl Locality {
    pub fn new(count: usize, limit: usize, choice: BufferChoice, seed: u64) -> Self {
        Self {
            buffers: Vec::with_capacity(count),
            by_site: HashMap::new(),
            count,
            limit,
            choice,
            random: Random::new(seed),
            uses: 0,
        }
    }

    /// Adds a record to the buffer of its server. Returns the records that must be written now, in
    /// this order.
    pub fn add(&mut self, site: Site, record: EntryId, slots: u32, now: Instant) -> Vec<EntryId> {
        let bytes = slots as usize * SLOT;
        let mut leaving = Vec::new();
        let place = match self.by_site.get(&site) {
            Some(&place) => place,
            None => self.open(site, &mut leaving),
        };
        self.uses += 1;
        let buffer = &mut self.buffers[place];
        if buffer.bytes + bytes > self.limit {
            buffer.bytes = 0;
            leaving.append(&mut buffer.records);
        }
        if buffer.records.is_empty() {
            buffer.since = now;
        }
        buffer.used = self.uses;
        buffer.bytes += bytes;
        buffer.records.push(record);
        if buffer.bytes >= self.limit {
            buffer.bytes = 0;
            leaving.append(&mut buffer.records);
        }
        leaving
    }

    fn open(&mut self, site: Site, leaving: &mut Vec<EntryId>) -> usize {
        let place = if self.buffers.len() < self.count {
            self.buffers.push(Buffer {
                site,
                records: Vec::new(),
                bytes: 0,
                used: 0,
                since: Instant::ZERO,
            });
            self.buffers.len() - 1
        } else {
            let place = self.choose();
            let buffer = &mut self.buffers[place];
            self.by_site.remove(&buffer.site);
            buffer.site = site;
            buffer.bytes = 0;
            leaving.append(&mut buffer.records);
            place
        };
        self.by_site.insert(site, place);
        place
    }

    fn choose(&mut self) -> usize {
        let places = 0..self.buffers.len();
        let chosen = match self.choice {
            BufferChoice::LeastRecentlyUsed => places.min_by_key(|&place| self.buffers[place].used),
            BufferChoice::Fullest => places.max_by_key(|&place| self.buffers[place].bytes),
            BufferChoice::Random => {
                usize::try_from(self.random.below(self.buffers.len() as u64)).ok()
            }
        };
        chosen.expect("there is at least one buffer")
    }

    /// Removes a record from its buffer, because it was dropped before its write.
    pub fn forget(&mut self, record: EntryId, slots: u32) {
        for buffer in &mut self.buffers {
            if let Some(place) = buffer.records.iter().position(|&other| other == record) {
                buffer.records.remove(place);
                buffer.bytes -= slots as usize * SLOT;
            }
        }
    }

    /// Returns the arrival time of the oldest record in a buffer.
    pub fn waiting_since(&self) -> Option<Instant> {
        let filled = self.buffers.iter().filter(|buffer| !buffer.records.is_empty());
        filled.map(|buffer| buffer.since).min()
    }

    /// Removes and returns the records of each buffer whose oldest record arrived at `then` or
    /// earlier.
    pub fn flush(&mut self, then: Instant) -> Vec<EntryId> {
        let mut leaving = Vec::new();
        for buffer in &mut self.buffers {
            if buffer.since <= then {
                buffer.bytes = 0;
                leaving.append(&mut buffer.records);
            }
        }
        leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_site_leave_together_when_their_buffer_is_full() {
        let mut locality = Locality::new(2, 10 * SLOT, BufferChoice::LeastRecentlyUsed, 1);
        let mut add = |site, record, slots| locality.add(Site(site), record, slots, Instant::ZERO);
        assert_eq!(add(1, 10, 4), [0; 0]);
        assert_eq!(add(2, 20, 4), [0; 0]);
        assert_eq!(add(1, 11, 4), [0; 0]);
        assert_eq!(add(1, 12, 4), [10, 11], "a third does not fit");
        assert_eq!(add(1, 13, 6), [12, 13], "filled to the brim");
        assert_eq!(add(1, 14, 99), [14], "larger than a buffer");
        assert_eq!(add(3, 30, 1), [20], "site 2 waited longest for a record");
        assert_eq!(locality.flush(Instant::ZERO), [30]);
        assert_eq!(locality.waiting_since(), None);
    }

    #[test]
    fn a_forgotten_record_does_not_leave() {
        let mut locality = Locality::new(1, 10 * SLOT, BufferChoice::Fullest, 1);
        for record in 0..3 {
            locality.add(Site(1), record, 3, Instant(5));
        }
        locality.forget(1, 3);
        assert_eq!(locality.add(Site(1), 9, 4, Instant(6)), [0, 2, 9]);
    }
}
