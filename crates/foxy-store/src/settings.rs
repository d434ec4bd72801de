//! What every scheme is made with: sizes, watermarks, limits on what may wait. Values only; the
//! binary fills them in.

use crate::policy::{Policy, PolicyName, PolicySettings};
use crate::schemes::slotted::BufferChoice;
use std::fmt;
use std::time::Duration;

/// The largest body of one record in bytes; larger objects are split by the caller.
pub const RECORD_BODY_LIMIT: usize = 1 << 20;

/// The largest head of one record in bytes.
pub const RECORD_HEAD_LIMIT: usize = 64 << 10;

/// How file numbers are spread over two levels of directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// As Squid 1.1 did: the first level is the number modulo 16, neighbours lie in different
    /// directories.
    RoundRobin,
    /// As Squid does since 1998: 256 consecutive numbers share a directory.
    #[default]
    Consecutive,
}

/// When records are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsReclaim {
    /// When a fill would pass the high watermark, down to the low one (R50).
    #[default]
    AtOnce,
    /// Every second above the low watermark some, more the fuller it is, as Squid's
    /// `UFSSwapDir::maintain` (R70). The size is still a limit: where Squid passes it until the
    /// next second, a fill evicts what it needs.
    EverySecond,
}

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
    /// Percent of the space in use at which eviction begins (R50).
    pub high_watermark: u8,
    /// Percent of the space in use at which eviction ends (R50).
    pub low_watermark: u8,
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
    /// Which record goes when room is wanted (R71, R74).
    pub policy: PolicyName,
    /// How the scheme `ufs` spreads its files over directories (R18).
    pub ufs_mapping: UfsMapping,
    /// When the scheme `ufs` evicts (R50, R70).
    pub ufs_reclaim: UfsReclaim,
    /// Operations under way at which the scheme `aufs` opens nothing more (R63).
    pub aufs_queue: usize,
    /// Operations under way at which the scheme `diskd` opens nothing more: Squid's Q1 (R64).
    pub diskd_q1: usize,
    /// The largest record, in slots of 512 bytes, that the scheme `buddy` keeps in a file with
    /// others (R20, R21).
    pub buddy_threshold: u32,
    /// Buffers of 64 KiB in which the scheme `lazy-reads-loc` gathers records by origin server
    /// (R28).
    pub locality_buffers: u16,
    /// Which of them is emptied when a server needs one (R29).
    pub locality_choice: BufferChoice,
    /// Bytes of an origin server's next records that the schemes which gather records by origin
    /// server read along with one that is asked for (R36); 0 for none. Sixteen times as much is
    /// kept in memory at most.
    pub prefetch: usize,
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
            high_watermark: 95,
            low_watermark: 90,
            checkpoint_interval: Duration::from_secs(60),
            page_buffer: 256 << 10,
            flush_after: Duration::from_secs(1),
            waiting_bytes: 16 << 20,
            waiting_reads: 256,
            record_limit: u32::try_from((size / 2048).clamp(1024, 1 << 27)).unwrap_or(1 << 27),
            policy: PolicyName::default(),
            ufs_mapping: UfsMapping::default(),
            ufs_reclaim: UfsReclaim::default(),
            aufs_queue: 80,
            diskd_q1: 64,
            buddy_threshold: 256,
            locality_buffers: 128,
            locality_choice: BufferChoice::default(),
            prefetch: 0,
            write_budget: None,
            recovery: Recovery::default(),
            begun_before: false,
            seed: 0,
        }
    }

    /// An empty policy for the records of this store.
    #[must_use]
    pub fn make_policy(&self) -> Box<dyn Policy> {
        let capacity = self.size / 100 * u64::from(self.high_watermark);
        self.policy.make(&PolicySettings { capacity, object_limit: self.object_limit })
    }

    /// Whether the values make sense together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.size < MINIMUM_SIZE {
            return Err(SettingsError::SizeTooSmall(self.size));
        }
        if self.high_watermark > 100
            || self.low_watermark == 0
            || self.low_watermark > self.high_watermark
        {
            return Err(SettingsError::Watermarks {
                low: self.low_watermark,
                high: self.high_watermark,
            });
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
    /// Not `0 < low <= high <= 100`.
    Watermarks {
        /// The low one, percent.
        low: u8,
        /// The high one, percent.
        high: u8,
    },
    /// Not a positive multiple of 4096 bytes.
    PageBuffer(usize),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeTooSmall(size) => {
                write!(f, "store size {size} is too small; the least is {MINIMUM_SIZE} bytes")
            }
            Self::Watermarks { low, high } => {
                write!(
                    f,
                    "watermarks {low} and {high} do not fit; they must be 0 < low <= high <= 100 percent"
                )
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
        check(
            StoreSettings { low_watermark: 96, ..sound.clone() },
            SettingsError::Watermarks { low: 96, high: 95 },
        );
        check(StoreSettings { page_buffer: 5000, ..sound }, SettingsError::PageBuffer(5000));
    }
}
