//! Handles puts: refusals, eviction, the choice of slots (512 bytes each) on disk, and writes. A
//! get finds a new record at once, because the record stays in memory until it is on disk.

use super::entries::{EntryId, NewEntry, Pieces, SlotEntry};
use super::files::Access;
use super::gather::Batch;
use super::layout::{FileKind, Piece, Placement};
use super::plan::ReadOrder;
use super::work::Job;
use super::{RecordStart, Slotted, Unplaced};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::{Key, Outbox, PlacementHint, Record, RefusedReason, Site};
use foxy_store::layout::SLOT;
use foxy_store::record::{self, slots_for};

/// The result of a search for free slots (512 bytes each).
enum Room {
    At(Pieces),
    /// No space now. Enough space becomes free when an abandoned (empty) file is removed.
    Later,
    Never,
}

/// Maximum number of bytes of writes in flight in storage schemes that batch reads. Solaris limits
/// the writes in flight of a file to the same number (`ufs_HW`).
const WRITE_WINDOW: usize = 384 << 10;

impl Slotted {
    pub(super) fn put(
        &mut self,
        key: Key,
        record: Record,
        hint: PlacementHint,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<(), RefusedReason> {
        let whole = hint.size.max(record.len() as u64);
        let slots = slots_for(record.len());
        if !record.is_within_limits()
            || whole > self.settings.store.object_limit
            || u64::from(slots) > self.layout.largest()
        {
            return Err(RefusedReason::TooLarge);
        }
        if self.waiting > 0 && self.waiting + record.len() > self.settings.store.waiting_bytes {
            return Err(RefusedReason::Busy);
        }
        if let Some(old) = self.entries.find(key) {
            self.drop_live(old, out);
        }
        self.make_room(slots, out);
        let id = self.insert(key, hint.site, record);
        let leaving = match &mut self.locality {
            Some(locality) if self.layout.shares(slots) => locality.add(hint.site, id, slots, now),
            _ => vec![id],
        };
        self.place_all(&leaving, now, out);
        if self.entries.get(id).live { Ok(()) } else { Err(RefusedReason::Busy) }
    }

    fn insert(&mut self, key: Key, site: Site, record: Record) -> EntryId {
        self.sequence += 1;
        let content = u32::try_from(record.len()).expect("records are limited");
        self.entries.insert(NewEntry {
            key,
            site,
            sequence: self.sequence,
            content,
            in_memory: Some(record),
        })
    }

    /// If the new record would raise the used space above the high watermark, or the number of
    /// records above its limit, evicts records. Stops when the new record fits below the low
    /// watermark and within that limit.
    fn make_room(&mut self, slots: u32, out: &mut Outbox) {
        let share = |percent: u8| self.layout.capacity() * u64::from(percent) / 100;
        let (high, low) = (share(self.settings.high_watermark), share(self.settings.low_watermark));
        let needed = u64::from(slots);
        if self.entries.live_slots() + needed > high
            || self.entries.live() >= self.settings.store.record_limit
        {
            while self.entries.live_slots() + needed > low
                || self.entries.live() >= self.settings.store.record_limit
            {
                if !self.evict_coldest(None, out) {
                    break;
                }
            }
        }
    }

    fn evict_coldest(&mut self, but: Option<EntryId>, out: &mut Outbox) -> bool {
        let Some(id) = self.entries.coldest().filter(|&id| Some(id) != but) else { return false };
        self.observer.statistics.evicted.add(1);
        self.drop_live(id, out);
        true
    }

    /// Chooses slots (512 bytes each) for the records in this order, and writes them. Drops a
    /// record that finds no space.
    pub(super) fn place_all(&mut self, records: &[EntryId], now: Instant, out: &mut Outbox) {
        for &id in records {
            let entry = self.entries.get(id);
            if entry.live && entry.pieces.is_empty() {
                match self.find_room(id, out) {
                    Room::At(pieces) => self.write(id, pieces, now, out),
                    Room::Later => {
                        self.flush_gathered(out);
                        let bytes = self.entries.get(id).slots() as usize * SLOT;
                        self.waiting += bytes;
                        self.unplaced.push(Unplaced { id, bytes });
                    }
                    Room::Never => self.drop_live(id, out),
                }
            }
        }
    }

    /// Places the records that waited for space. The caller has just removed an abandoned (empty)
    /// file.
    pub(super) fn place_waiting(&mut self, now: Instant, out: &mut Outbox) {
        for Unplaced { id, bytes } in std::mem::take(&mut self.unplaced) {
            self.waiting -= bytes;
            self.place_all(&[id], now, out);
        }
    }

    fn find_room(&mut self, id: EntryId, out: &mut Outbox) -> Room {
        let slots = self.entries.get(id).slots();
        loop {
            let placement = self.layout.place(slots);
            let gone_at_once = self.remove_abandoned(out);
            match placement {
                Placement::At(pieces) => return Room::At(pieces.into()),
                Placement::AfterRemoving if gone_at_once => {}
                Placement::AfterRemoving => return Room::Later,
                Placement::AfterClearing(piece) => {
                    let clear = self.clear(piece, out);
                    if !self.layout.cleared(clear) {
                        return Room::Never;
                    }
                }
                Placement::Full => {
                    if !self.evict_coldest(Some(id), out) {
                        return Room::Never;
                    }
                }
            }
        }
    }

    /// Drops every record that starts in `piece`, a run of slots (512 bytes each) that new records
    /// will overwrite. Returns false while a write of one of these records is in flight.
    fn clear(&mut self, piece: Piece, out: &mut Outbox) -> bool {
        let Piece { file, first, slots } = piece;
        let range = RecordStart::before(file, first)..RecordStart::before(file, first + slots);
        let inside: Vec<RecordStart> = self.starts.range(range.clone()).copied().collect();
        for RecordStart { id, .. } in inside {
            if self.entries.get(id).live {
                self.observer.statistics.evicted.add(1);
                self.drop_live(id, out);
            }
        }
        self.starts.range(range).next().is_none()
    }

    /// Notes the file and slot (512 bytes) at which a record starts. Prefetching and layouts that
    /// overwrite old records find records by this position.
    pub(super) fn note_start(&mut self, id: EntryId, pieces: &Pieces) {
        if (self.layout.clears() || self.prefetch.is_on())
            && let Some(piece) = pieces.first()
        {
            self.starts.insert(RecordStart { file: piece.file, first: piece.first, id });
        }
    }

    fn write(&mut self, id: EntryId, pieces: Pieces, now: Instant, out: &mut Outbox) {
        let entry = self.entries.get(id);
        let (key, sequence, slots) = (entry.key, entry.sequence, entry.slots() as usize);
        let Some(record) = &entry.in_memory else { return };
        let mut bytes = vec![0; slots * SLOT];
        record::encode(&mut bytes, key, sequence, record, &self.secret);
        self.note_start(id, &pieces);
        self.waiting += bytes.len();
        let (mut batches, mut rest, mut writes) = (Vec::new(), &bytes[..], 0);
        for &piece in &pieces {
            let (part, after) = rest.split_at(piece.slots as usize * SLOT);
            if self.layout.kind(piece.file) == FileKind::Single {
                batches.push(Batch::alone(piece, part, id));
                writes += 1;
            } else {
                writes += self.gather.add(piece, part, id, now, &mut batches);
            }
            rest = after;
        }
        let entry = self.entries.get_mut(id);
        entry.pieces = pieces;
        entry.writes = writes;
        for batch in batches {
            self.write_batch(batch, out);
        }
    }

    pub(super) fn write_batch(&mut self, batch: Batch, out: &mut Outbox) {
        self.held.push_back(batch);
        self.write_held(out);
    }

    /// Starts the waiting writes. A storage scheme that batches reads starts no write during a
    /// batch of reads, and limits the writes in flight. Otherwise a disk's elevator scheduler would
    /// prefer the consecutive writes, and the reads would wait for seconds.
    pub(super) fn write_held(&mut self, out: &mut Outbox) {
        let limits = self.plan.reads == ReadOrder::Batched;
        while !(limits && (self.hits.is_reading() || self.writing >= WRITE_WINDOW))
            && let Some(batch) = self.held.pop_front()
        {
            self.start_write(batch, out);
        }
    }

    fn start_write(&mut self, batch: Batch, out: &mut Outbox) {
        self.writing += batch.bytes.len();
        let Batch { file, first, bytes, records } = batch;
        let offset = u64::from(first) * SLOT as u64;
        let job = Job::Write { file, bytes: bytes.len(), records };
        let buffer = IoBuffer::copy_of(&bytes);
        self.access(file, Access::Write { offset, buffer }, job, out);
    }

    /// Handles the result of a write. If the write failed, drops the records in it.
    pub(super) fn batch_written(
        &mut self,
        bytes: usize,
        records: Vec<EntryId>,
        result: Result<(), IoError>,
        out: &mut Outbox,
    ) {
        self.waiting -= bytes;
        self.writing -= bytes;
        for id in records {
            let entry = self.entries.get_mut(id);
            entry.writes -= 1;
            if entry.writes == 0 {
                entry.in_memory = None;
            }
            if result.is_err() && entry.live {
                self.entries.unlist(id);
            }
            self.release_if_free(id, out);
        }
    }

    /// Writes records that have waited in memory for `flush_after` or longer.
    pub(super) fn flush_old(&mut self, now: Instant, out: &mut Outbox) {
        let then = now - self.settings.store.flush_after;
        if let Some(locality) = &mut self.locality {
            let leaving = locality.flush(then);
            self.place_all(&leaving, now, out);
        }
        if self.gather.waiting_since().is_some_and(|since| since <= then) {
            self.flush_gathered(out);
        }
    }

    /// Writes all bytes that wait in the packetizer for a full page or stripe.
    pub(super) fn flush_gathered(&mut self, out: &mut Outbox) {
        if let Some(batch) = self.gather.flush() {
            self.write_batch(batch, out);
        }
    }

    /// After a hit, writes the record again as the newest record, unless too many bytes wait. So
    /// the record is evicted later. Squid's coss does the same.
    pub(super) fn rewrite(&mut self, id: EntryId, record: &Record, now: Instant, out: &mut Outbox) {
        if self.waiting + record.len() <= self.settings.store.waiting_bytes {
            let SlotEntry { key, site, .. } = *self.entries.get(id);
            self.drop_live(id, out);
            let id = self.insert(key, site, record.clone());
            self.place_all(&[id], now, out);
        }
    }
}
