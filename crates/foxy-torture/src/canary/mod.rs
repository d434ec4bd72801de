//! Schemes that exist to be caught: a small honest one, and the same with one flaw each. If torture
//! passes a flawed one, torture is broken. Nothing here is meant for use.

mod slot;
mod slots;
mod unsynced;

pub use slots::Slots;
pub use unsynced::Unsynced;

/// What is wrong with a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing: the honest scheme.
    None,
    /// Serves what it read without looking at the checksum.
    SkipsChecksum,
    /// Answers `Removed` once the write is done, without a sync.
    RemovesWithoutSync,
    /// Looks at half of the key only.
    ChecksHalfTheKey,
    /// Keeps what it served in memory, and serves it again after a put of the same key.
    ServesPrevious,
    /// Forgets to answer when several requests wait.
    LosesAnswers,
    /// Calls every key absent to who looks.
    LooksAway,
    /// Gives who looks the first record of a key that it was told of.
    LooksBack,
}
