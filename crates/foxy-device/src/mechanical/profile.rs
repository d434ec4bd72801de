//! Parameters of a simulated disk and of the file system on it, as plain numbers with units.

use std::time::Duration;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// The order in which a disk serves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// First come, first served.
    Fifo,
    /// The next request above the head position, or else the lowest request: the one-way elevator
    /// of Solaris and BSD.
    CLook,
}

/// When changes of names and inodes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// Like the UFS of Solaris 2.6. `Create` waits for the inode block and then the directory
    /// block; `Remove` waits for the directory block. Other changes (the removed inode, times,
    /// bitmaps) are written back later.
    Synchronous,
    /// Like soft updates or `mount -o async`. All changes are written back later, and a `Sync`
    /// waits only for its own file.
    Asynchronous,
}

/// Whether reading a file changes its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTimes {
    /// Each read marks the inode block for write-back.
    Updated,
    /// `mount -o noatime`.
    Unchanged,
}

/// The operating system between a program and the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemProfile {
    /// Bytes of a page of the page cache and a block of the file system: 8192 or 4096.
    pub page_size: u32,
    /// Bytes of the page cache (LRU). Pages waiting to be written are stored in addition.
    pub page_cache: u64,
    /// Bytes of cached inode and directory blocks per disk.
    pub metadata_cache: u64,
    /// Bytes of a directory that the processor searches per second. With 0, a search takes no time.
    pub search_rate: u64,
    /// Number of cached file names (LRU). Opening such a file needs no search.
    pub name_cache: u64,
    /// When changes of names and inodes reach the disk.
    pub metadata: MetadataMode,
    /// Whether reads change inodes.
    pub access_times: AccessTimes,
    /// Bytes of consecutive writes to a file that are collected into one request. The collected
    /// bytes are written when they are full, or when a write does not follow them. `Close`, `Sync`
    /// and age also trigger the write.
    pub cluster: u64,
    /// Limit of bytes in flight to one disk. Above it, a writer waits until two thirds are left.
    /// With 0, every write waits for the disk. Solaris applies such limits per file (`ufs_HW` and
    /// `ufs_LW`).
    pub write_behind: u64,
    /// Bytes of read-ahead for sequential reads; 0 for none.
    pub read_ahead: u64,
    /// Age at which a change is written back (`autoup` of Solaris).
    pub write_back_age: Duration,
    /// Cylinders in a cylinder group.
    pub group_cylinders: u32,
    /// The file system has one inode for this many bytes of the disk.
    pub bytes_per_inode: u64,
}

impl SystemProfile {
    /// Solaris 2.6 with UFS on a Sun Ultra 1 with 384 MB, as in the reference paper (R3). The
    /// machine reads memory at 129 MB/s (McVoy and Staelin, lmbench, USENIX 1996, table 2). It
    /// caches 17 names per megabyte of memory plus 90 (`ncsize`, Sun's NFS Server Performance and
    /// Tuning Guide, table 4-5).
    #[must_use]
    pub const fn solaris() -> Self {
        Self {
            page_size: 8192,
            page_cache: 8 << 20,
            metadata_cache: 8 << 20,
            search_rate: 129_000_000,
            name_cache: 17 * 384 + 90,
            metadata: MetadataMode::Synchronous,
            access_times: AccessTimes::Updated,
            cluster: 56 << 10,
            write_behind: 384 << 10,
            read_ahead: 56 << 10,
            write_back_age: Duration::from_secs(30),
            group_cylinders: 16,
            bytes_per_inode: 2048,
        }
    }
}

/// A disk with equal tracks and no defects. It has a read-ahead buffer. A write finishes only when
/// it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// Cylinders, counted from the outside.
    pub cylinders: u32,
    /// Tracks in a cylinder.
    pub heads: u32,
    /// Sectors of [`SECTOR`] bytes on a track.
    pub sectors_per_track: u32,
    /// Turns per minute.
    pub turns_per_minute: u32,
    /// Offset of a track's first sector from that of the previous track in the cylinder, in
    /// sectors.
    pub track_skew: u32,
    /// Offset of a cylinder's first track from the last track of the previous cylinder, in sectors.
    pub cylinder_skew: u32,
    /// Time to switch to another track of the cylinder.
    pub head_switch: Duration,
    /// Seek time to the next cylinder.
    pub seek_shortest: Duration,
    /// Mean seek time between random cylinders.
    pub seek_mean: Duration,
    /// Seek time from the first cylinder to the last.
    pub seek_longest: Duration,
    /// Up to this distance in cylinders, the seek time grows with the square root. Beyond it, the
    /// time grows linearly.
    pub seek_bend: u32,
    /// Time from a request's arrival to the first movement. It overlaps with the time in the queue.
    pub controller_overhead: Duration,
    /// Segments of the disk's buffer; 0 for none.
    pub buffer_segments: u32,
    /// Number of sectors in a segment. An idle read-ahead reads at most as many.
    pub buffer_segment_sectors: u64,
    /// Bytes per second between the disk's buffer and the computer.
    pub bus_rate: u64,
    /// The order in which the disk serves its queue.
    pub scheduling: Scheduling,
    /// The operating system.
    pub system: SystemProfile,
}

impl DiskProfile {
    /// The Seagate ST15150W of the reference paper (R3): 4 GB, 7,200 turns per minute, 9 ms mean
    /// seek. The sectors per track give the paper's 4.7 MB/s over the whole disk. The real disk has
    /// more sectors on outer tracks than on inner tracks.
    ///
    /// All other values are assumptions that were typical for such disks. The shortest seek takes
    /// 1.1 ms, the longest 19 ms, and a head switch 1 ms. The buffer has 1 MB and the bus moves 20
    /// MB/s.
    #[must_use]
    pub const fn st15150w() -> Self {
        Self {
            cylinders: 4645,
            heads: 21,
            sectors_per_track: 86,
            turns_per_minute: 7200,
            track_skew: 11,
            cylinder_skew: 12,
            head_switch: Duration::from_millis(1),
            seek_shortest: Duration::from_micros(1100),
            seek_mean: Duration::from_millis(9),
            seek_longest: Duration::from_millis(19),
            seek_bend: 1200,
            controller_overhead: Duration::from_micros(50),
            buffer_segments: 8,
            buffer_segment_sectors: 256,
            bus_rate: 20_000_000,
            scheduling: Scheduling::CLook,
            system: SystemProfile::solaris(),
        }
    }

    /// Sectors of the whole disk.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.cylinders as u64 * self.heads as u64 * self.sectors_per_track as u64
    }

    /// Bytes of the whole disk.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.sectors() * SECTOR
    }
}

impl Default for DiskProfile {
    fn default() -> Self {
        Self::st15150w()
    }
}
