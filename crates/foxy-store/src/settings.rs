//! What every scheme is made with: sizes, watermarks, limits on what may wait. Values only; the
//! binary fills them in.

use std::fmt;
use std::time::Duration;

/// The largest body of one record in bytes; larger objects are split by the caller.
pub const RECORD_BODY_LIMIT: usize = 1 << 20;

/// The largest head of one record in bytes.
pub const RECORD_HEAD_LIMIT: usize = 64 << 10;

/// Removals are taken until this many times as many requests wait as other requests may: a removal
/// takes few bytes, and a refused removal can let an old record come back after a crash.
pub const REMOVALS: usize = 4;

/// What a store remembers of its records after it was not closed properly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// All that was durable. What must be forgotten is made durable first, which costs syncs (R39).
    #[default]
    AfterCrash,
    /// Nothing: only a store that was closed comes back. No sync is ever waited for, as in the
    /// seeds' schemes.
    AfterCleanStop,
}

/// What happens when the disk has no room for a preallocated store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeWish {
    /// A smaller one is made, by halves down to [`MINIMUM_SIZE`].
    #[default]
    AtMost,
    /// None is made.
    Exactly,
}

/// Which newcomers a store that has written more than it should does not write before they are
/// asked for again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomers {
    /// Those of twice the mean size and more, which are most of what is written and few of the
    /// hits.
    #[default]
    Heavy,
    /// All of them.
    All,
}

/// What a store should write at most. It is kept by not writing some newcomers; all else is written
/// however much that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// Bytes a day. What is not written is saved up, for a day at most.
    pub bytes_a_day: u64,
    /// Bytes of memory for newcomers that are not written.
    pub memory: usize,
    /// Which those are.
    pub newcomers: Newcomers,
}

/// Settings shared by the schemes. A scheme ignores what it has no use for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes of disk the store may take, its own bookkeeping included.
    pub size: u64,
    /// What happens when the disk has no room for that.
    pub size_wish: SizeWish,
    /// Objects above this many bytes are not stored (LRU-TH, R49).
    pub object_limit: u64,
    /// Time between two checkpoints of the index (R38).
    pub checkpoint_interval: Duration,
    /// Bytes gathered before they are written (R25); a multiple of 4096.
    pub page_buffer: usize,
    /// How long a partly filled page buffer may wait before it is written all the same.
    pub flush_after: Duration,
    /// Bytes of puts that may wait for the disk before more are refused as busy.
    pub waiting_bytes: usize,
    /// Reads that may be in flight before more are refused as busy.
    pub waiting_reads: usize,
    /// Records that may be stored; with the free space's leftovers it bounds the index's memory.
    pub record_limit: u32,
    /// What the scheme `webcosm` should write at most, if not everything that is put.
    pub write_budget: Option<WriteBudget>,
    /// What comes back after a crash. Schemes that can recover from a clean stop only take no
    /// notice.
    pub recovery: Recovery,
    /// Whether what lies beside the store says that one was begun at its place before.
    pub begun_before: bool,
    /// Secret randomness for checksums, so that no body can pass for a record. From the system's
    /// entropy in production, from the seed in tests.
    pub seed: u64,
}

impl StoreSettings {
    /// Settings for a store of `size` bytes; everything else as the project recommends.
    #[must_use]
    pub fn with_size(size: u64) -> Self {
        Self {
            size,
            size_wish: SizeWish::default(),
            object_limit: u64::MAX,
            checkpoint_interval: Duration::from_secs(60),
            page_buffer: 256 << 10,
            flush_after: Duration::from_secs(1),
            waiting_bytes: 16 << 20,
            waiting_reads: 256,
            record_limit: u32::try_from((size / 2048).clamp(1024, 1 << 27)).unwrap_or(1 << 27),
            write_budget: None,
            recovery: Recovery::default(),
            begun_before: false,
            seed: 0,
        }
    }

    /// Whether the values make sense together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.size < MINIMUM_SIZE {
            return Err(SettingsError::SizeTooSmall(self.size));
        }
        if self.page_buffer == 0 || !self.page_buffer.is_multiple_of(4096) {
            return Err(SettingsError::PageBuffer(self.page_buffer));
        }
        Ok(())
    }
}

/// The smallest store in bytes that a scheme accepts.
pub const MINIMUM_SIZE: u64 = 256 << 10;

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// Below [`MINIMUM_SIZE`].
    SizeTooSmall(u64),
    /// Not a positive multiple of 4096 bytes.
    PageBuffer(usize),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeTooSmall(size) => {
                write!(f, "store size {size} is too small; the least is {MINIMUM_SIZE} bytes")
            }
            Self::PageBuffer(size) => {
                write!(
                    f,
                    "page buffer of {size} bytes cannot be used; it must be a multiple of 4096"
                )
            }
        }
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_contradict_themselves_are_refused() {
        let sound = StoreSettings::with_size(1 << 20);
        assert_eq!(sound.validate(), Ok(()));
        let check =
            |settings: StoreSettings, expected| assert_eq!(settings.validate(), Err(expected));
        check(StoreSettings { size: 1, ..sound.clone() }, SettingsError::SizeTooSmall(1));
        check(StoreSettings { page_buffer: 5000, ..sound }, SettingsError::PageBuffer(5000));
    }
}
