//! Writes checkpoints, which are copies of the index on disk. Two areas alternate, so the last
//! checkpoint stays until the new checkpoint is written. The checkpoint at closing is complete: it
//! lists every record on disk, including invalid records. So the next opening needs no scan.

use super::StreamPacketizer;
use super::pending::LaneName;
use super::sequences::After;
use crate::checkpoint::{CheckpointHead, Listed, PAGE_ENTRIES, encode_page};
use crate::index::{Entry, EntryId, EntryState};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::Outbox;
use foxy_store::layout::{PAGE, Region};
use foxy_store::one_file::io_sequence::IoStep;

/// A checkpoint that is being written.
#[derive(Debug)]
pub struct Snapshot {
    number: u64,
    area: Region,
    pages: u32,
    source: Source,
    complete: bool,
}

/// The source of the entries for a checkpoint.
#[derive(Debug)]
enum Source {
    /// The entries in the array of the index, from this array position on. Records may change while
    /// the checkpoint is written, so its entries may be outdated.
    Slab(usize),
    /// The entries in a fixed list, from this list position on.
    List(Vec<EntryId>, usize),
}

const PAGES_AT_ONCE: usize = 64;

impl Snapshot {
    pub const fn is_complete(&self) -> bool {
        self.complete
    }
}

impl StreamPacketizer {
    pub(super) fn begin_checkpoint(&mut self, now: Instant, out: &mut Outbox) {
        self.next_checkpoint = now + self.settings.store.checkpoint_interval;
        if self.idle(LaneName::Checkpoint) {
            self.changed = false;
            self.begin_snapshot(Source::Slab(0), false, out);
        }
    }

    /// Starts the complete checkpoint: first the invalid records, then the live records in the
    /// order of eviction. Returns false if the checkpoint cannot list every record on disk.
    pub(super) fn begin_complete_checkpoint(&mut self, out: &mut Outbox) -> bool {
        let room = (self.layout.checkpoints[0].pages as usize - 1) * PAGE_ENTRIES;
        if self.has_doubts() || self.index.len() > room || self.pages.retired() > 0 {
            return false;
        }
        let is_leftover =
            |entry: &Entry| matches!(entry.state, EntryState::Leftover | EntryState::Dying);
        let slab = (0..).zip(self.index.slab());
        let mut list: Vec<EntryId> =
            slab.filter(|(_, entry)| is_leftover(entry)).map(|(id, _)| id).collect();
        list.append(&mut self.index.coldest_first());
        self.begin_snapshot(Source::List(list, 0), true, out);
        true
    }

    fn begin_snapshot(&mut self, source: Source, complete: bool, out: &mut Outbox) {
        self.checkpoint_number += 1;
        let number = self.checkpoint_number;
        let area = self.layout.checkpoints[(number % 2) as usize];
        self.snapshot = Some(Snapshot { number, area, pages: 0, source, complete });
        self.write_piece(out);
    }

    fn write_piece(&mut self, out: &mut Outbox) {
        let Some(mut snapshot) = self.snapshot.take() else { return };
        let room = (snapshot.area.pages - 1 - snapshot.pages) as usize;
        let most = room.min(PAGES_AT_ONCE);
        let mut entries = Vec::with_capacity(most * PAGE_ENTRIES);
        self.take_entries(&mut snapshot.source, most * PAGE_ENTRIES, &mut entries);
        if entries.is_empty() {
            return self.write_head(snapshot, out);
        }
        let count = entries.len().div_ceil(PAGE_ENTRIES);
        let mut buffer = IoBuffer::zeroed(count * PAGE);
        let pages = entries.chunks(PAGE_ENTRIES).zip(buffer.as_mut().chunks_exact_mut(PAGE));
        for (place, (part, page)) in (snapshot.pages..).zip(pages) {
            encode_page(part, snapshot.number, place, self.file.secret(), page);
        }
        let offset = snapshot.area.offset() + u64::from(1 + snapshot.pages) * PAGE as u64;
        snapshot.pages += u32::try_from(count).expect("at most PAGES_AT_ONCE");
        self.snapshot = Some(snapshot);
        self.run(
            LaneName::Checkpoint,
            vec![IoStep::Write(offset, buffer)],
            After::CheckpointPiece,
            out,
        );
    }

    fn take_entries(&self, source: &mut Source, most: usize, entries: &mut Vec<Listed>) {
        let slab = self.index.slab();
        while entries.len() < most {
            let (entry, wanted) = match source {
                Source::Slab(next) => {
                    let Some(entry) = slab.get(*next) else { return };
                    *next += 1;
                    (entry, entry.state == EntryState::Live)
                }
                Source::List(list, next) => {
                    let Some(&id) = list.get(*next) else { return };
                    *next += 1;
                    (&slab[id as usize], true)
                }
            };
            if wanted {
                entries.push(listed(entry));
            }
        }
    }

    fn write_head(&mut self, snapshot: Snapshot, out: &mut Outbox) {
        let Snapshot { number, pages, complete, area, .. } = snapshot;
        let (opens, durable) = (self.file.superblock().opens, self.durable);
        let head = CheckpointHead { number, opens, pages, complete, durable };
        let page = IoBuffer::copy_of(&head.encode(self.file.secret()));
        self.snapshot = Some(snapshot);
        let steps = vec![IoStep::Write(area.offset(), page), IoStep::Sync];
        self.run(LaneName::Checkpoint, steps, After::CheckpointDone, out);
    }

    pub(super) fn checkpoint_piece_done(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        let outdated =
            self.closing.is_some() && !self.snapshot.as_ref().is_some_and(Snapshot::is_complete);
        if result.is_err() || outdated {
            self.snapshot = None;
        } else {
            self.write_piece(out);
        }
    }

    pub(super) fn checkpoint_done(&mut self, result: Result<(), IoError>) {
        self.snapshot = None;
        if result.is_ok() {
            self.observer.statistics.checkpoints.add(1);
        }
    }
}

fn listed(entry: &Entry) -> Listed {
    Listed {
        key: entry.key,
        sequence: entry.sequence,
        first_slot: entry.first_slot,
        slots: entry.slots,
        live: entry.state == EntryState::Live,
    }
}
