//! What of the body of a response in flight can be read back.

use crate::cache::stored::Stored;
use crate::core::waiting::HeldBytes;
use std::sync::Arc;

/// What of a flight's body can be read back.
#[derive(Clone, Debug, Default)]
pub(crate) enum Keeping {
    /// The first bytes of it, in parts of this fill; more is to come.
    Parts {
        /// The fill's random number.
        fill: u64,
        /// Bytes the store has confirmed.
        bytes: u64,
    },
    /// All of it.
    All {
        /// It.
        stored: Arc<Stored>,
        /// The room it takes.
        _room: Arc<HeldBytes>,
    },
    /// It is not kept.
    #[default]
    Nothing,
}

impl Keeping {
    /// The first bytes of the body, as far as the store has confirmed the fill's parts.
    pub(crate) const fn confirmed((fill, bytes): (u64, u64)) -> Self {
        Self::Parts { fill, bytes }
    }

    /// Notes the bytes that the store has confirmed; whether there are more.
    pub(crate) fn advance(&mut self, (fill, bytes): (u64, u64)) -> bool {
        let more = matches!(self, Self::Parts { bytes: before, .. } if *before < bytes);
        if more {
            *self = Self::confirmed((fill, bytes));
        }
        more
    }

    /// Notes that nothing more will be kept; whether that changes anything.
    pub(crate) fn end(&mut self) -> bool {
        let more_was_to_come = matches!(self, Self::Parts { .. });
        if more_was_to_come {
            *self = Self::Nothing;
        }
        more_was_to_come
    }
}

/// Who would miss what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Readers of the same flight.
    ByReaders,
    /// Nobody now.
    Later,
}
