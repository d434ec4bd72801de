//! The storage seam: operations and completions as plain data, and the trait of whoever carries
//! them out. No operation is carried out here.

use crate::buffer::IoBuffer;
use foxy_base::Instant;
use rustix::io::Errno;
use std::fmt;

/// Names one submitted operation until its completion; chosen by the submitter, never reused while
/// in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId(pub u64);

/// Names an open file; chosen by the submitter at `Open` or `Create`, free again after `Close` is
/// done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A path inside the device's root: relative, `/`-separated, without empty, `.` or `..` components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePath(String);

impl StorePath {
    /// Takes a path the program itself made.
    ///
    /// # Panics
    /// When a component is empty, `.` or `..`: our own names never are.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        let path = path.into();
        let sound = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        assert!(sound, "store path {path:?} must be relative and plain");
        Self(path)
    }

    /// The device's root directory itself; valid only for `List`.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The path as text; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that holds the path's last component; the root holds itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.into()))
    }
}

/// One piece of disk work. Offsets and lengths are in bytes.
#[derive(Debug)]
pub enum IoOp {
    /// Opens an existing file for reading and writing; gives [`IoOutput::Opened`].
    Open {
        /// The name it gets.
        file: FileId,
        /// Where it is.
        path: StorePath,
    },
    /// Opens the block device that is at the path, or that a symbolic link there leads to, in place
    /// of a file; gives [`IoOutput::Opened`]. It keeps its size: what is written beyond is an
    /// error, and a `Trim` of it does nothing.
    OpenBlockDevice {
        /// The name it gets.
        file: FileId,
        /// Where it is.
        path: StorePath,
    },
    /// Creates a file, or truncates the one there is, and gives it `size` bytes that read as zero.
    /// Volatile, its name and size included, until a `Sync` of the file is done.
    Create {
        /// The name it gets.
        file: FileId,
        /// Where it will be.
        path: StorePath,
        /// Bytes to preallocate; 0 for none.
        size: u64,
    },
    /// Lets go of a file. Operations on it still in flight finish first.
    Close {
        /// Which.
        file: FileId,
    },
    /// Reads `buffer.len()` bytes; fewer are given only at the end of the file (or by a faulty
    /// device).
    Read {
        /// Which file.
        file: FileId,
        /// From where.
        offset: u64,
        /// Filled from its start, and handed back in the completion.
        buffer: IoBuffer,
    },
    /// Writes all of `buffer`; volatile until a later `Sync` of the file is done.
    Write {
        /// Which file.
        file: FileId,
        /// To where.
        offset: u64,
        /// The bytes; handed back in the completion.
        buffer: IoBuffer,
    },
    /// Makes every write completed before this was submitted durable (fdatasync), and the file's
    /// size and name.
    Sync {
        /// Which file.
        file: FileId,
    },
    /// Removes a file by name; who has it open keeps it. The name may come back after a crash, with
    /// what was durable.
    Remove {
        /// Where it is.
        path: StorePath,
    },
    /// Makes one directory, durably; one that exists is no error.
    MakeDir {
        /// Where; its parent must exist.
        path: StorePath,
    },
    /// Lists one directory; gives [`IoOutput::Listing`].
    List {
        /// Which directory.
        path: StorePath,
    },
    /// Tells the device that a range's content is no longer needed; it reads as zero or as before.
    Trim {
        /// Which file.
        file: FileId,
        /// From where.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
}

/// One entry of a listed directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// Its name within the directory.
    pub name: String,
    /// Whether it is a directory itself.
    pub is_directory: bool,
    /// Size in bytes; 0 for directories.
    pub size: u64,
}

/// What a finished operation gave.
#[derive(Debug, PartialEq, Eq)]
pub enum IoOutput {
    /// Nothing but success: `Create`, `Close`, `Sync`, `Remove`, `MakeDir`, `Trim`.
    Done,
    /// An opened file and its size in bytes.
    Opened {
        /// Size at the time of opening.
        size: u64,
    },
    /// How many bytes a `Read` or `Write` moved. Fewer than asked is for the submitter to treat as
    /// a failure.
    Moved {
        /// Bytes, counted from the buffer's start.
        count: usize,
    },
    /// A directory's entries, sorted by name.
    Listing(Vec<DirectoryEntry>),
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoError {
    /// No such file or directory.
    NotFound,
    /// The disk or quota is full (ENOSPC, EDQUOT).
    NoSpace,
    /// The device could not read or write the sector (EIO).
    Device,
    /// This user may not (EACCES, EPERM).
    Denied,
    /// The file system is mounted read-only (EROFS).
    ReadOnly,
    /// The block device is read-only.
    ReadOnlyDevice,
    /// Another process has locked the file.
    InUse,
    /// A link, folder, pipe or the like is where a file should be, or something else where a folder
    /// should be (ELOOP, EISDIR, ENOTDIR, ENXIO).
    WrongKind,
    /// The block device has logical blocks of more than 4096 bytes.
    LargeBlocks,
    /// The block device has no bytes: nothing is attached to it, or no medium is in it (ENOMEDIUM).
    NoMedium,
    /// The process or system has no descriptor, memory or queue entry left; trying later can help.
    Exhausted,
    /// The file id is not open: a mistake of the submitter's, or its `Open` failed.
    NotOpen,
    /// Anything else, with the system's error number.
    Other(i32),
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::NoSpace => f.write_str("no space left"),
            Self::Device => f.write_str("device error (EIO)"),
            Self::Denied => f.write_str("permission denied"),
            Self::ReadOnly => f.write_str("the file system is read-only"),
            Self::ReadOnlyDevice => f.write_str("the device is read-only"),
            Self::InUse => f.write_str("in use by another process"),
            Self::WrongKind => f.write_str(
                "a link, folder or pipe where a file should be, or no folder where one should be",
            ),
            Self::LargeBlocks => f.write_str("its logical blocks are larger than 4096 bytes"),
            Self::NoMedium => f.write_str(
                "a block device of 0 bytes: nothing is attached to it, or no medium is in it",
            ),
            Self::Exhausted => f.write_str("out of descriptors or memory"),
            Self::NotOpen => f.write_str("file not open"),
            Self::Other(number) => write!(f, "{}", std::io::Error::from_raw_os_error(*number)),
        }
    }
}

impl std::error::Error for IoError {}

/// The end of a range of a file.
///
/// # Errors
/// EINVAL, as pread and pwrite have it, when it lies beyond 2^63 - 1.
pub(crate) fn range_end(offset: u64, length: u64) -> Result<u64, IoError> {
    let end = offset.checked_add(length).filter(|&end| i64::try_from(end).is_ok());
    end.ok_or_else(|| Errno::INVAL.into())
}

/// A completion. It owns the operation's buffer: dropping a request frees nothing in flight.
#[derive(Debug)]
pub struct IoDone {
    /// Which operation.
    pub id: IoId,
    /// What came of it.
    pub result: Result<IoOutput, IoError>,
    /// The buffer of a `Read` or `Write`, failed or not.
    pub buffer: Option<IoBuffer>,
}

/// Who carries operations out. One shard owns one device; nothing is shared.
///
/// Order: operations may finish in any order, but an operation sees the effect of those *completed*
/// before it was submitted. A submitter that needs order waits.
pub trait Device {
    /// Starts `op`. Every submitted operation is reaped exactly once.
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant);

    /// Moves what has finished into `done`; never blocks. A device may hold submissions back until
    /// `reap` or [`crate::BlockingDevice::wait`], so that one system call starts them all: call one
    /// of them after submitting.
    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>);

    /// When a modelled device will next have something to reap. A real one answers `None` and calls
    /// its waker.
    fn next_completion(&self) -> Option<Instant>;

    /// Operations submitted and not yet reaped.
    fn in_flight(&self) -> usize;

    /// How often what carries operations out was started again, where that can die.
    fn restarts(&self) -> u64 {
        0
    }
}
