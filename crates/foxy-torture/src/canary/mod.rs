//! Canaries: small test schemes with one known flaw each, and one without a flaw. If the torture
//! tests pass a flawed canary, the torture tests are broken. Not for production.

mod slot;
mod slots;
mod unsynced;

pub use slots::Slots;
pub use unsynced::Unsynced;

/// The flaw of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No flaw.
    None,
    /// Serves a record without checking its checksum.
    SkipsChecksum,
    /// Answers `Removed` after the write, without a sync.
    RemovesWithoutSync,
    /// Compares only half of the key.
    ChecksHalfTheKey,
    /// Serves the previous record of a key from memory after a newer put.
    ServesPrevious,
    /// Loses the answers of some requests when several requests wait.
    LosesAnswers,
    /// Answers every look that the key is absent.
    LooksAway,
    /// Answers a look with the first record of the key instead of the newest.
    LooksBack,
}
