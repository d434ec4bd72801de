//! What of the body of a response in flight can be read back.

use crate::cache::stored::Stored;
use crate::core::byte_budget::HeldBytes;
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
    /// Takes over `confirmed` if it has more bytes. Returns whether it has.
    pub(crate) fn advance(&mut self, confirmed: Self) -> bool {
        let has_more = matches!(
            (&*self, &confirmed),
            (Self::Parts { bytes: before, .. }, Self::Parts { bytes, .. }) if before < bytes
        );
        if has_more {
            *self = confirmed;
        }
        has_more
    }

    /// Notes that no more bytes will be kept. Returns whether that changes anything.
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
