//! Settings of the schemes: sizes, watermarks, limits. Values only; the binary fills them in.

use std::fmt;
use std::time::Duration;

/// Bytes of the largest body of a record. Callers split larger objects.
pub const RECORD_BODY_LIMIT: usize = 1 << 20;

/// Bytes of the largest head of a record.
pub const RECORD_HEAD_LIMIT: usize = 64 << 10;

/// How many times more removals than other requests may wait. A removal takes few bytes, and after
/// a refused removal the record may come back.
pub const REMOVAL_FACTOR: usize = 4;

/// What comes back after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// All durable records. Removals wait for a sync (R39).
    #[default]
    AfterCrash,
    /// Nothing: only a store that was closed comes back. Nothing waits for a sync, as in the
    /// papers' schemes.
    AfterCleanStop,
}

/// What happens when the disk has no room for a preallocated store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeWish {
    /// A smaller store is made, by halves down to [`MINIMUM_SIZE`].
    #[default]
    AtMost,
    /// Opening fails.
    Exactly,
}

/// Which new records a store over its write budget defers until they are asked for again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomers {
    /// Records of at least twice the mean size: most of the written bytes, few of the hits.
    #[default]
    Heavy,
    /// All new records.
    All,
}

/// A limit of written bytes. The store keeps it by deferring new records; all other writes are
/// done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// Bytes a day. Unused bytes are saved up, for a day at most.
    pub bytes_a_day: u64,
    /// Bytes of memory for deferred records.
    pub memory: usize,
    /// Which records are deferred.
    pub newcomers: Newcomers,
}

/// Settings shared by the schemes. A scheme ignores what it does not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes of disk, bookkeeping included.
    pub size: u64,
    /// What happens when the disk has less room.
    pub size_wish: SizeWish,
    /// Objects above this many bytes are not stored (LRU-TH, R49).
    pub object_limit: u64,
    /// Time between two checkpoints of the index (R38).
    pub checkpoint_interval: Duration,
    /// Bytes gathered before they are written (R25); a multiple of 4096.
    pub page_buffer: usize,
    /// How long a partly filled page buffer may wait.
    pub flush_after: Duration,
    /// Bytes of puts that may wait for the disk. More are refused as busy.
    pub waiting_bytes: usize,
    /// Reads in flight. More are refused as busy.
    pub waiting_reads: usize,
    /// Records that may be stored. This bounds the memory of the index.
    pub record_limit: u32,
    /// The write budget of webcosm, if any.
    pub write_budget: Option<WriteBudget>,
    /// What comes back after a crash. Some schemes recover from a clean stop alone and ignore it.
    pub recovery: Recovery,
    /// Whether a store was begun here before, according to the files beside it.
    pub begun_before: bool,
    /// Secret randomness for checksums, so that no body can pass for a record. Entropy of the
    /// system in production.
    pub seed: u64,
}

impl StoreSettings {
    /// Recommended settings for a store of `size` bytes.
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

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that cannot be used.
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

/// Bytes of the smallest store.
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
