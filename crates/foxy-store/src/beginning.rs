//! The outcome of opening a store: a new store, a store with its old content, or an emptied store.

use crate::one_file::superblock::Superblock;
use crate::settings::StoreSettings;
use foxy_base::ByteSize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The outcome of opening a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The store is new: its file was missing, or contained only zeros. With
    /// [`StoreSettings::begun_before`], most storage schemes report [`Beginning::Anew`] instead.
    New,
    /// The store continues with its old content.
    Kept,
    /// The store file is shorter than its superblock states. The store continues with the remaining
    /// records.
    Cut {
        /// Actual length of the store file in bytes.
        found: u64,
        /// Length of the store file in bytes that the superblock states.
        expected: u64,
    },
    /// The store's content was discarded, for the reason given.
    Anew(AnewReason),
}

impl Beginning {
    /// Returns the outcome of opening a store whose file is blank (only zeros) or missing.
    pub const fn of_blank(settings: &StoreSettings) -> Self {
        if settings.begun_before { Self::Anew(AnewReason::ContentLost) } else { Self::New }
    }

    /// Returns whether the store may contain records from earlier runs.
    pub const fn may_hold_something(self) -> bool {
        matches!(self, Self::Kept | Self::Cut { .. })
    }
}

/// The reason why the content of a store was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnewReason {
    /// Both copies of the superblock (the page that describes the store) are damaged.
    SuperblocksDamaged,
    /// The journal of removed records is unreadable, so the store could return removed records.
    JournalLost,
    /// The index is missing or damaged. Some storage schemes write their index only when they stop
    /// cleanly.
    IndexLost,
    /// The requested size has changed, and the storage scheme cannot keep the content at the new
    /// size.
    OtherSize {
        /// Size of the store in bytes in the earlier settings.
        before: u64,
        /// Size of the store in bytes in the current settings.
        now: u64,
    },
    /// The setting `recovery` (which records survive a crash) has changed.
    OtherRecovery,
    /// The file is blank, but an earlier run created a store there.
    ContentLost,
}

impl AnewReason {
    /// Returns the reason for emptying a store whose size differs from the settings.
    pub const fn other_size(superblock: &Superblock, settings: &StoreSettings) -> Self {
        Self::OtherSize { before: superblock.requested, now: settings.size }
    }
}

impl fmt::Display for AnewReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SuperblocksDamaged => f.write_str("both copies of its superblock are damaged"),
            Self::JournalLost => f.write_str(
                "its forget journal, which lists removed records, is damaged, so removed records \
                 could return",
            ),
            Self::IndexLost => f.write_str(
                "its index, which only a clean stop writes, is missing or damaged, because foxy \
                 was killed or the disk failed",
            ),
            Self::OtherSize { before, now } => {
                write!(
                    f,
                    "the requested size has changed from {} to {}",
                    ByteSize(*before),
                    ByteSize(*now)
                )
            }
            Self::OtherRecovery => {
                f.write_str("the earlier content was written with another value of --recovery")
            }
            Self::ContentLost => {
                f.write_str("its file holds only zeros, although an earlier run made a store there")
            }
        }
    }
}

/// The outcome of opening a store, shared between threads. Contains `None` until the outcome is
/// known.
#[derive(Debug, Default)]
pub struct BeginningCell(Mutex<Option<Beginning>>);

impl BeginningCell {
    /// Returns the outcome of opening the store, or `None` if it is not known yet.
    pub fn get(&self) -> Option<Beginning> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, beginning: Beginning) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(beginning);
    }
}
