//! Settings that only some schemes use. Every store also has [`StoreSettings`].

use crate::policy::{Policy, PolicyName, PolicySettings};
use crate::slotted::BufferChoice;
use foxy_store::{SettingsError, StoreSettings};
use std::fmt;
use std::time::Duration;

/// Decides how file numbers are spread over two levels of directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// Uses the rule of Squid 1.1. The number modulo 16 selects the first level, so consecutive
    /// numbers are in different directories.
    RoundRobin,
    /// Uses the rule of Squid since 1998. Groups of 256 consecutive numbers share a directory.
    #[default]
    Consecutive,
}

/// Decides when records are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsReclaim {
    /// Evicts records at a put that would exceed the high watermark. Eviction stops at the low
    /// watermark (requirement R50).
    #[default]
    AtOnce,
    /// Evicts records every second while the store is above the low watermark, like Squid's
    /// `UFSSwapDir::maintain` (requirement R70). The fuller the store, the more records are
    /// evicted. The size stays a hard limit: a put evicts enough records to stay within it. Squid
    /// may exceed the limit until the next second.
    EverySecond,
}

/// Settings of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeSettings {
    /// The settings that every store has.
    pub store: StoreSettings,
    /// The replacement policy (requirements R71, R74).
    pub policy: PolicyName,
    /// How the scheme `ufs` spreads files over directories (requirement R18).
    pub ufs_mapping: UfsMapping,
    /// When the scheme `ufs` evicts records (requirements R50, R70).
    pub ufs_reclaim: UfsReclaim,
    /// Number of operations in flight at which the scheme `aufs` opens no more files (requirement
    /// R63).
    pub aufs_queue: usize,
    /// Number of operations in flight at which the scheme `diskd` opens no more files. Squid calls
    /// this limit Q1 (requirement R64).
    pub diskd_q1: usize,
    /// Maximum size of a record that shares a file in the scheme `buddy`, in slots of 512 bytes
    /// (requirements R20, R21).
    pub buddy_threshold: u32,
    /// Number of buffers of 64 KiB each. The scheme `lazy-reads-loc` uses them to collect records
    /// by origin server (requirement R28).
    pub locality_buffers: u16,
    /// Selects the buffer to empty when a further origin server needs a buffer (requirement R29).
    pub locality_choice: BufferChoice,
    /// Maximum number of bytes that a read prefetches from the following records of the same origin
    /// server (requirement R36). 0 disables prefetching. Only schemes that group records by origin
    /// server prefetch. Prefetched records in memory take at most sixteen times this limit.
    pub prefetch: usize,
    /// Number of reads that the schemes `lazy-reads` and `lazy-reads-loc` collect, sort and start
    /// together (requirement R26).
    pub read_batch: usize,
    /// Time after which these schemes start a batch that is not full (requirements R26, R27).
    pub read_patience: Duration,
    /// Percentage of used space at which eviction starts (requirement R50).
    pub high_watermark: u8,
    /// Percentage of used space at which eviction ends (requirement R50).
    pub low_watermark: u8,
}

impl SchemeSettings {
    /// Returns the recommended settings for a store of `size` bytes.
    pub fn with_size(size: u64) -> Self {
        StoreSettings::with_size(size).into()
    }

    /// Creates an empty policy with these settings.
    pub fn make_policy(&self) -> Box<dyn Policy> {
        let capacity = self.store.size / 100 * u64::from(self.high_watermark);
        self.policy.make(&PolicySettings { capacity, object_limit: self.store.object_limit })
    }

    /// Checks that the settings fit together.
    ///
    /// # Errors Returns an error for the first setting that does not fit.
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
