//! Checks both copies of the superblock and the active half of the journal of tombstones. A
//! tombstone marks records as removed.

use super::finding::{Level, Reason};
use super::report::JournalReport;
use super::walk::Walk;
use crate::layout::PAGE;
use crate::one_file::journal::{self, BLOCK_BYTES};
use crate::one_file::superblock::CopyState;
use crate::webcosm::format::geometry::{LogName, Segment};
use crate::webcosm::format::summary::Tombstone;

/// The state of one copy of a journal block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalCopy {
    Sound,
    /// The page is blank, or contains a block from an earlier use of this journal half.
    Stale,
    Damaged,
}

impl Walk<'_> {
    pub(super) fn judge_copies(&mut self, copies: [CopyState; 2]) {
        for (number, copy) in (0..).zip(copies) {
            let at = number * PAGE as u64;
            match copy {
                CopyState::Sound(copy) if copy.generation < self.superblock.generation => {
                    self.find(at, PAGE, Reason::SuperblockOlder, Level::Normal);
                }
                CopyState::Sound(_) => {}
                // A new store writes the second copy of the superblock only after the first copy is
                // durable. So a blank second copy is normal.
                CopyState::Blank if number == 1 => {
                    self.find(at, PAGE, Reason::SuperblockOlder, Level::Normal);
                }
                _ => self.find(at, PAGE, Reason::SuperblockDamaged, Level::Damage),
            }
            self.verified_bytes += PAGE as u64;
        }
    }

    /// Checks the active half of the journal and collects its tombstones (marks of removed
    /// records).
    pub(super) fn journal(&mut self) -> JournalReport {
        let half = self.geometry.journal[self.superblock.journal_half as usize];
        let mut report =
            JournalReport { room: (half.bytes() / BLOCK_BYTES) as u64, ..Default::default() };
        let bytes = match self.reader.exactly(half.offset(), half.bytes()) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.find(half.offset(), half.bytes(), Reason::Unreadable(error), Level::Unread);
                return report;
            }
        };
        let blocks: Vec<_> =
            bytes.chunks_exact(BLOCK_BYTES).map(|pair| pair.split_at(PAGE)).collect();
        let states: Vec<_> =
            (0..).zip(&blocks).map(|(n, (one, two))| [one, two].map(|p| self.copy(p, n))).collect();
        let sound = |pair: &[JournalCopy; 2]| pair.contains(&JournalCopy::Sound);
        let written = states.iter().rposition(sound).map_or(0, |last| last + 1);
        report.blocks = written as u64;
        for (number, pair) in states.iter().enumerate() {
            let at = half.offset() + (number * BLOCK_BYTES) as u64;
            let last = number + 1 >= written;
            self.judge_block(at, *pair, number, written);
            let Some(copy) = pair.iter().position(|copy| *copy == JournalCopy::Sound) else {
                continue;
            };
            debug_assert!(last || number < written, "sound blocks are written ones");
            let page = if copy == 0 { blocks[number].0 } else { blocks[number].1 };
            self.adopt_block(page, number as u32, &mut report);
        }
        self.verified_bytes += (written * BLOCK_BYTES) as u64;
        report
    }

    fn copy(&self, page: &[u8], number: u32) -> JournalCopy {
        let generation = self.superblock.journal_generation;
        if journal::decode_block(page, number, generation, &self.secret).is_some() {
            return JournalCopy::Sound;
        }
        let whole = page[..8] == self.secret.checksum(&page[8..]).to_le_bytes();
        let blank = page.iter().all(|&byte| byte == 0);
        if whole || blank { JournalCopy::Stale } else { JournalCopy::Damaged }
    }

    /// Reports damage in the two copies of a journal block. A crash can tear the last readable
    /// block or the block after it. All earlier blocks must be intact. The first block must always
    /// be intact, because a store writes it before any record.
    fn judge_block(&mut self, at: u64, pair: [JournalCopy; 2], number: usize, written: usize) {
        let may_be_torn = number > 0 && number + 1 >= written;
        if pair.contains(&JournalCopy::Sound) {
            for (copy, state) in (0..).zip(pair) {
                let level = if may_be_torn { Level::Normal } else { Level::Damage };
                if state != JournalCopy::Sound {
                    self.find(at + copy * PAGE as u64, PAGE, Reason::JournalCopyDamaged, level);
                }
            }
        } else if number < written || number == 0 {
            self.find(at, BLOCK_BYTES, Reason::JournalDamaged, Level::Damage);
        } else if number == written && pair.contains(&JournalCopy::Damaged) {
            self.find(at, BLOCK_BYTES, Reason::JournalTorn, Level::Normal);
        }
    }

    fn adopt_block(&mut self, page: &[u8], number: u32, report: &mut JournalReport) {
        let generation = self.superblock.journal_generation;
        let Some((_, entries)) = journal::decode_block(page, number, generation, &self.secret)
        else {
            return;
        };
        for tombstone in entries.map(|entry| Tombstone::of_forget(&entry)) {
            match tombstone.marks() {
                None => {
                    report.tombstones += 1;
                    self.forget(tombstone);
                }
                Some(marks) => {
                    for (log, (tail, durable_end)) in marks.into_iter().enumerate() {
                        let known = &mut report.tails[log];
                        *known = tail.max(*known);
                        let known = &mut report.durable_ends[log];
                        *known = durable_end.max(*known).max(report.tails[log]);
                    }
                }
            }
        }
    }

    /// Returns whether the journal is readable, and whether the segment numbers in it are possible.
    /// If not, an opening empties the store, so the check reads no segment.
    pub(super) fn known_tails(&mut self, journal: &JournalReport) -> bool {
        let lost = |reason| matches!(reason, Reason::JournalDamaged | Reason::Unreadable(_));
        if self.findings.kept.iter().any(|finding| lost(finding.reason)) {
            return false;
        }
        let possible = LogName::ALL.into_iter().all(|log| {
            let [sequence, end] = [journal.tails, journal.durable_ends].map(|of| of[log as usize]);
            let segments = self.geometry.segments_from(Segment { log, sequence });
            sequence.checked_add(segments).is_some_and(|most| end <= most)
        });
        if !possible {
            let half = self.geometry.journal[self.superblock.journal_half as usize];
            self.find(half.offset(), half.bytes(), Reason::MarksImpossible, Level::Damage);
        }
        possible
    }
}
