//! The first steps of an opening: read the superblock and the journal, or create an empty store.

use crate::beginning::{AnewReason, Beginning};
use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::journal::{self, BlockStamp, JournalContent};
use crate::one_file::store_file::Opened;
use crate::one_file::superblock::Superblock;
use crate::status::OpenStoreError;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName};
use crate::webcosm::format::summary::Tombstone;
use crate::webcosm::pending::Pending;
use crate::webcosm::phase::Phase;
use crate::webcosm::recovery::{Parts, StoreRecovery, resize};
use crate::webcosm::tombstones::{After, Steps, Tombstones};
use crate::webcosm::write::log::Log;
use foxy_device::{IoBuffer, IoError};

impl StoreRecovery {
    pub fn opened(&mut self, on: &mut Parts<'_>, opened: Opened) {
        match opened {
            Opened::Created(size) => format(on, size),
            Opened::Found(superblock) => self.found(on, superblock),
            Opened::Failed(error) => on.cx.fail(error),
        }
    }

    fn found(&mut self, on: &mut Parts<'_>, superblock: Superblock) {
        if let Err(error) = resize::judge_size(&superblock, on.cx.file.opening().size()) {
            return on.cx.fail(error);
        }
        let wanted = on.cx.settings.size;
        if superblock.requested != wanted {
            if !on.cx.file.opening().can_have(wanted) {
                return on.cx.fail(OpenStoreError::NoSpace);
            }
            self.resizing = resize::wanted(&superblock, wanted);
            if self.resizing.is_none() {
                on.cx.file.set_superblock(superblock);
                return self.begin_with_other_size(on);
            }
        }
        adopt(on, superblock);
        on.cx.enter(Phase::ReadingJournal);
        self.read_journal(on);
    }

    /// Empties the store, because it cannot keep its content at the requested size.
    pub fn begin_with_other_size(&mut self, on: &mut Parts<'_>) {
        let reason = AnewReason::other_size(on.cx.file.superblock(), &on.cx.settings);
        self.begin_anew(on, reason);
    }

    fn begin_anew(&mut self, on: &mut Parts<'_>, reason: AnewReason) {
        *self = Self::default();
        if let Some(opened) = on.cx.file.begin_anew(reason, &mut on.cx.out) {
            self.opened(on, opened);
        }
    }

    fn read_journal(&mut self, on: &mut Parts<'_>) {
        self.journal_reads += 1;
        let half = on.cx.journal_half(on.cx.file.superblock());
        on.cx.read(half.offset(), half.bytes(), Pending::Journal);
    }

    /// Adopts the content of the journal. If the journal is unreadable, any record may have been
    /// removed, so the opening empties the store.
    pub fn journal_read(&mut self, on: &mut Parts<'_>, result: Result<IoBuffer, IoError>) {
        let superblock = on.cx.file.superblock();
        let length = on.cx.journal_half(superblock).bytes();
        match journal::content(result, length, superblock.journal_generation, on.cx.secret()) {
            Some(JournalContent { facts, .. }) => {
                facts.iter().map(Tombstone::of_forget).for_each(|entry| adopt_entry(on, entry));
                if !on.writer.logs().iter().all(Log::is_possible) {
                    return self.journal_lost(on);
                }
                on.cx.enter(Phase::FindingHead);
                self.find_head(on, LogName::Main);
            }
            None if self.journal_reads < journal::MAX_READS => self.read_journal(on),
            None => self.journal_lost(on),
        }
    }

    fn journal_lost(&mut self, on: &mut Parts<'_>) {
        if self.resizing.is_some() {
            return self.begin_anew(on, AnewReason::JournalLost);
        }
        on.cx.observer.begins(Beginning::Anew(AnewReason::JournalLost));
        format(on, on.cx.file.superblock().size);
    }
}

/// Creates an empty store in the file. A new secret makes all earlier content unreadable. The file
/// is synced before the superblock is written. So after a crash, the file is empty, blank, or has a
/// superblock. The first journal block is written at once, because a journal without a block counts
/// as lost.
fn format(on: &mut Parts<'_>, size: u64) {
    on.cx.enter(Phase::Formatting);
    let settings = &on.cx.settings;
    let superblock = Superblock::fresh(on.cx.file.superblock(), settings.seed, settings.size, size);
    let steps = std::iter::once(IoStep::Sync)
        .chain(superblock_steps(&superblock))
        .chain(first_journal(on.cx, &superblock))
        .chain([IoStep::Sync])
        .collect();
    on.tombstones.run(on.cx, on.writer, steps, After::Formatted(superblock));
}

/// Returns the steps that write the first block of the journal. If the file contained a store
/// before, the steps also fill all other pages of both journal halves with zeros. Otherwise old
/// bytes could look like a torn block.
fn first_journal(cx: &Context, superblock: &Superblock) -> Steps {
    let stamp = BlockStamp { generation: superblock.journal_generation, durable: 0 };
    let mark = Tombstone::mark([(0, 0); 2]).to_forget();
    let block = journal::encode(&[mark], 0, stamp, &superblock.secret());
    let journal = Geometry::in_file(superblock).journal;
    let [half, other] =
        [superblock.journal_half, 1 - superblock.journal_half].map(|half| journal[half as usize]);
    if !matches!(cx.observer.beginning.get(), Some(Beginning::Anew(_))) {
        return vec![IoStep::Write(half.offset(), block)];
    }
    let mut first = IoBuffer::zeroed(half.bytes());
    first.as_mut()[..block.len()].copy_from_slice(block.as_ref());
    let blank = IoBuffer::zeroed(other.bytes());
    vec![IoStep::Write(other.offset(), blank), IoStep::Write(half.offset(), first)]
}

/// Starts to serve requests, because the new empty store is durable.
pub fn formatted(on: &mut Parts<'_>, superblock: Superblock) {
    adopt(on, superblock);
    *on.tombstones = Tombstones::default();
    on.tombstones.begin_half(on.cx.geometry.journal[0], 1);
    on.cx.enter(Phase::Serving);
}

fn adopt(on: &mut Parts<'_>, superblock: Superblock) {
    let cx = &mut *on.cx;
    cx.file.set_superblock(superblock);
    cx.statistics().size_bytes.set(superblock.size);
    cx.geometry = Geometry::in_file(&superblock);
    cx.index.begin_anew(cx.geometry);
    on.writer.begin_anew(&cx.geometry);
}

fn adopt_entry(on: &mut Parts<'_>, entry: Tombstone) {
    let Some(marks) = entry.marks() else { return on.tombstones.add(entry) };
    for (log, (tail, durable_end)) in LogName::ALL.into_iter().zip(marks) {
        let log = on.writer.log_mut(log);
        log.tail = tail.max(log.tail);
        log.next = durable_end.max(log.next).max(log.tail);
    }
}
