//! Settings that only some schemes read, besides the settings of every store.

use crate::policy::{Policy, PolicyName, PolicySettings};
use crate::slotted::BufferChoice;
use foxy_store::{SettingsError, StoreSettings};
use std::fmt;

/// The spread of file numbers over two levels of directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// As Squid 1.1: the first level is the number modulo 16, so neighbours lie in different
    /// directories.
    RoundRobin,
    /// As Squid since 1998: 256 consecutive numbers share a directory.
    #[default]
    Consecutive,
}

/// The time of evictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsReclaim {
    /// When a put would pass the high watermark, down to the low one (R50).
    #[default]
    AtOnce,
    /// Every second above the low watermark, more the fuller the store is, as Squid's
    /// `UFSSwapDir::maintain` (R70). The size stays a limit: Squid may pass it until the next
    /// second, a put here evicts what it needs.
    EverySecond,
}

/// Settings of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeSettings {
    /// Settings of every store.
    pub store: StoreSettings,
    /// The replacement policy (R71, R74).
    pub policy: PolicyName,
    /// The spread of files over directories in the scheme `ufs` (R18).
    pub ufs_mapping: UfsMapping,
    /// The time of evictions in the scheme `ufs` (R50, R70).
    pub ufs_reclaim: UfsReclaim,
    /// Operations in flight at which the scheme `aufs` opens no more files (R63).
    pub aufs_queue: usize,
    /// Operations in flight at which the scheme `diskd` opens no more files: Squid's Q1 (R64).
    pub diskd_q1: usize,
    /// Largest record, in slots of 512 bytes, that shares a file in the scheme `buddy` (R20, R21).
    pub buddy_threshold: u32,
    /// Number of buffers of 64 KiB in which the scheme `lazy-reads-loc` gathers records by origin
    /// server (R28).
    pub locality_buffers: u16,
    /// The buffer to empty when a server needs one (R29).
    pub locality_choice: BufferChoice,
    /// Bytes of the same origin server's next records that a read prefetches, in schemes that
    /// gather records by origin server (R36); 0 for none. Memory holds at most sixteen times as
    /// much.
    pub prefetch: usize,
    /// Percentage of used space at which eviction begins (R50).
    pub high_watermark: u8,
    /// Percentage of used space at which eviction ends (R50).
    pub low_watermark: u8,
}

impl SchemeSettings {
    /// Default settings for a store of `size` bytes.
    pub fn with_size(size: u64) -> Self {
        StoreSettings::with_size(size).into()
    }

    /// An empty policy for this store.
    pub fn make_policy(&self) -> Box<dyn Policy> {
        let capacity = self.store.size / 100 * u64::from(self.high_watermark);
        self.policy.make(&PolicySettings { capacity, object_limit: self.store.object_limit })
    }

    /// Checks that the settings fit together; returns the first that does not.
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

/// Contradictory settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeSettingsError {
    /// The settings of every store.
    Store(SettingsError),
    /// Not `0 < low <= high <= 100`.
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
