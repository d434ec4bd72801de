//! Settings of the schemes: sizes, limits and times. The program sets them from its configuration.

use std::fmt;
use std::time::Duration;

/// Bytes of the largest body of a record. Callers split larger objects.
pub const RECORD_BODY_LIMIT: usize = 1 << 20;

/// Bytes of the largest head of a record.
pub const RECORD_HEAD_LIMIT: usize = 64 << 10;

/// Removals may wait in this many times larger numbers than other requests. A removal needs little
/// memory, and after a refused removal the record may return.
pub const REMOVAL_FACTOR: usize = 4;

/// Which records survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// All durable records. Each removal waits for a sync (R39).
    #[default]
    AfterCrash,
    /// None: records survive only a clean stop. No operation waits for a sync, as in the schemes of
    /// the papers.
    AfterCleanStop,
}

/// What to do if the disk lacks space for a preallocated store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeWish {
    /// Create a smaller store: halve the size until it fits, down to [`MINIMUM_SIZE`].
    #[default]
    AtMost,
    /// Fail to open the store.
    Exactly,
}

/// Which new records a store over its write budget defers until their next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomers {
    /// Records of at least twice the mean size. They cause most of the written bytes but few hits.
    #[default]
    Heavy,
    /// All new records.
    All,
}

/// A limit on written bytes. The store obeys the limit by deferring new records. All other writes
/// continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// Bytes a day. Unused bytes accumulate, up to one day's bytes.
    pub bytes_a_day: u64,
    /// Bytes of memory for deferred records.
    pub memory: usize,
    /// Which new records are deferred.
    pub newcomers: Newcomers,
}

/// Settings shared by the schemes. A scheme ignores settings that do not concern it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes of disk space, bookkeeping included.
    pub size: u64,
    /// What to do if the disk has less space.
    pub size_wish: SizeWish,
    /// Objects larger than this are not stored (LRU-TH, R49). In bytes.
    pub object_limit: u64,
    /// Time between two checkpoints of the index (R38).
    pub checkpoint_interval: Duration,
    /// Bytes of records to collect before a write (R25); a multiple of 4096.
    pub page_buffer: usize,
    /// A partly filled page buffer is written after this time at the latest.
    pub flush_after: Duration,
    /// Bytes of puts that may wait for the disk. Further puts are refused as busy.
    pub waiting_bytes: usize,
    /// Reads in flight. Further reads are refused as busy.
    pub waiting_reads: usize,
    /// Most records in the store. This bounds the memory of the index.
    pub record_limit: u32,
    /// The write budget of the scheme webcosm, if any.
    pub write_budget: Option<WriteBudget>,
    /// Which records survive a crash. Schemes that always need a clean stop ignore this setting.
    pub recovery: Recovery,
    /// Whether other files in the folder show that a store was created here before.
    pub begun_before: bool,
    /// A random secret for checksums, so that no body can pass for a record. In production, entropy
    /// of the operating system.
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
    /// The first invalid value.
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

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The size is below [`MINIMUM_SIZE`].
    SizeTooSmall(u64),
    /// The page buffer is not a positive multiple of 4096 bytes.
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
