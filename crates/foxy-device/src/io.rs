//! The interface between the store and a disk: operations and their results as plain data, and the
//! `Device` trait that performs operations.

use crate::buffer::IoBuffer;
use foxy_base::Instant;
use rustix::io::Errno;
use std::fmt;

/// Identifies an operation from its submission until the submitter takes the result with `reap`.
/// The submitter chooses the number, and does not reuse it while the operation is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId(pub u64);

/// Identifies an open file. The submitter chooses the number for `Open` or `Create`, and may reuse
/// it after `Close` finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A path relative to the device's root directory: `/`-separated, without empty, `.` or `..`
/// components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePath(String);

impl StorePath {
    /// Wraps a path that the program itself built.
    ///
    /// # Panics
    /// Panics if a component is empty, `.` or `..`.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        let path = path.into();
        let sound = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        assert!(sound, "store path {path:?} must be relative and plain");
        Self(path)
    }

    /// Returns the path of the device's root directory. Only `List` accepts this path.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Returns the path as text. The text of the root is empty.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory that contains the last component. The root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.into()))
    }
}

/// An operation. Offsets and lengths are in bytes.
#[derive(Debug)]
pub enum IoOp {
    /// Opens an existing file for reading and writing. Returns [`IoOutput::Opened`].
    Open {
        /// The number by which later operations name the open file.
        file: FileId,
        /// The path of the file to open.
        path: StorePath,
    },
    /// Opens the block device at the path. If the path is a symbolic link, opens its target.
    /// Returns [`IoOutput::Opened`]. A block device has a fixed size: a write beyond its end fails.
    /// A `Trim` of a block device does nothing.
    OpenBlockDevice {
        /// The number by which later operations name the open device.
        file: FileId,
        /// The path of the block device, or of a symbolic link to it.
        path: StorePath,
    },
    /// Creates a file or truncates an existing file. The file then has `size` bytes, which read as
    /// zero. A crash may lose content, name and size until a `Sync` of the file finishes.
    Create {
        /// The number by which later operations name the open file.
        file: FileId,
        /// The path of the file to create.
        path: StorePath,
        /// Number of bytes to preallocate; 0 preallocates nothing.
        size: u64,
    },
    /// Closes a file. Operations that are in flight on the file finish first.
    Close {
        /// The file to close.
        file: FileId,
    },
    /// Reads `buffer.len()` bytes. A shorter result means the end of the file or a faulty device.
    Read {
        /// The file to read.
        file: FileId,
        /// Position of the first byte to read, counted from the start of the file.
        offset: u64,
        /// The memory that receives the bytes. The result returns the buffer.
        buffer: IoBuffer,
    },
    /// Writes all bytes of `buffer`. A crash may lose the bytes until a `Sync` of the file finishes
    /// that was submitted after this write had finished.
    Write {
        /// The file to write.
        file: FileId,
        /// Position of the first byte to write, counted from the start of the file.
        offset: u64,
        /// The bytes to write. The result returns the buffer.
        buffer: IoBuffer,
    },
    /// Makes the file's size and name durable (fdatasync). Also makes all writes durable that
    /// finished before this `Sync` was submitted.
    Sync {
        /// The file to sync.
        file: FileId,
    },
    /// Removes the name of a file. Processes that have the file open can still use it. After a
    /// crash the name may exist again, with the file's durable content.
    Remove {
        /// The path of the file to remove.
        path: StorePath,
    },
    /// Creates a directory durably. Succeeds if the directory already exists.
    MakeDir {
        /// The path of the directory. The parent directory must exist.
        path: StorePath,
    },
    /// Lists one directory. Returns [`IoOutput::Listing`].
    List {
        /// The path of the directory to list.
        path: StorePath,
    },
    /// States that a range of the file is no longer needed. Afterwards the range reads as zero or
    /// as its old content.
    Trim {
        /// The file that contains the range to trim.
        file: FileId,
        /// Start of the range, in bytes from the start of the file.
        offset: u64,
        /// Length of the range in bytes.
        length: u64,
    },
}

impl IoOp {
    /// Returns the open file that a `Read`, `Write`, `Sync` or `Trim` uses. Other operations return
    /// `None`.
    pub(crate) const fn open_file(&self) -> Option<FileId> {
        match *self {
            Self::Read { file, .. }
            | Self::Write { file, .. }
            | Self::Sync { file }
            | Self::Trim { file, .. } => Some(file),
            _ => None,
        }
    }

    pub(crate) fn into_buffer(self) -> Option<IoBuffer> {
        match self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => Some(buffer),
            _ => None,
        }
    }
}

/// An entry of a directory that `List` returned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// The name of the entry, without the directory's path.
    pub name: String,
    /// Whether the entry is a directory (not a regular file).
    pub is_directory: bool,
    /// Size of the file in bytes; 0 for directories.
    pub size: u64,
}

/// Result of a successful operation.
#[derive(Debug, PartialEq, Eq)]
pub enum IoOutput {
    /// Success of a `Create`, `Close`, `Sync`, `Remove`, `MakeDir` or `Trim`.
    Done,
    /// Success of an `Open` or `OpenBlockDevice`.
    Opened {
        /// Size in bytes of the opened file or device.
        size: u64,
    },
    /// A `Read` or `Write` transferred `count` bytes. If `count` is smaller than requested, the
    /// submitter treats the operation as failed.
    Moved {
        /// Number of bytes transferred, counted from the start of the buffer.
        count: usize,
    },
    /// The entries of the directory that a `List` read, sorted by name.
    Listing(Vec<DirectoryEntry>),
}

/// Reason why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoError {
    /// The file or directory does not exist (ENOENT).
    NotFound,
    /// The disk or quota is full (ENOSPC, EDQUOT).
    NoSpace,
    /// The device could not read or write a sector (EIO).
    Device,
    /// This user has no permission for the operation (EACCES, EPERM).
    Denied,
    /// The file system is mounted read-only (EROFS).
    ReadOnly,
    /// The block device is read-only.
    ReadOnlyDevice,
    /// Another process has locked the file.
    InUse,
    /// The path leads to the wrong kind of file, such as a link, folder or pipe (ELOOP, EISDIR,
    /// ENOTDIR, ENXIO).
    WrongKind,
    /// The logical blocks of the block device are larger than 4096 bytes.
    LargeBlocks,
    /// The size of the block device is 0 bytes: no device is attached, or the drive is empty
    /// (ENOMEDIUM).
    NoMedium,
    /// The process or system has no free descriptor, memory or queue entry. A later attempt may
    /// succeed.
    Exhausted,
    /// The operation names a file that is not open.
    NotOpen,
    /// Any other error, as the system's error number.
    Other(i32),
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::NoSpace => f.write_str("the disk has no space left"),
            Self::Device => f.write_str("device error (EIO)"),
            Self::Denied => f.write_str("permission denied"),
            Self::ReadOnly => f.write_str("the file system is read-only"),
            Self::ReadOnlyDevice => f.write_str("the device is read-only"),
            Self::InUse => f.write_str("another process uses the file"),
            Self::WrongKind => f.write_str(
                "the path is a link, folder or pipe instead of a file, or a part of it is not a \
                 folder",
            ),
            Self::LargeBlocks => {
                f.write_str("the device's logical blocks are larger than 4096 bytes")
            }
            Self::NoMedium => f.write_str(
                "a block device of 0 bytes: no disk is attached, or no medium is inserted",
            ),
            Self::Exhausted => f.write_str("the process has no free file descriptors or memory"),
            Self::NotOpen => f.write_str("the file is not open"),
            Self::Other(number) => write!(f, "{}", std::io::Error::from_raw_os_error(*number)),
        }
    }
}

impl std::error::Error for IoError {}

/// Returns the end of a range in a file. Returns EINVAL for an end beyond 2^63 - 1, like pread and
/// pwrite.
pub(crate) fn range_end(offset: u64, length: u64) -> Result<u64, IoError> {
    let end = offset.checked_add(length).filter(|&end| i64::try_from(end).is_ok());
    end.ok_or_else(|| Errno::INVAL.into())
}

/// The result of an operation, with the operation's buffer. The device owns the buffer until it
/// returns this value. So a submitter that forgets a request frees no memory that the device still
/// uses.
#[derive(Debug)]
pub struct IoDone {
    /// The number of the operation, as the submitter chose it.
    pub id: IoId,
    /// The result of the operation, or the error that ended it.
    pub result: Result<IoOutput, IoError>,
    /// The buffer of a `Read` or `Write`, even if it failed.
    pub buffer: Option<IoBuffer>,
}

/// Performs disk operations. Each shard (a store with its own thread) has its own device, so shards
/// share no device state.
///
/// Operations may finish in any order. An operation sees the effects of all operations that
/// *finished* before it was submitted. If the order of two operations matters, the submitter waits
/// for the first result before it submits the second operation.
pub trait Device {
    /// Starts `op`. The device returns the result of every submitted operation exactly once.
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant);

    /// Moves finished operations into `done` without blocking. A device may delay submitted
    /// operations until the next `reap` or [`crate::BlockingDevice::wait`]. Then it starts all of
    /// them with one system call. So the thread that uses the device must call `reap` or `wait`
    /// after `submit`.
    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>);

    /// Returns the simulated time at which a simulated device has its next result. A real device
    /// returns `None`, and wakes its owner's thread when a result is ready.
    fn next_completion(&self) -> Option<Instant>;

    /// Returns the number of operations that were submitted and whose results were not reaped yet.
    fn in_flight(&self) -> usize;

    /// Returns how many times the device replaced a dead helper process. Only [`crate::Helper`] has
    /// a helper process.
    fn restarts(&self) -> u64 {
        0
    }
}

impl From<Errno> for IoError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::IO => Self::Device,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::ROFS => Self::ReadOnly,
            Errno::LOOP | Errno::ISDIR | Errno::NOTDIR | Errno::NXIO => Self::WrongKind,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Self::Exhausted,
            Errno::NOMEDIUM => Self::NoMedium,
            Errno::BADF => Self::NotOpen,
            other => Self::Other(other.raw_os_error()),
        }
    }
}

/// The kind of an operation, for counts and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// The kind of [`IoOp::Open`].
    Open,
    /// The kind of [`IoOp::OpenBlockDevice`].
    OpenBlockDevice,
    /// The kind of [`IoOp::Create`].
    Create,
    /// The kind of [`IoOp::Close`].
    Close,
    /// The kind of [`IoOp::Read`].
    Read,
    /// The kind of [`IoOp::Write`].
    Write,
    /// The kind of [`IoOp::Sync`].
    Sync,
    /// The kind of [`IoOp::Remove`].
    Remove,
    /// The kind of [`IoOp::MakeDir`].
    MakeDir,
    /// The kind of [`IoOp::List`].
    List,
    /// The kind of [`IoOp::Trim`].
    Trim,
}

impl OpKind {
    /// All kinds of operations.
    pub const ALL: [Self; 11] = [
        Self::Open,
        Self::OpenBlockDevice,
        Self::Create,
        Self::Close,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Remove,
        Self::MakeDir,
        Self::List,
        Self::Trim,
    ];

    /// Returns the kind of `op`.
    #[must_use]
    pub const fn of(op: &IoOp) -> Self {
        match op {
            IoOp::Open { .. } => Self::Open,
            IoOp::OpenBlockDevice { .. } => Self::OpenBlockDevice,
            IoOp::Create { .. } => Self::Create,
            IoOp::Close { .. } => Self::Close,
            IoOp::Read { .. } => Self::Read,
            IoOp::Write { .. } => Self::Write,
            IoOp::Sync { .. } => Self::Sync,
            IoOp::Remove { .. } => Self::Remove,
            IoOp::MakeDir { .. } => Self::MakeDir,
            IoOp::List { .. } => Self::List,
            IoOp::Trim { .. } => Self::Trim,
        }
    }

    /// Returns the operation's name in trace records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::OpenBlockDevice => "open-block-device",
            Self::Create => "create",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Remove => "remove",
            Self::MakeDir => "make-directory",
            Self::List => "list",
            Self::Trim => "trim",
        }
    }
}
