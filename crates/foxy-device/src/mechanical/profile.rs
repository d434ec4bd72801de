//! What a modelled disk and the file system on it are like. Plain numbers with their units; nothing
//! moves here.

use super::layout::Layout;
use std::time::Duration;

/// Bytes in a sector.
pub const SECTOR: u64 = 512;

/// Which of the waiting requests a disk serves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The one that came first.
    Fifo,
    /// The next one upwards from the head, then again from the lowest: the one-way elevator of
    /// Solaris and BSD.
    CLook,
}

/// When changes of names and inodes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// As the UFS of Solaris 2.6: `Create` waits for the inode block and then the directory block,
    /// `Remove` for the directory block; what may wait (the removed inode, times, bitmaps) is
    /// written back later.
    Synchronous,
    /// As soft updates or `mount -o async`: everything is written back later, and a `Sync` waits
    /// for its own file's.
    Asynchronous,
}

/// Whether reading a file changes its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTimes {
    /// Each read makes the inode block one to be written back.
    Updated,
    /// `mount -o noatime`.
    Unchanged,
}

/// The operating system between a program and the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemProfile {
    /// Bytes of a page of the page cache, which is also a block of the file system: 8192 or 4096.
    pub page_size: u32,
    /// Bytes of pages kept, least recently used first out. Pages that wait to be written are kept
    /// beside them.
    pub page_cache: u64,
    /// Bytes of inode and directory blocks kept for each disk.
    pub metadata_cache: u64,
    /// Bytes of a directory a second that the one processor gets through in search of a name, from
    /// its front; 0 where names are found at once, in the block they are in.
    pub search_rate: u64,
    /// Names of files kept, least recently used first out: opening one of them needs no search.
    pub name_cache: u64,
    /// When changes of names and inodes reach the disk.
    pub metadata: MetadataMode,
    /// Whether reading changes inodes.
    pub access_times: AccessTimes,
    /// Bytes of consecutive writes to a file collected into one request. What is collected goes out
    /// when it is full, when a write does not continue it, at `Close` and `Sync`, and when it is
    /// old.
    pub cluster: u64,
    /// Bytes of writes under way to one disk above which a writer waits until it is two thirds of
    /// that; 0 makes every write wait until it is on the disk. Solaris counts them for each file
    /// (`ufs_HW` and `ufs_LW`).
    pub write_behind: u64,
    /// How many bytes ahead a file that is read from its start, or on from the last read, is read;
    /// 0 for none.
    pub read_ahead: u64,
    /// How old a change becomes in memory before it is written back (`autoup` of Solaris).
    pub write_back_age: Duration,
    /// Cylinders of one cylinder group.
    pub group_cylinders: u32,
    /// Bytes of the disk for each inode that is set up.
    pub bytes_per_inode: u64,
}

impl SystemProfile {
    /// Solaris 2.6 with UFS, as the seed paper used it, on a Sun Ultra 1 with 384 MB: it reads
    /// memory with 129 MB/s (McVoy and Staelin, lmbench, USENIX 1996, table 2), and keeps 17 names
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

/// A disk: uniform tracks, no defects. It reads ahead into a buffer of its own, and says that a
/// write is done when it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// Cylinders, counted from the outside.
    pub cylinders: u32,
    /// Tracks of a cylinder.
    pub heads: u32,
    /// Sectors of [`SECTOR`] bytes on a track.
    pub sectors_per_track: u32,
    /// Turns a minute.
    pub turns_per_minute: u32,
    /// Sectors by which a track begins later than the one before it in its cylinder.
    pub track_skew: u32,
    /// Sectors by which a cylinder's first track begins later than the last one of the cylinder
    /// before it.
    pub cylinder_skew: u32,
    /// Time to go over to another track of the same cylinder.
    pub head_switch: Duration,
    /// Seek time to the next cylinder.
    pub seek_shortest: Duration,
    /// Seek time between two cylinders drawn at random, in the mean.
    pub seek_mean: Duration,
    /// Seek time from the first cylinder to the last.
    pub seek_longest: Duration,
    /// Distance in cylinders up to which seek time grows with the square root of the distance;
    /// beyond, linearly.
    pub seek_bend: u32,
    /// From the arrival of a request at the disk to the first movement for it. Requests that wait
    /// have it behind them.
    pub controller_overhead: Duration,
    /// Pieces of the disk it remembers from reading, the newest and those before it; 0 for none.
    pub buffer_segments: u32,
    /// Sectors of one such piece, and how many it goes on reading behind what was asked for while
    /// nothing else is.
    pub buffer_segment_sectors: u64,
    /// Bytes a second between the disk's buffer and the computer.
    pub bus_rate: u64,
    /// Which request is served next.
    pub scheduling: Scheduling,
    /// The operating system above it.
    pub system: SystemProfile,
}

impl DiskProfile {
    /// The Seagate ST15150W of the seed paper (R3): 4 GB, 7,200 turns a minute, 9 ms mean seek.
    /// Sectors a track are those that give the paper's 4.7 MB/s over the whole disk; the real one
    /// has more of them outside than inside. The rest (1.1 and 19 ms for the shortest and longest
    /// seek, 1 ms to switch heads, 1 MB of buffer, a bus of 20 MB/s) is assumed, as was usual for
    /// such disks.
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

    /// Bytes of it that files can have beside the system's inodes and bitmaps.
    ///
    /// # Panics
    /// When the profile's page is no multiple of a fragment, or a cylinder group has no room for
    /// data.
    #[must_use]
    pub fn room(&self) -> u64 {
        Layout::new(self).room()
    }
}

impl Default for DiskProfile {
    fn default() -> Self {
        Self::st15150w()
    }
}
