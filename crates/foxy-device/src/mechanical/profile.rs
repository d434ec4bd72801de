//! Parameters of a modelled disk and of the file system on it, as plain numbers with units.

use std::time::Duration;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// The order in which a disk serves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// First come, first served.
    Fifo,
    /// The next request upwards from the head, then again from the lowest: the one-way elevator of
    /// Solaris and BSD.
    CLook,
}

/// The time when changes of names and inodes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// As in the UFS of Solaris 2.6: `Create` waits for the inode block and then the directory
    /// block, `Remove` for the directory block. Other changes (the removed inode, times, bitmaps)
    /// are written back later.
    Synchronous,
    /// As with soft updates or `mount -o async`: everything is written back later, and a `Sync`
    /// waits for its own file.
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
    /// Bytes of the page cache (LRU). Pages that wait to be written are kept in addition.
    pub page_cache: u64,
    /// Bytes of cached inode and directory blocks for each disk.
    pub metadata_cache: u64,
    /// Bytes of a directory that the processor searches in a second; 0 finds names at once in their
    /// block.
    pub search_rate: u64,
    /// Number of cached file names (LRU); opening one of them needs no search.
    pub name_cache: u64,
    /// The time when changes of names and inodes reach the disk.
    pub metadata: MetadataMode,
    /// Whether reads change inodes.
    pub access_times: AccessTimes,
    /// Bytes of consecutive writes of a file collected into one request. The collected bytes leave
    /// when full, when a write does not continue them, at `Close` and `Sync`, and by age.
    pub cluster: u64,
    /// Bytes of writes in flight to one disk above which a writer waits until two thirds are left;
    /// 0 makes every write wait for the disk. Solaris counts them for each file (`ufs_HW` and
    /// `ufs_LW`).
    pub write_behind: u64,
    /// Bytes of read-ahead for sequential reads; 0 for none.
    pub read_ahead: u64,
    /// Age at which a change is written back (`autoup` of Solaris).
    pub write_back_age: Duration,
    /// Cylinders in a cylinder group.
    pub group_cylinders: u32,
    /// Bytes of the disk for each inode.
    pub bytes_per_inode: u64,
}

impl SystemProfile {
    /// Solaris 2.6 with UFS, as the seed paper used it, on a Sun Ultra 1 with 384 MB. It reads
    /// memory with 129 MB/s (McVoy and Staelin, lmbench, USENIX 1996, table 2). It caches 17 names
    /// for each megabyte of memory and 90 (`ncsize`, Sun's NFS Server Performance and Tuning Guide,
    /// table 4-5).
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

/// A disk with uniform tracks and no defects. It has a read-ahead buffer; a write completes when it
/// is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// Cylinders, counted from the outside.
    pub cylinders: u32,
    /// Tracks in a cylinder.
    pub heads: u32,
    /// Sectors of [`SECTOR`] bytes on a track.
    pub sectors_per_track: u32,
    /// Turns in a minute.
    pub turns_per_minute: u32,
    /// Offset of a track's start from the previous track of the cylinder, in sectors.
    pub track_skew: u32,
    /// Offset of a cylinder's first track from the last track of the previous cylinder, in sectors.
    pub cylinder_skew: u32,
    /// Time of a switch to another track of the cylinder.
    pub head_switch: Duration,
    /// Seek time to the next cylinder.
    pub seek_shortest: Duration,
    /// Mean seek time between random cylinders.
    pub seek_mean: Duration,
    /// Seek time from the first cylinder to the last.
    pub seek_longest: Duration,
    /// Seek distance in cylinders up to which the time grows with the square root; beyond,
    /// linearly.
    pub seek_bend: u32,
    /// Time from a request's arrival to its first movement; it overlaps with waiting in the queue.
    pub controller_overhead: Duration,
    /// Segments of the disk's buffer; 0 for none.
    pub buffer_segments: u32,
    /// Sectors of a segment, and most sectors of an idle read-ahead.
    pub buffer_segment_sectors: u64,
    /// Bytes in a second between the disk's buffer and the computer.
    pub bus_rate: u64,
    /// The order of service.
    pub scheduling: Scheduling,
    /// The operating system.
    pub system: SystemProfile,
}

impl DiskProfile {
    /// The Seagate ST15150W of the seed paper (R3): 4 GB, 7,200 turns a minute, 9 ms mean seek. The
    /// sectors of a track give the paper's 4.7 MB/s over the whole disk; the real disk has more of
    /// them outside than inside. All other values (1.1 and 19 ms for the shortest and longest seek,
    /// 1 ms to switch heads, 1 MB of buffer, a bus of 20 MB/s) are assumed, as was usual for such
    /// disks.
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
