//! How a store came to be open: with what it held, as a new one, or anew, and then why. Written by
//! the scheme once that is decided, before it serves.

use crate::one_file::superblock::Superblock;
use crate::settings::StoreSettings;
use foxy_base::ByteSize;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How a store came to be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// There was none at its place, or one that was never stamped.
    New,
    /// It goes on with what it held.
    Kept,
    /// It goes on with what is left of it: its file was cut short.
    Cut {
        /// Bytes there are.
        found: u64,
        /// Bytes there were.
        expected: u64,
    },
    /// What it held was given up.
    Anew(AnewReason),
}

impl Beginning {
    /// That of a store where nothing but zeros is: one that was never stamped, or what is left of
    /// one that was begun before.
    #[must_use]
    pub const fn of_blank(settings: &StoreSettings) -> Self {
        if settings.begun_before { Self::Anew(AnewReason::ContentLost) } else { Self::New }
    }

    /// Whether something that was stored before may be in it.
    #[must_use]
    pub const fn may_hold_something(self) -> bool {
        matches!(self, Self::Kept | Self::Cut { .. })
    }
}

/// Why a store gave up what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnewReason {
    /// Both copies of its superblock are damaged.
    SuperblocksDamaged,
    /// What it was told to forget cannot be read.
    JournalLost,
    /// The index that a clean stop leaves is not there or not whole, and its scheme recovers from
    /// nothing else.
    IndexLost,
    /// It was asked to be of another size, which it cannot become with what it held.
    OtherSize {
        /// Bytes that were asked for before.
        before: u64,
        /// Bytes that are now.
        now: u64,
    },
    /// It kept its books in the other way of `recovery`.
    OtherRecovery,
    /// Nothing but zeros is there, and what lies beside it says that it was begun before.
    ContentLost,
}

impl AnewReason {
    /// That of a store whose size does not fit what the settings ask for.
    #[must_use]
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

/// A beginning shared between the scheme and whoever reports on it; none until it is decided.
#[derive(Debug, Default)]
pub struct BeginningCell(Mutex<Option<Beginning>>);

impl BeginningCell {
    /// What was decided last.
    #[must_use]
    pub fn get(&self) -> Option<Beginning> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, beginning: Beginning) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(beginning);
    }
}
