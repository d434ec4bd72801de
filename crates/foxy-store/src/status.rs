//! The status of a store: whether it serves requests, and if not, why. The scheme writes the
//! status, and any thread can read it.

use crate::contract::{AbsentReason, RefusedReason};
use foxy_device::IoError;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The abilities of a store at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreStatus {
    /// The store is being opened. No request succeeds yet.
    #[default]
    Opening,
    /// The index is being rebuilt. A get finds only records that are already in the index. Puts are
    /// refused.
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
        /// Byte offset of the first byte of that data.
        at: u64,
    },
    /// The path leads to a link, directory or pipe instead of a file.
    NotAFile,
    /// The directories of a store with one file per record exist, but the store's ledger is
    /// missing.
    ForeignFolders,
    /// The store has another format version.
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
                "the file is not a foxy store and is left alone; move it away or choose another store path",
            ),
            Self::ForeignDevice { at } => write!(
                f,
                "the device holds something that is not a foxy store, at byte {at}, and is left alone; link another device, or \
                 if what is on it may go, make its first 16 MiB and its last 1 MiB zeros yourself: wipefs --all DEVICE && \
                 blkdiscard --zeroout --length 16MiB DEVICE && \
                 blkdiscard --zeroout --offset $(($(blockdev --getsize64 DEVICE) - 1048576)) DEVICE"
            ),
            Self::ForeignFolders => f.write_str(
                "there are folders with the names of a store's, without its ledger; they are left alone; move them \
                 away or choose another store path",
            ),
            Self::NotAFile => f.write_str(
                "a link, folder, pipe or the like is where the store's file should be; it is left alone; move it away \
                 or choose another store path",
            ),
            Self::OtherVersion { found, expected } => write!(
                f,
                "the store has format version {found}, this program uses {expected}; to start anew move its file away, or \
                 erase its device"
            ),
            Self::Truncated { found, expected } => write!(
                f,
                "the store has {found} bytes of {expected}: it was cut short, and is left alone; put it back whole, or to start \
                 anew move its file away, or erase its device"
            ),
            Self::ImpossibleSize(size) => write!(
                f,
                "the superblock says a size of {size} bytes, which no store has, and is left alone; to start anew move its file \
                 away, or erase its device"
            ),
            Self::NoSpace => f.write_str(
                "there is no room for the store that is asked for, or for even the smallest; free some space, give a smaller --size, or \
                 link a larger device",
            ),
            Self::Device(IoError::LargeBlocks) => f.write_str(
                "the device's logical blocks are larger than the 4096 bytes that a store writes as a whole; link one with \
                 smaller blocks",
            ),
            Self::Device(IoError::ReadOnlyDevice) => f.write_str(
                "the device is read-only; if it is not meant to be, make it writable (blockdev --setrw DEVICE), or link another \
                 one",
            ),
            Self::Device(error) => {
                write!(
                    f,
                    "the device failed while the store was opened: {error}; check the disk and its permissions"
                )
            }
        }
    }
}

impl std::error::Error for OpenStoreError {}

impl OpenStoreError {
    /// Returns the error to report if the file with the superblock could not be opened.
    pub const fn opening(error: IoError) -> Self {
        match error {
            IoError::WrongKind => Self::NotAFile,
            other => Self::Device(other),
        }
    }

    /// Returns whether the error is about the file with the superblock.
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
    /// Returns the reason to give for a get, and the reason for a put or removal.
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
    /// The current status.
    pub fn get(&self) -> StoreStatus {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the status.
    pub fn set(&self, status: StoreStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}
