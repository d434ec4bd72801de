//! Settings of the storage schemes: sizes, limits and times. foxy derives them from its
//! configuration.

use std::fmt;
use std::time::Duration;

/// Largest body of a record, in bytes. Callers must split larger objects.
pub const RECORD_BODY_LIMIT: usize = 1 << 20;

/// Largest head of a record, in bytes.
pub const RECORD_HEAD_LIMIT: usize = 64 << 10;

/// The limit on the number of waiting removals is this many times the limit on other waiting
/// requests. A waiting removal needs little memory. If the store refused a removal, it could later
/// return a record that should no longer exist.
pub const REMOVAL_FACTOR: usize = 4;

/// The setting `recovery`: which records survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// All durable records survive a crash (recovery by a scan of the disk, requirement R39 of
    /// `foxy figure requirements`). Each removal waits for a sync.
    #[default]
    AfterCrash,
    /// No record survives a crash. The records survive only a clean stop. No operation waits for a
    /// sync, as in the published storage schemes with which foxy is compared.
    AfterCleanStop,
}

/// How a store reacts if the disk lacks space for its preallocated file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeWish {
    /// Create a smaller store: halve the size until the store fits, down to [`MINIMUM_SIZE`].
    #[default]
    AtMost,
    /// Report an error instead of creating a smaller store.
    Exactly,
}

/// The new records that the store defers (keeps only in memory) while it is over its write budget.
/// A deferred record is written to disk after its next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomers {
    /// Defer records of at least twice the mean record size. They cause most of the written bytes
    /// but few hits.
    #[default]
    Heavy,
    /// Defer all new records.
    All,
}

/// A limit on the bytes that the store writes per day. Over the limit, the store defers new
/// records: it keeps them only in memory. All other writes continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// Bytes that the store may write per day. Unused bytes accumulate, up to the bytes of one day.
    pub bytes_a_day: u64,
    /// Memory for deferred records, in bytes.
    pub memory: usize,
    /// The new records that the store defers while it is over the limit.
    pub newcomers: Newcomers,
}

/// Settings shared by the storage schemes. A scheme ignores settings that do not concern it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Disk space for the store in bytes, including its journal, index and superblocks.
    pub size: u64,
    /// How the store reacts if the disk has less space than `size`.
    pub size_wish: SizeWish,
    /// Size in bytes of the largest object of which the store accepts a record (policy LRU-TH,
    /// requirement R49 of `foxy figure requirements`).
    pub object_limit: u64,
    /// Time between two checkpoints. A checkpoint writes the index to disk (requirement R38 of
    /// `foxy figure requirements`). The webcosm scheme has no checkpoints. It waits for this time
    /// before each pass that writes the use counters to disk.
    pub checkpoint_interval: Duration,
    /// Number of bytes of records that the store collects in memory before it writes them together.
    /// The storage scheme PACKETIZER does the same (requirement R25 of `foxy figure requirements`).
    /// Must be a multiple of 4096.
    pub page_buffer: usize,
    /// Longest time that a record waits in memory before it is written.
    pub flush_after: Duration,
    /// Number of bytes of puts that may wait for the disk. The store refuses further puts as busy.
    pub waiting_bytes: usize,
    /// Number of `get` requests that may wait for a disk read. The store refuses further gets as
    /// busy.
    pub waiting_reads: usize,
    /// Largest number of records in the store. The number limits the memory of the index.
    pub record_limit: u32,
    /// The write budget of the storage scheme webcosm, if any.
    pub write_budget: Option<WriteBudget>,
    /// The records that survive a crash. Storage schemes that always need a clean stop ignore this
    /// setting.
    pub recovery: Recovery,
    /// Whether other files in the store's directory show that an earlier run created a store there.
    pub begun_before: bool,
    /// A random number from which the store derives the secret of its checksums. Without the
    /// secret, nobody can create a body that looks like a record. The proxy takes the number from
    /// the operating system.
    pub seed: u64,
}

impl StoreSettings {
    /// Returns the recommended settings for a store of `size` bytes.
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

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error that names the first invalid value.
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

/// Size in bytes of the smallest store.
pub const MINIMUM_SIZE: u64 = 256 << 10;

/// The reason why settings are invalid.
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
                write!(f, "store size {size} is too small; give at least {MINIMUM_SIZE} bytes")
            }
            Self::PageBuffer(size) => {
                write!(f, "page buffer size {size} cannot be used; give a multiple of 4096 bytes")
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
