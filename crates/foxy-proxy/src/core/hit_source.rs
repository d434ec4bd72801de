//! Where a hit came from.

use crate::core::counters::Counter;
use crate::core::forward_reason::ForwardReason;

/// Where a hit came from. It is not in the field, but in logs and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitSource {
    /// The memory tier.
    Memory,
    /// The store.
    Disk,
    /// An origin that said nothing had changed, asked for that reason.
    Revalidated(ForwardReason),
    /// What was stored, after the origin failed: with that status, or without an answer.
    Fallback(Option<u16>),
}

impl HitSource {
    /// What counts hits from there.
    pub(crate) const fn counter(self) -> Counter {
        match self {
            Self::Memory => Counter::MemoryHits,
            Self::Disk => Counter::DiskHits,
            Self::Revalidated(_) => Counter::Revalidated,
            Self::Fallback(_) => Counter::StaleAnswers,
        }
    }
}
