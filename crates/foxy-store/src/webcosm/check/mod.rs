//! Checks a store without opening it: verifies every checksum and reports the content. The check
//! reads through a function of the caller, writes nothing, and trusts no byte that it reads.
//!
//! The check shares only the decoding of pages, stamps and summaries with the code that opens a
//! store. It implements the rest of docs/store-format.md a second time: it finds the ends of the
//! logs, the records of unfinished segments, and the live records. An opening must serve exactly
//! the records that the check calls live.

mod finding;
mod journal;
mod reader;
mod records;
mod report;
mod scan;
mod tail;
mod walk;

#[cfg(test)]
mod tests;

pub use finding::{Finding, Findings, Level, Reason};
pub use reader::ReadBytes;
pub use report::{
    ClassCount, Geometry, JournalReport, LogName, RecordReport, Report, SegmentReport,
    SegmentState, Standing,
};
pub use scan::FoundRecord;

use crate::layout::PAGE;
use crate::one_file::medium::{Medium, first_written};
use crate::one_file::superblock::{CopyState, Found, Superblock};
use crate::status::OpenStoreError;
use crate::webcosm::recovery::resize;
use foxy_device::IoError;
use reader::Reader;
use std::fmt;
use walk::Walk;

/// The parts of a store to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckScope {
    /// Whether to read every record. If not, the check reads only the data that an opening reads.
    pub records: bool,
    /// The slot (place of a segment in the file) whose records the report lists one by one.
    pub listed: Option<u32>,
}

/// A function to which the check passes each record that a get would find.
pub type TakeRecord<'a> = dyn FnMut(FoundRecord<'_>) + 'a;

/// The reason why a store cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The store is unusable: an opening would also refuse it.
    Unusable(OpenStoreError),
    Blank,
    /// The file is blank, but other files in its directory show that a store was created there.
    /// Only the caller can know this, because the check sees one file.
    ContentLost,
    /// Both copies of the superblock are damaged. An opening would empty the store.
    BothDamaged,
    NoSuchSegment {
        slot: u32,
        slots: u32,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(error) => error.fmt(f),
            Self::Blank => f.write_str("the store is empty: no foxy has used it yet"),
            Self::ContentLost => f.write_str(
                "the store has lost its content: the file holds only zeros, although an earlier \
                 run made a store there; the next start makes a new store",
            ),
            Self::BothDamaged => f.write_str(
                "both copies of the superblock are damaged, so foxy cannot read the store; the \
                 next start makes a new store",
            ),
            Self::NoSuchSegment { slot, slots } => {
                write!(
                    f,
                    "there is no segment {slot}; the store has {slots} segments, numbered from 0"
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Reads both copies of the superblock and returns the valid copy. Works for the file or device of
/// every storage scheme that has a superblock.
pub fn superblocks(
    medium: Medium,
    size: u64,
    read: &mut ReadBytes<'_>,
) -> Result<([CopyState; 2], Superblock), Refused> {
    if size == 0 {
        return Err(Refused::Blank);
    }
    let failed = |error: IoError| Refused::Unusable(OpenStoreError::Device(error));
    let length = usize::try_from(size.min(2 * PAGE as u64)).expect("two pages at most");
    let pages = Reader::new(read).exactly(0, length).map_err(failed)?;
    let (first, second) = pages.split_at(length.min(PAGE));
    let superblock = match medium.judge(&pages) {
        Ok(Found::Ours(superblock)) => superblock,
        Ok(Found::Blank) => return Err(blank(medium, size, read)),
        Ok(Found::Damaged) => return Err(Refused::BothDamaged),
        Err(error) => return Err(Refused::Unusable(error)),
    };
    Ok(([first, second].map(CopyState::of), superblock))
}

/// Returns [`Refused::Blank`] if the rest of the file contains only zeros, and another error if
/// not. Reads only the two ends of a device.
fn blank(medium: Medium, size: u64, read: &mut ReadBytes<'_>) -> Refused {
    let mut from = 2 * PAGE as u64;
    while let Some(part) = medium.next_blank(from, size) {
        let length = usize::try_from(part.end - part.start).expect("a mebibyte at most");
        match Reader::new(read).exactly(part.start, length).map(|bytes| first_written(&bytes)) {
            Ok(None) => from = part.end,
            Ok(Some(at)) => return Refused::Unusable(medium.foreign(part.start + at as u64)),
            Err(error) => return Refused::Unusable(OpenStoreError::Device(error)),
        }
    }
    Refused::Blank
}

/// Checks a store of `size` bytes, and returns a report of its content and its damage.
pub fn check(
    medium: Medium,
    size: u64,
    scope: CheckScope,
    read: &mut ReadBytes<'_>,
) -> Result<Report, Refused> {
    walk(medium, size, scope, read, &mut |_| {})
}

/// Checks a store of `size` bytes. Passes each record that a get would find to `take`, in the order
/// in which the check reads the records.
pub fn list(
    medium: Medium,
    size: u64,
    read: &mut ReadBytes<'_>,
    take: &mut TakeRecord<'_>,
) -> Result<Report, Refused> {
    walk(medium, size, CheckScope { records: true, listed: None }, read, take)
}

fn walk<'a>(
    medium: Medium,
    size: u64,
    scope: CheckScope,
    read: &'a mut ReadBytes<'a>,
    take: &'a mut TakeRecord<'a>,
) -> Result<Report, Refused> {
    let (copies, superblock) = superblocks(medium, size, read)?;
    resize::judge_size(&superblock, size).map_err(Refused::Unusable)?;
    let mut walk = Walk::new(superblock, scope, Reader::new(read), take);
    let slots = walk.geometry.slots();
    if let Some(slot) = scope.listed.filter(|&slot| slot >= slots) {
        return Err(Refused::NoSuchSegment { slot, slots });
    }
    walk.judge_copies(copies);
    let journal = walk.journal();
    if walk.known_tails(&journal) {
        LogName::ALL.into_iter().for_each(|log| walk.log(log, &journal));
    }
    Ok(walk.into_report(copies, journal))
}
