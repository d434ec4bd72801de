//! One file in memory: its current content, its durable content, and the effect of a crash on both.

use super::content::Content;
use crate::io::StorePath;
use crate::open_file::FileKind;
use foxy_base::Random;
use std::collections::VecDeque;

/// Size of a sector in bytes. A crash never leaves a sector partly written.
pub(crate) const SECTOR: usize = 512;

/// A change to a file's content that a crash may undo.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Zero { offset: u64, length: u64 },
    Restart { size: u64 },
}

impl Change {
    /// Returns the size of this change in bytes. The sum of these sizes is limited, because a crash
    /// must be able to undo the changes.
    const fn weight(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => (SECTOR + bytes.len()) as u64,
            Self::Zero { .. } | Self::Restart { .. } => SECTOR as u64,
        }
    }

    fn apply(&self, content: &mut Content) {
        match self {
            Self::Write { offset, bytes } => content.write(*offset, bytes),
            Self::Zero { offset, length } => content.zero(*offset, *length),
            Self::Restart { size } => content.restart(*size),
        }
    }

    /// Applies a random part of the change, as a crash during the change does. Each sector of a
    /// write is written with probability one half.
    fn tear(&self, content: &mut Content, random: &mut Random) {
        match self {
            Self::Write { offset, bytes } => {
                let mut from = 0;
                while from < bytes.len() {
                    let at = offset + from as u64;
                    let into = usize::try_from(at % SECTOR as u64).expect("below a sector");
                    let to = bytes.len().min(from + SECTOR - into);
                    if random.chance(0.5) {
                        content.write(at, &bytes[from..to]);
                    }
                    from = to;
                }
            }
            Self::Zero { offset, length } => content.zero(*offset, random.below(*length)),
            Self::Restart { .. } => content.restart(0),
        }
    }

    /// Simulates that a crash loses the change. A lost write may still lengthen the file, whose new
    /// bytes then read as zero.
    fn lose(&self, content: &mut Content, random: &mut Random) {
        if let Self::Write { offset, bytes } = self
            && !bytes.is_empty()
            && random.chance(0.5)
        {
            content.extend(offset + bytes.len() as u64);
        }
    }
}

/// A file with its current content, its durable content, and the changes that lead from the durable
/// to the current content.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFile {
    current: Content,
    durable: Content,
    pending: VecDeque<Change>,
    pending_weight: u64,
    pub(crate) kind: FileKind,
    /// Number of references to this file: file ids under which it is open, current names, and names
    /// that a crash may restore.
    pub(crate) references: u32,
    /// The name under which the file was created, until this name is durable.
    pub(crate) new_name: Option<StorePath>,
}

impl MemoryFile {
    /// Creates an empty file with one reference: its new name.
    pub(crate) fn named(path: StorePath) -> Self {
        Self { references: 1, new_name: Some(path), ..Self::default() }
    }

    pub(crate) const fn current(&self) -> &Content {
        &self.current
    }

    /// Writes `bytes` at `offset`. At most `limit` bytes of changes to the file stay volatile, so
    /// that a crash may undo them. With a limit of 0, every change is durable at once.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], limit: u64) {
        self.current.write(offset, bytes);
        if limit > 0 {
            self.note(Change::Write { offset, bytes: bytes.to_vec() }, limit);
        }
    }

    pub(crate) fn zero(&mut self, offset: u64, length: u64, limit: u64) {
        self.change(Change::Zero { offset, length }, limit);
    }

    pub(crate) fn restart(&mut self, size: u64, limit: u64) {
        self.change(Change::Restart { size }, limit);
    }

    /// Makes the file at least `size` bytes long. The new size is durable.
    pub(crate) fn extend(&mut self, size: u64) {
        self.current.extend(size);
        self.durable.extend(size);
    }

    /// Applies all volatile changes to the durable content, so that no crash can undo them.
    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
        self.pending_weight = 0;
    }

    /// Flips the bits of `mask` in one byte of both the current and the durable content. Returns
    /// false if the byte is beyond the end of the file.
    pub(crate) fn rot(&mut self, offset: u64, mask: u8) -> bool {
        self.durable.flip(offset, mask);
        self.current.flip(offset, mask)
    }

    /// Simulates a crash: each volatile change (not made durable by a sync) survives, is torn, or
    /// is lost.
    pub(crate) fn crash(&mut self, policy: &CrashPolicy, random: &mut Random, limit: u64) {
        if limit == 0 {
            return;
        }
        for change in std::mem::take(&mut self.pending) {
            match policy.write_fate(random) {
                Fate::Kept => change.apply(&mut self.durable),
                Fate::Torn => change.tear(&mut self.durable, random),
                Fate::Lost => change.lose(&mut self.durable, random),
            }
        }
        self.pending_weight = 0;
        self.current = self.durable.clone();
    }

    fn change(&mut self, change: Change, limit: u64) {
        change.apply(&mut self.current);
        if limit > 0 {
            self.note(change, limit);
        }
    }

    /// Adds a change that a crash may undo. If the changes exceed the limit in bytes, the oldest
    /// become durable, as if a kernel had written them back.
    fn note(&mut self, change: Change, limit: u64) {
        self.pending_weight += change.weight();
        self.pending.push_back(change);
        while self.pending_weight > limit {
            let Some(oldest) = self.pending.pop_front() else { break };
            self.pending_weight -= oldest.weight();
            oldest.apply(&mut self.durable);
        }
    }
}

/// Probabilities that changes without a later sync survive a crash. Each change is decided
/// independently, so a later change may survive although an earlier change is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrashPolicy {
    /// Probability, from 0 to 1, that a write, truncation or trim survives whole.
    pub keep_write: f64,
    /// Probability that a change is torn. In a torn write, each 512-byte sector survives with
    /// probability one half. A torn trim affects a shorter range. A torn truncation leaves an empty
    /// file.
    pub tear_write: f64,
    /// Probability that a crash keeps a created name, or does not restore a removed name.
    pub keep_name: f64,
}

impl CrashPolicy {
    /// Every change survives, as if only the process had ended.
    pub const KEEP_ALL: Self = Self { keep_write: 1.0, tear_write: 0.0, keep_name: 1.0 };
    /// Only changes that a sync made durable survive.
    pub const LOSE_ALL: Self = Self { keep_write: 0.0, tear_write: 0.0, keep_name: 0.0 };
    /// Some changes of each kind survive, some are torn, and some are lost.
    pub const MIXED: Self = Self { keep_write: 0.4, tear_write: 0.3, keep_name: 0.5 };

    pub(crate) fn write_fate(&self, random: &mut Random) -> Fate {
        let drawn = random.unit();
        if drawn < self.keep_write {
            Fate::Kept
        } else if drawn < self.keep_write + self.tear_write {
            Fate::Torn
        } else {
            Fate::Lost
        }
    }
}

/// How a crash treats a change that no sync made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Torn,
    Lost,
}
