//! One file in memory as it is now and as a crash may leave it. Names are the tree's matter.

use super::content::Content;
use super::crash::{CrashPolicy, Fate};
use crate::io::StorePath;
use crate::tree::Place;
use foxy_base::Random;
use std::collections::VecDeque;

/// What a disk writes whole or not at all, in bytes.
pub(crate) const SECTOR: usize = 512;

/// A change that a crash may undo.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Zero { offset: u64, length: u64 },
    Restart { size: u64 },
}

impl Change {
    /// What it counts against the write-back limit, in bytes.
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

    /// Leaves a random half of the change: of a write, each sector on its own.
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

    /// Loses the change; the longer size a lost write had given may stay, reading as zero.
    fn lose(&self, content: &mut Content, random: &mut Random) {
        if let Self::Write { offset, bytes } = self
            && !bytes.is_empty()
            && random.chance(0.5)
        {
            content.extend(offset + bytes.len() as u64);
        }
    }
}

/// A file: what reads see, what is durable, and the changes between the two in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFile {
    current: Content,
    durable: Content,
    pending: VecDeque<Change>,
    pending_weight: u64,
    /// What it is.
    pub(crate) place: Place,
    /// Open ids and names, current and durable, that lead here.
    pub(crate) references: u32,
    /// The name it was created with, while that is not durable.
    pub(crate) new_name: Option<StorePath>,
}

impl MemoryFile {
    /// An empty file with one reference, its new name.
    pub(crate) fn named(path: StorePath) -> Self {
        Self { references: 1, new_name: Some(path), ..Self::default() }
    }

    /// Makes it a blank block device of `size` bytes, durably.
    pub(crate) fn become_block_device(&mut self, size: u64) {
        self.place = Place::BlockDevice;
        self.extend(size);
    }

    pub(crate) const fn current(&self) -> &Content {
        &self.current
    }

    /// Writes; `limit` is how many bytes of changes may wait to become durable, 0 to make this
    /// durable at once.
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

    /// Makes the file at least that long, durably.
    pub(crate) fn extend(&mut self, size: u64) {
        self.current.extend(size);
        self.durable.extend(size);
    }

    /// Everything so far becomes durable.
    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
        self.pending_weight = 0;
    }

    /// Changes bits of one byte, now and for good, as a medium that rots; false beyond the end.
    pub(crate) fn rot(&mut self, offset: u64, mask: u8) -> bool {
        self.durable.flip(offset, mask);
        self.current.flip(offset, mask)
    }

    /// Each change not yet durable survives, is torn or is lost; the rest of the file is as it was.
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

    /// Remembers a change; the oldest beyond the limit are written back, as a kernel does by
    /// itself.
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
