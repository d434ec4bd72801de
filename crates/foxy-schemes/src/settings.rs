//! Settings that only some schemes use, in addition to the settings of every store.

use crate::policy::{Policy, PolicyName, PolicySettings};
use crate::slotted::BufferChoice;
use foxy_store::{SettingsError, StoreSettings};
use std::fmt;

/// How file numbers are spread over two levels of directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// Like Squid 1.1: the first level is the number modulo 16, so consecutive numbers are in
    /// different directories.
    RoundRobin,
    /// Like Squid since 1998: 256 consecutive numbers share a directory.
    #[default]
    Consecutive,
}

/// When records are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsReclaim {
    /// When a put would exceed the high watermark, until the low watermark is reached (R50).
    #[default]
    AtOnce,
    /// Every second while above the low watermark, more records the fuller the store is, like
    /// Squid's `UFSSwapDir::maintain` (R70). The size stays a hard limit. Squid may exceed it until
    /// the next second, but here a put evicts as much as it needs.
    EverySecond,
}

/// Settings of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeSettings {
    /// Settings of every store.
    pub store: StoreSettings,
    /// The replacement policy (R71, R74).
    pub policy: PolicyName,
    /// How files are spread over directories in the scheme `ufs` (R18).
    pub ufs_mapping: UfsMapping,
    /// When records are evicted in the scheme `ufs` (R50, R70).
    pub ufs_reclaim: UfsReclaim,
    /// With this many operations in flight, the scheme `aufs` opens no more files (R63).
    pub aufs_queue: usize,
    /// With this many operations in flight, the scheme `diskd` opens no more files: Squid's Q1
    /// (R64).
    pub diskd_q1: usize,
    /// Largest record that shares a file in the scheme `buddy`, in slots of 512 bytes (R20, R21).
    pub buddy_threshold: u32,
    /// Number of buffers, each of 64 KiB, in which the scheme `lazy-reads-loc` collects records by
    /// origin server (R28).
    pub locality_buffers: u16,
    /// Which buffer to empty when another server needs a buffer (R29).
    pub locality_choice: BufferChoice,
    /// Most bytes that a read prefetches from the following records of the same origin server
    /// (R36). 0 disables prefetching. Only schemes that group records by origin server use it.
    /// Memory stores at most sixteen times as much.
    pub prefetch: usize,
    /// Percentage of used space at which eviction starts (R50).
    pub high_watermark: u8,
    /// Percentage of used space at which eviction ends (R50).
    pub low_watermark: u8,
}

impl SchemeSettings {
    /// Recommended settings for a store of `size` bytes.
    pub fn with_size(size: u64) -> Self {
        StoreSettings::with_size(size).into()
    }

    /// Creates an empty policy for this store.
    pub fn make_policy(&self) -> Box<dyn Policy> {
        let capacity = self.store.size / 100 * u64::from(self.high_watermark);
        self.policy.make(&PolicySettings { capacity, object_limit: self.store.object_limit })
    }

    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// The first setting that does not fit.
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
            high_watermark: 95,
            low_watermark: 90,
        }
    }
}

/// Why settings contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeSettingsError {
    /// A setting that every store has is invalid.
    Store(SettingsError),
    /// The watermarks are not `0 < low <= high <= 100`.
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
