//! How a store was opened: new, with its old content, or emptied. The scheme decides this before it
//! answers requests.

use crate::one_file::superblock::Superblock;
use crate::settings::StoreSettings;
use foxy_base::ByteSize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How a store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// There was no store file, or the file was blank.
    New,
    /// The store continues with its content.
    Kept,
    /// The file is shorter than before. The store continues with the records that are left.
    Cut {
        /// Bytes that the file has.
        found: u64,
        /// Bytes that the store should have.
        expected: u64,
    },
    /// The store was emptied, for the reason given.
    Anew(AnewReason),
}

impl Beginning {
    /// How a store in a blank file was opened.
    pub const fn of_blank(settings: &StoreSettings) -> Self {
        if settings.begun_before { Self::Anew(AnewReason::ContentLost) } else { Self::New }
    }

    /// Whether records from earlier runs may be in the store.
    pub const fn may_hold_something(self) -> bool {
        matches!(self, Self::Kept | Self::Cut { .. })
    }
}

/// Why the content of a store was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnewReason {
    /// Both copies of the superblock are damaged.
    SuperblocksDamaged,
    /// The forget journal is unreadable. Without this journal, removed records could return.
    JournalLost,
    /// The index is missing or damaged. Only a clean stop writes it.
    IndexLost,
    /// The scheme cannot change the size and keep the content.
    OtherSize {
        /// Bytes in the earlier settings.
        before: u64,
        /// Bytes in the current settings.
        now: u64,
    },
    /// The setting `recovery` has changed.
    OtherRecovery,
    /// The file is blank, but an earlier run created a store there.
    ContentLost,
}

impl AnewReason {
    /// The reason for a store whose size differs from the settings.
    pub const fn other_size(superblock: &Superblock, settings: &StoreSettings) -> Self {
        Self::OtherSize { before: superblock.requested, now: settings.size }
    }
}

impl fmt::Display for AnewReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SuperblocksDamaged => f.write_str("both copies of its superblock are damaged"),
            Self::JournalLost => {
                f.write_str("its forget journal is damaged, and what it was told to forget is not known any more")
            }
            Self::IndexLost => {
                f.write_str("the index that only a clean stop leaves is not there or not whole; it was killed, or the disk failed")
            }
            Self::OtherSize { before, now } => {
                write!(f, "it was of {} and is to be of {}", ByteSize(*before), ByteSize(*now))
            }
            Self::OtherRecovery => f.write_str("it was used with another --recovery"),
            Self::ContentLost => f.write_str(
                "it has lost its content: there is nothing but zeros, and the folder says that a store was begun there",
            ),
        }
    }
}

/// How the store was opened, shared between threads; `None` until this is decided.
#[derive(Debug, Default)]
pub struct BeginningCell(Mutex<Option<Beginning>>);

impl BeginningCell {
    /// The latest decision.
    pub fn get(&self) -> Option<Beginning> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, beginning: Beginning) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(beginning);
    }
}
