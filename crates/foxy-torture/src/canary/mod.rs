//! Canaries: small test storage schemes with one known flaw each, and one without a flaw. If the
//! torture tests find no failure in a flawed canary, the torture tests themselves are broken.
//! Production code must not use canaries.

mod slot;
mod slots;
mod unsynced;

pub use slots::Slots;
pub use unsynced::Unsynced;

/// The flaw of a canary (a test scheme with a known flaw).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The canary has no flaw.
    None,
    /// The canary serves a record without checking its checksum.
    SkipsChecksum,
    /// The canary answers `Removed` after the write, without a sync.
    RemovesWithoutSync,
    /// The canary compares only half of the key.
    ChecksHalfTheKey,
    /// The canary serves the previous record of a key from memory after a newer put.
    ServesPrevious,
    /// The canary loses the answers of some requests while several requests wait.
    LosesAnswers,
    /// Reports for every look-up that the record is absent. A look-up reads the store directly,
    /// without sending the storage scheme a request.
    LooksAway,
    /// Returns the first record of the key for a look-up, instead of the newest. A look-up reads
    /// the store directly, without sending the storage scheme a request.
    LooksBack,
    /// Checks the key of a record only before the read of a look-up. During the read, another record
    /// may replace it. A look-up reads the store directly, without sending the storage scheme a
    /// request.
    LooksOnce,
}
