//! How a store came to be open. The scheme decides it before it serves.

use crate::one_file::superblock::Superblock;
use crate::settings::StoreSettings;
use foxy_base::ByteSize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How a store came to be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// No store was there, or one without a superblock.
    New,
    /// The store continues with its content.
    Kept,
    /// The file was cut short; the store continues with the rest.
    Cut {
        /// Bytes of the file.
        found: u64,
        /// Bytes of the store.
        expected: u64,
    },
    /// The content was given up.
    Anew(AnewReason),
}

impl Beginning {
    /// The beginning of a store in a blank file.
    pub const fn of_blank(settings: &StoreSettings) -> Self {
        if settings.begun_before { Self::Anew(AnewReason::ContentLost) } else { Self::New }
    }

    /// Whether earlier records may be in the store.
    pub const fn may_hold_something(self) -> bool {
        matches!(self, Self::Kept | Self::Cut { .. })
    }
}

/// Why a store gave up its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnewReason {
    /// Both copies of the superblock are damaged.
    SuperblocksDamaged,
    /// The forget journal cannot be read.
    JournalLost,
    /// The index that a clean stop writes is missing or damaged.
    IndexLost,
    /// The store cannot get another size with its content.
    OtherSize {
        /// Bytes of the earlier setting.
        before: u64,
        /// Bytes of the setting.
        now: u64,
    },
    /// The setting `recovery` has changed.
    OtherRecovery,
    /// The file is blank, but a store was begun there before.
    ContentLost,
}

impl AnewReason {
    /// The reason of a store that has another size than the settings.
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

/// The beginning, shared between threads; `None` until it is decided.
#[derive(Debug, Default)]
pub struct BeginningCell(Mutex<Option<Beginning>>);

impl BeginningCell {
    /// The last decision.
    pub fn get(&self) -> Option<Beginning> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, beginning: Beginning) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(beginning);
    }
}
