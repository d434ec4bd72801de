//! What a store of one file lies in: the file, or a block device in its place. It says how the two differ, and opens neither.

use crate::status::OpenStoreError;

/// Bytes at the beginning of a block device that must be blank for a store to be begun on it. Whatever is known to lie on disks
/// (partition tables, file systems, volumes, swap) begins far before the end of that; reading all of a disk would take hours.
const BLANK_DEVICE: u64 = 16 << 20;

/// What the superblocks lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// A file, made by its store.
    #[default]
    File,
    /// A block device, which is as large as it is.
    BlockDevice,
}

impl Medium {
    /// Of that many bytes that begin with zeros, how many must be blank for there to be nothing.
    #[must_use]
    pub fn blank(self, size: u64) -> u64 {
        match self {
            Self::File => size,
            Self::BlockDevice => size.min(BLANK_DEVICE),
        }
    }

    /// What is said where something else is there.
    #[must_use]
    pub const fn foreign(self) -> OpenStoreError {
        match self {
            Self::File => OpenStoreError::Foreign,
            Self::BlockDevice => OpenStoreError::ForeignDevice,
        }
    }
}
