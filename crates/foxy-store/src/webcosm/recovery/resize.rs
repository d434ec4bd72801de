//! Another size for a store that is opened: its segments stay where they are, as far as they fit.
//!
//! A larger store gets slots behind those it has. The next segment takes the slot of the oldest as
//! before, until it comes to the new ones. A smaller store keeps the segments written since the
//! first slot was written last, if they fit; older ones are given up, all of them, since what newer
//! ones say is forgotten must not be missed. The log on probation, whose slots lie behind those of
//! the main log, begins again at its new place. All of it takes effect with the superblock of this
//! opening.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::one_file::io_sequence::IoStep;
use crate::one_file::superblock::Superblock;
use crate::settings::MINIMUM_SIZE;
use crate::status::OpenStoreError;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment, Turn};
use crate::webcosm::io::Pending;
use crate::webcosm::reclaim::ghost::Ghost;
use crate::webcosm::{MOST_BYTES, Webcosm};
use foxy_device::{IoBuffer, IoOp};

/// What the superblock is to say of another size.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resized(Option<(Turn, Sizes)>);

#[derive(Clone, Copy, Debug)]
struct Sizes {
    size: u64,
    requested: u64,
    origin: u64,
}

impl Resized {
    /// That superblock, with another size if there is one.
    pub const fn apply(self, superblock: Superblock) -> Superblock {
        match self.0 {
            None => superblock,
            Some((turn, Sizes { size, requested, origin })) => {
                Superblock { size, requested, origin, turn: turn.pack(), ..superblock }
            }
        }
    }
}

/// The size that a store of `wanted` bytes would have; `None` when what it holds cannot stay.
pub fn wanted(superblock: &Superblock, wanted: u64) -> Option<u64> {
    let size = wanted / PAGE as u64 * PAGE as u64;
    Geometry::in_file(superblock).resized(origin(superblock), size).map(|_| size)
}

const fn origin(superblock: &Superblock) -> u64 {
    if superblock.origin == 0 { superblock.size } else { superblock.origin }
}

/// How the main log's slots follow each other once there are `slots` of them, and the oldest
/// segment that stays; `None` when the newest do not fit.
fn turned(geometry: &Geometry, tail: u32, next: u32, slots: u32) -> Option<(Turn, u32)> {
    let before = geometry.segments(LogName::Main);
    let newest =
        Segment { log: LogName::Main, sequence: next.saturating_sub(1).max(geometry.turn.base) };
    let base = newest.sequence - geometry.slot(newest);
    if slots >= before {
        let still = base == geometry.turn.base;
        let turn = if still { geometry.turn } else { Turn { base, before } };
        return Some((turn, tail));
    }
    (next - base <= slots).then(|| (Turn { base, before: slots }, tail.max(base)))
}

impl Webcosm {
    /// What is to be written of another size, with the logs cut to what stays; `None` when nothing
    /// can stay.
    pub(crate) fn resized(&mut self) -> Option<Resized> {
        let Some(size) = self.finding.resizing else { return Some(Resized::default()) };
        let origin = origin(self.file.superblock());
        let slots = self.geometry.resized(origin, size)?.segments(LogName::Main);
        let [main, probation] = &mut self.logs;
        let (turn, tail) = turned(&self.geometry, main.tail, main.next, slots)?;
        main.tail = tail;
        probation.tail = probation.next;
        let requested = self.settings.size;
        Some(Resized(Some((turn, Sizes { size, requested, origin }))))
    }

    /// Makes the file as long as it is to be: a write at its end, so that what there is stays.
    pub(crate) fn extension(&self) -> Option<IoStep<Segment>> {
        let size = self.finding.resizing.filter(|&size| size > self.file.opening().size())?;
        Some(IoStep::Write(size - PAGE as u64, IoBuffer::zeroed(PAGE)))
    }

    /// The superblock says another size durably.
    pub(crate) fn adopt_size(&mut self, out: &mut Outbox) {
        let Some(size) = self.finding.resizing.take() else { return };
        self.geometry = Geometry::in_file(self.file.superblock());
        self.index.divide(self.geometry);
        self.logs.iter_mut().for_each(|log| log.divide(&self.geometry));
        self.ghost = Ghost::new(&self.geometry);
        self.observer.statistics.size_bytes.set(size);
        let behind = self.file.opening().left_behind(size);
        if behind > 0 {
            let op = IoOp::Trim { file: self.file.id(), offset: size, length: behind };
            self.file.submit(op, Pending::Trim, out);
        }
    }
}
/// Whether a file of that many bytes can be the store that its superblock says, for an opening as
/// for the check.
pub(crate) fn judge_size(superblock: &Superblock, file: u64) -> Result<(), OpenStoreError> {
    let &Superblock { size, origin, .. } = superblock;
    let far = origin > 0 && Geometry::in_file(superblock).resized(origin, size).is_none();
    if far || !(MINIMUM_SIZE..=MOST_BYTES).contains(&size) {
        return Err(OpenStoreError::ImpossibleSize(size));
    }
    if file < size {
        return Err(OpenStoreError::Truncated { found: file, expected: size });
    }
    Ok(())
}
