//! The status of a store: whether it serves requests, and if not, why. The storage scheme writes
//! the status, and any thread can read it.

use crate::contract::{AbsentReason, RefusedReason};
use foxy_device::IoError;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The current status of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreStatus {
    /// The store is being opened. No request succeeds yet.
    #[default]
    Opening,
    /// The store is rebuilding its index. A get finds only records that are already in the index.
    /// Puts are refused.
    Rebuilding,
    /// Gets, puts and removals are served.
    Serving,
    /// The store cannot be used.
    Unusable(OpenStoreError),
    /// The store was closed on request.
    Closed,
    /// The shard's thread panicked. All requests are answered as closed.
    Panicked,
}

/// The reason why a store cannot be opened. A failed opening never overwrites a file that is no
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenStoreError {
    /// The file is not a store.
    Foreign,
    /// The start or the end of the block device contains data that is not from foxy.
    ForeignDevice {
        /// Byte offset on the device of the first byte that is not from foxy.
        at: u64,
    },
    /// The path leads to a link, directory or pipe instead of a file.
    NotAFile,
    /// The directories of a store with one file per record exist, but the file that describes the
    /// store (the ledger) is missing.
    ForeignFolders,
    /// The store has another format version than this program.
    OtherVersion {
        /// The format version of the store.
        found: u32,
        /// The format version of this program.
        expected: u32,
    },
    /// The superblock states a size in bytes that no store can have.
    ImpossibleSize(u64),
    /// The file is shorter than its superblock states.
    Truncated {
        /// Actual length of the file in bytes.
        found: u64,
        /// Length in bytes that the superblock states.
        expected: u64,
    },
    /// The disk has too little free space.
    NoSpace,
    /// The device failed.
    Device(IoError),
}

impl fmt::Display for OpenStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(
                "the file is not a foxy store, and foxy does not change it; move the file away or \
                 choose another store path",
            ),
            Self::ForeignDevice { at } => write!(
                f,
                "the device holds data of another program at byte {at}, and foxy does not change \
                 it; link another device, or if this data may be lost, fill the first 16 MiB and \
                 the last 1 MiB with zeros: wipefs --all DEVICE && blkdiscard --zeroout --length \
                 16MiB DEVICE && blkdiscard --zeroout --offset $(($(blockdev --getsize64 DEVICE) - \
                 1048576)) DEVICE"
            ),
            Self::ForeignFolders => f.write_str(
                "the folder contains subfolders with the names of a store's subfolders, but lacks \
                 the store's file foxy-ufs-ledger; foxy does not change the subfolders; move them \
                 away or choose another store path",
            ),
            Self::NotAFile => f.write_str(
                "a link, folder or pipe has the name of the store's file, and foxy does not change \
                 it; move it away or choose another store path",
            ),
            Self::OtherVersion { found, expected } => write!(
                f,
                "the store has format version {found}, but this foxy reads only version \
                 {expected}; to start with an empty store, move the store's file away, or erase \
                 its device"
            ),
            Self::Truncated { found, expected } => write!(
                f,
                "the store has only {found} of its {expected} bytes, and foxy does not change it; \
                 restore the complete file, or to start with an empty store, move the file away, \
                 or erase its device"
            ),
            Self::ImpossibleSize(size) => write!(
                f,
                "the store's superblock is wrong: it states a size of {size} bytes, which no store \
                 can have; foxy does not change the store; to start with an empty store, move its \
                 file away, or erase its device"
            ),
            Self::NoSpace => f.write_str(
                "there is too little space for a store of this size, or for even the smallest \
                 store; free some space, give a smaller --size, or link a larger device",
            ),
            Self::Device(IoError::LargeBlocks) => f.write_str(
                "the device's logical blocks are larger than 4096 bytes, the most that a store \
                 supports; link a device with smaller blocks",
            ),
            Self::Device(IoError::ReadOnlyDevice) => f.write_str(
                "the device is read-only; make it writable (blockdev --setrw DEVICE), or link \
                 another device",
            ),
            Self::Device(error) => {
                write!(
                    f,
                    "the disk failed while foxy opened the store: {error}; check the disk and its \
                     permissions"
                )
            }
        }
    }
}

impl std::error::Error for OpenStoreError {}

impl OpenStoreError {
    /// Converts the error of opening the file that contains the superblock to the error to report.
    pub const fn opening(error: IoError) -> Self {
        match error {
            IoError::WrongKind => Self::NotAFile,
            other => Self::Device(other),
        }
    }

    /// Returns whether the error is about the file that contains the superblock, not about the
    /// disk.
    pub const fn is_about_the_file(&self) -> bool {
        match self {
            Self::Foreign
            | Self::ForeignDevice { .. }
            | Self::NotAFile
            | Self::OtherVersion { .. }
            | Self::ImpossibleSize(_)
            | Self::Truncated { .. }
            | Self::Device(IoError::ReadOnlyDevice) => true,
            Self::ForeignFolders | Self::NoSpace | Self::Device(_) => false,
        }
    }
}

/// The reason why a store serves no requests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unable {
    Recovering,
    Closed,
    Failed(OpenStoreError),
}

impl Unable {
    /// Returns the reason to give for refusing a get, and the reason for refusing a put or removal.
    pub const fn reasons(self) -> (AbsentReason, RefusedReason) {
        match self {
            Self::Recovering => (AbsentReason::Recovering, RefusedReason::Recovering),
            Self::Failed(OpenStoreError::Device(error)) => {
                (AbsentReason::DeviceFailed(error), RefusedReason::DeviceFailed(error))
            }
            Self::Failed(OpenStoreError::NoSpace) => (AbsentReason::Closed, RefusedReason::NoSpace),
            Self::Failed(_) | Self::Closed => (AbsentReason::Closed, RefusedReason::Closed),
        }
    }
}

/// The status of a store, shared between threads.
#[derive(Debug, Default)]
pub struct StatusCell(Mutex<StoreStatus>);

impl StatusCell {
    /// Returns the current status of the store.
    pub fn get(&self) -> StoreStatus {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the status of the store.
    pub fn set(&self, status: StoreStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}
