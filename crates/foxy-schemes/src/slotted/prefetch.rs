//! Prefetching: a read also fetches the records that follow on disk and belong to the same origin
//! server. A small memory keeps these records until a get needs them. The module `hits` performs
//! the reads.

use super::entries::EntryId;
use super::hits::WantedHit;
use super::{RecordStart, Slotted};
use foxy_device::IoBuffer;
use foxy_store::contract::Record;
use foxy_store::layout::SLOT;
use std::collections::{BTreeMap, HashMap};

/// The memory for prefetched records has this many times the size of the largest prefetch,
/// [`Prefetch::limit`].
const KEPT_READS: usize = 16;

#[derive(Debug)]
struct Kept {
    sequence: u64,
    record: Record,
    turn: u64,
}

/// Prefetched records in memory that no get has requested yet.
#[derive(Debug)]
pub struct Prefetch {
    /// Maximum number of bytes that one read prefetches; 0 disables prefetching.
    limit: usize,
    kept: HashMap<EntryId, Kept>,
    by_turn: BTreeMap<u64, EntryId>,
    bytes: usize,
    turns: u64,
}

impl Prefetch {
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: HashMap::new(), by_turn: BTreeMap::new(), bytes: 0, turns: 0 }
    }

    pub const fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Keeps a prefetched record in memory. Returns how many older records were dropped to make
    /// space.
    fn keep(&mut self, id: EntryId, sequence: u64, record: Record) -> u64 {
        self.turns += 1;
        self.bytes += record.len();
        self.by_turn.insert(self.turns, id);
        let known = self.kept.insert(id, Kept { sequence, record, turn: self.turns });
        assert!(known.is_none(), "what is kept is not read along again");
        let mut pushed_out = 0;
        while self.bytes > self.limit * KEPT_READS
            && let Some((_, id)) = self.by_turn.first_key_value()
        {
            self.take(*id);
            pushed_out += 1;
        }
        pushed_out
    }

    fn take(&mut self, id: EntryId) -> Option<Kept> {
        let kept = self.kept.remove(&id)?;
        self.by_turn.remove(&kept.turn);
        self.bytes -= kept.record.len();
        Some(kept)
    }

    /// Returns the approximate memory of prefetched records in bytes.
    pub const fn memory(&self) -> usize {
        self.bytes
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    pub wanted: WantedHit,
    pub slots: u32,
}

impl Slotted {
    /// Returns the records to prefetch. They belong to the origin server of record `id` and follow
    /// it on disk without a gap. The total size of these records is at most [`Prefetch::limit`].
    pub(super) fn neighbours(&self, id: EntryId) -> Vec<Neighbour> {
        let entry = self.entries.get(id);
        let ([piece], true) = (&entry.pieces[..], self.prefetch.is_on()) else { return Vec::new() };
        let (mut end, mut left) = (piece.first + piece.slots, self.prefetch.limit / SLOT);
        let mut found = Vec::new();
        let following =
            RecordStart::before(piece.file, end)..RecordStart::before(piece.file + 1, 0);
        for &RecordStart { first, id: next, .. } in self.starts.range(following) {
            let other = self.entries.get(next);
            let slots = other.slots();
            let fits = first == end
                && other.site == entry.site
                && other.pieces.len() == 1
                && slots as usize <= left
                && other.live
                && other.writes == 0;
            if !fits || self.prefetch.kept.contains_key(&next) || self.hits.is_coming(next) {
                break;
            }
            let wanted = WantedHit { key: other.key, sequence: other.sequence, entry: next };
            found.push(Neighbour { wanted, slots });
            end += slots;
            left -= slots as usize;
        }
        found
    }

    /// Keeps the prefetched records whose checksums match. The bytes of these records are at the
    /// end of `bytes`.
    pub(super) fn keep_neighbours(&mut self, neighbours: &[Neighbour], bytes: &IoBuffer) {
        let along: u32 = neighbours.iter().map(|neighbour| neighbour.slots).sum();
        let (_, mut rest) = bytes.as_ref().split_at(bytes.len() - along as usize * SLOT);
        for &Neighbour { wanted, slots } in neighbours {
            let (bytes, after) = rest.split_at(slots as usize * SLOT);
            rest = after;
            let record = match self.still_there(&wanted) {
                true => self.decode(IoBuffer::copy_of(bytes), &wanted).ok(),
                false => None,
            };
            if let Some(record) = record {
                let pushed_out = self.prefetch.keep(wanted.entry, wanted.sequence, record);
                self.observer.statistics.prefetched.add(1);
                self.observer.statistics.prefetch_wasted.add(pushed_out);
            }
        }
    }

    /// Returns a prefetched record and removes it from the memory.
    pub(super) fn take_prefetched(&mut self, id: EntryId) -> Option<Record> {
        let kept = self.prefetch.take(id)?;
        assert_eq!(kept.sequence, self.entries.get(id).sequence, "what is dropped is forgotten");
        self.observer.statistics.prefetch_useful.add(1);
        Some(kept.record)
    }

    pub(super) fn forget_prefetched(&mut self, id: EntryId) {
        if self.prefetch.take(id).is_some() {
            self.observer.statistics.prefetch_wasted.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn record(bytes: usize) -> Record {
        Record { head: Bytes::new(), body: Bytes::from(vec![1; bytes]) }
    }

    #[test]
    fn the_oldest_prefetched_record_is_displaced_first() {
        let mut prefetch = Prefetch::new(100);
        for id in 0..16 {
            assert_eq!(prefetch.keep(id, 1, record(100)), 0, "record {id}");
        }
        assert!(prefetch.take(3).is_some());
        assert_eq!(prefetch.keep(16, 1, record(50)), 0);
        assert_eq!(prefetch.keep(17, 1, record(150)), 1);
        assert!(prefetch.take(0).is_none() && prefetch.take(1).is_some());
        assert_eq!(prefetch.memory(), 1500);
    }
}
