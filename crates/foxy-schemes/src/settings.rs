//! The settings of a storage scheme. [`StoreSettings`] has the settings that every store has. The
//! other settings apply to some schemes only.

use crate::policy::{Policy, PolicyName, PolicySettings};
use crate::slotted::BufferChoice;
use foxy_store::{SettingsError, StoreSettings};
use std::fmt;
use std::time::Duration;

/// Decides in which directory of a `ufs` store a file is. The files are spread over two levels of
/// directories, 16 × 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// Uses the rule of Squid 1.1. The file number modulo 16 selects the first-level directory, so
    /// consecutive numbers are in different directories.
    RoundRobin,
    /// Uses the rule of Squid since 1998. Each group of 256 consecutive file numbers shares a
    /// directory.
    #[default]
    Consecutive,
}

/// Decides when a `ufs` store evicts records. The watermarks are percentages of the store's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsReclaim {
    /// Evicts records when a put would raise the used space above the high watermark. Eviction
    /// stops at the low watermark.
    #[default]
    AtOnce,
    /// Evicts some records every second while the used space is above the low watermark, like
    /// Squid's `UFSSwapDir::maintain`. The fuller the store, the more records are evicted. A put
    /// that would exceed the store's size also evicts records at once. Squid may exceed its size
    /// until the next second.
    EverySecond,
}

/// Decides which thread writes and closes files in the storage scheme `aufs` on a modelled disk. On
/// a real disk, the threads of `aufs` always write and close the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AufsWrites {
    /// The threads write and close files.
    #[default]
    Threads,
    /// The proxy writes and closes files itself, and waits for it, as Squid 2.5 does.
    Proxy,
}

/// Settings of a storage scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeSettings {
    /// The settings that every store has, whatever its storage scheme.
    pub store: StoreSettings,
    /// The replacement policy.
    pub policy: PolicyName,
    /// How the storage scheme `ufs` spreads files over directories.
    pub ufs_mapping: UfsMapping,
    /// When the storage scheme `ufs` evicts records.
    pub ufs_reclaim: UfsReclaim,
    /// Maximum number of bytes of one read or write of a record's file in the storage scheme `ufs`.
    /// Squid reads and writes pieces of 4 KiB. 0 means the whole file.
    pub ufs_piece: usize,
    /// Whether the threads or the proxy write and close files in the storage scheme `aufs`.
    pub aufs_writes: AufsWrites,
    /// Number of disk operations in flight at which the storage scheme `aufs` refuses gets and puts
    /// as busy.
    pub aufs_queue: usize,
    /// Number of disk operations in flight at which the storage scheme `diskd` refuses gets and
    /// puts as busy. Squid calls this limit Q1.
    pub diskd_q1: usize,
    /// Maximum size of a record in a shared file of the storage scheme `buddy`, in slots of 512
    /// bytes. A larger record has its own file.
    pub buddy_threshold: u32,
    /// Number of locality buffers of 64 KiB each. A locality buffer collects records of one origin
    /// server, so that they are written side by side. Only storage schemes that group records by
    /// origin server use these buffers.
    pub locality_buffers: u16,
    /// Selects the locality buffer to write out when a further origin server needs a buffer.
    pub locality_choice: BufferChoice,
    /// Maximum number of bytes that a read fetches in addition: the records that follow on disk and
    /// belong to the same origin server. 0 disables prefetching. Only storage schemes that group
    /// records by origin server prefetch. Prefetched records in memory take at most sixteen times
    /// this limit.
    pub prefetch: usize,
    /// Number of reads in a batch. The storage schemes `lazy-reads` and `lazy-reads-loc` collect
    /// reads, sort them by disk place and start them together.
    pub read_batch: usize,
    /// Longest time that a read waits for a batch. After it, the storage schemes `lazy-reads` and
    /// `lazy-reads-loc` start a batch that is not full.
    pub read_patience: Duration,
    /// Used space in percent of the store's size at which eviction starts.
    pub high_watermark: u8,
    /// Used space in percent of the store's size at which eviction ends.
    pub low_watermark: u8,
}

impl SchemeSettings {
    /// Returns the recommended settings for a store of `size` bytes.
    pub fn with_size(size: u64) -> Self {
        StoreSettings::with_size(size).into()
    }

    /// Creates an empty replacement policy. The capacity of the policy is the space below the high
    /// watermark.
    pub fn make_policy(&self) -> Box<dyn Policy> {
        let capacity = self.store.size / 100 * u64::from(self.high_watermark);
        self.policy.make(&PolicySettings { capacity, object_limit: self.store.object_limit })
    }

    /// Checks that the settings do not contradict each other.
    ///
    /// # Errors
    /// Returns an error for the first setting that does not fit.
    pub fn validate(&self) -> Result<(), SchemeSettingsError> {
        self.store.validate().map_err(SchemeSettingsError::Store)?;
        let (low, high) = (self.low_watermark, self.high_watermark);
        if high > 100 || low == 0 || low > high {
            return Err(SchemeSettingsError::Watermarks { low, high });
        }
        Ok(())
    }
}

impl From<StoreSettings> for SchemeSettings {
    fn from(store: StoreSettings) -> Self {
        Self {
            store,
            policy: PolicyName::default(),
            ufs_mapping: UfsMapping::default(),
            ufs_reclaim: UfsReclaim::default(),
            ufs_piece: 0,
            aufs_writes: AufsWrites::default(),
            aufs_queue: 80,
            diskd_q1: 64,
            buddy_threshold: 256,
            locality_buffers: 128,
            locality_choice: BufferChoice::default(),
            prefetch: 0,
            read_batch: 10,
            read_patience: Duration::from_millis(250),
            high_watermark: 95,
            low_watermark: 90,
        }
    }
}

/// Reason why settings contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeSettingsError {
    /// One of the settings that every store has is invalid.
    Store(SettingsError),
    /// The watermarks violate `0 < low <= high <= 100`.
    Watermarks {
        /// The low watermark in percent.
        low: u8,
        /// The high watermark in percent.
        high: u8,
    },
}

impl fmt::Display for SchemeSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Watermarks { low, high } => {
                write!(
                    f,
                    "watermarks {low} and {high} do not fit; they must be \
                     0 < low <= high <= 100 percent"
                )
            }
        }
    }
}

impl std::error::Error for SchemeSettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_that_contradict_each_other_are_refused() {
        let sound = SchemeSettings::with_size(1 << 20);
        assert_eq!(sound.validate(), Ok(()));
        let reversed = SchemeSettings { low_watermark: 96, ..sound };
        let error = SchemeSettingsError::Watermarks { low: 96, high: 95 };
        assert_eq!(reversed.validate(), Err(error));
    }
}
