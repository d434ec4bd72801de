//! Changes the size of a store while it is opened. Segments that still fit stay in their places in
//! the file.
//!
//! A store that grows receives more slots (places for segments) after the current slots of the main
//! log. The log continues in its old slots up to their end. Then it uses the new slots.
//!
//! A store that shrinks keeps the segments that the main log has written since it last used its
//! first slot, if they fit. All older segments are discarded, even if they would fit. A newer
//! segment that does not fit may contain tombstones (marks of removal) for their records.
//!
//! The probation log follows the main log in the file. A resize moves its start, so this log is
//! emptied. All changes become valid at once when the superblock of this opening is durable.

use crate::layout::PAGE;
use crate::one_file::io_sequence::IoStep;
use crate::one_file::store_file::StoreFile;
use crate::one_file::superblock::Superblock;
use crate::settings::MINIMUM_SIZE;
use crate::status::OpenStoreError;
use crate::webcosm::format::geometry::{Geometry, LogName, MAX_STORE_BYTES, Segment, SlotMap};
use crate::webcosm::pending::Pending;
use crate::webcosm::recovery::{Parts, StoreRecovery};
use foxy_device::{IoBuffer, IoOp};

/// The new size for the superblock. Contains `None` if the size does not change.
#[derive(Clone, Copy, Default)]
pub struct Resized(Option<NewSize>);

#[derive(Clone, Copy)]
struct NewSize {
    slot_map: SlotMap,
    size: u64,
    requested: u64,
    origin: u64,
}

impl Resized {
    pub const fn apply(self, superblock: Superblock) -> Superblock {
        match self.0 {
            None => superblock,
            Some(NewSize { slot_map, size, requested, origin }) => {
                Superblock { size, requested, origin, turn: slot_map.pack(), ..superblock }
            }
        }
    }
}

/// Returns the size in bytes that a store has if the settings request `wanted` bytes. Returns
/// `None` if the store cannot keep its content at this size.
pub fn wanted(superblock: &Superblock, wanted: u64) -> Option<u64> {
    let size = wanted / PAGE as u64 * PAGE as u64;
    Geometry::in_file(superblock).resized(origin(superblock), size).map(|_| size)
}

/// Returns the size of the store at its creation, in bytes.
const fn origin(superblock: &Superblock) -> u64 {
    if superblock.origin == 0 { superblock.size } else { superblock.origin }
}

/// Returns how the main log maps segments to places if it has `slots` slots, and the oldest segment
/// that stays. Returns `None` if the newest segments do not fit.
fn remapped(geometry: &Geometry, tail: u32, next: u32, slots: u32) -> Option<(SlotMap, u32)> {
    let before = geometry.segments(LogName::Main);
    let sequence = next.saturating_sub(1).max(geometry.slot_map.base);
    let base = sequence - geometry.slot(Segment { log: LogName::Main, sequence });
    if slots >= before {
        let is_same = base == geometry.slot_map.base;
        let slot_map = if is_same { geometry.slot_map } else { SlotMap { base, before } };
        return Some((slot_map, tail));
    }
    (next - base <= slots).then(|| (SlotMap { base, before: slots }, tail.max(base)))
}

impl StoreRecovery {
    /// Shortens both logs to the segments that stay at the new size. Returns `None` if no content
    /// can stay.
    pub fn resized(&self, on: &mut Parts<'_>) -> Option<Resized> {
        let Some(size) = self.resizing else { return Some(Resized::default()) };
        let origin = origin(on.cx.file.superblock());
        let slots = on.cx.geometry.resized(origin, size)?.segments(LogName::Main);
        let main = on.writer.log_mut(LogName::Main);
        let (slot_map, tail) = remapped(&on.cx.geometry, main.tail, main.next, slots)?;
        main.tail = tail;
        let probation = on.writer.log_mut(LogName::Probation);
        probation.tail = probation.next;
        let requested = on.cx.settings.size;
        Some(Resized(Some(NewSize { slot_map, size, requested, origin })))
    }

    /// Returns a step that makes the file longer, by a write of one page at its new end. Returns
    /// `None` if the file need not grow.
    pub fn extension(&self, file: &StoreFile<Pending>) -> Option<IoStep<Segment>> {
        let size = self.resizing.filter(|&size| size > file.opening().size())?;
        Some(IoStep::Write(size - PAGE as u64, IoBuffer::zeroed(PAGE)))
    }

    /// Changes to the new size, which is now durable in the superblock.
    pub fn adopt_size(&mut self, on: &mut Parts<'_>) {
        let Some(size) = self.resizing.take() else { return };
        let cx = &mut *on.cx;
        cx.geometry = Geometry::in_file(cx.file.superblock());
        cx.index.divide(cx.geometry);
        on.writer.divide(&cx.geometry);
        cx.statistics().size_bytes.set(size);
        let behind = cx.file.opening().left_behind(size);
        if behind > 0 {
            let op = IoOp::Trim { file: cx.file.id(), offset: size, length: behind };
            cx.submit(op, Pending::Trim);
        }
    }
}

/// Checks whether a file of `file` bytes can contain the store that its superblock describes.
pub fn judge_size(superblock: &Superblock, file: u64) -> Result<(), OpenStoreError> {
    let &Superblock { size, origin, .. } = superblock;
    let is_far = origin > 0 && Geometry::in_file(superblock).resized(origin, size).is_none();
    if is_far || !(MINIMUM_SIZE..=MAX_STORE_BYTES).contains(&size) {
        return Err(OpenStoreError::ImpossibleSize(size));
    }
    if file < size {
        return Err(OpenStoreError::Truncated { found: file, expected: size });
    }
    Ok(())
}
