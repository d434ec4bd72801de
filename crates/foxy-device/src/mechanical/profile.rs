//! Parameters of a simulated disk and of its file system, as plain numbers with units.

use std::time::Duration;

/// Size of a sector in bytes.
pub const SECTOR: u64 = 512;

/// The smallest number of cylinders of a disk that [`DiskProfile::with_capacity`] returns.
pub const LEAST_CYLINDERS: u32 = 64;

/// The order in which a disk serves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The disk serves requests in the order of their arrival.
    Fifo,
    /// The disk serves the next request above the head position. If no request is above, it serves
    /// the lowest request. Solaris and BSD use this one-way elevator.
    CLook,
}

/// When changes of names and inodes (metadata) reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// The file system works like the UFS of Solaris 2.6. `Create` waits for the write of the inode
    /// block and then of the directory block. `Remove` waits for the write of the directory block.
    /// The system writes other changes (the removed inode, times, bitmaps) later.
    Synchronous,
    /// The file system works as with soft updates or `mount -o async`. The system writes all
    /// changes later. A `Sync` waits only for its own file.
    Asynchronous,
}

/// Whether reading a file changes the file's inode (its access time).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTimes {
    /// Each read marks the inode block for a later write.
    Updated,
    /// A read changes no inode, as with `mount -o noatime`.
    Unchanged,
}

/// The parameters of the operating system between a program and the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemProfile {
    /// Size in bytes of a page in the page cache and of a file system block: 8192 or 4096.
    pub page_size: u32,
    /// Size of the page cache (LRU) in bytes. Changed pages that wait for their write use
    /// additional memory.
    pub page_cache: u64,
    /// Size in bytes of the cache for inode and directory blocks, per disk.
    pub metadata_cache: u64,
    /// Number of directory bytes that the processor searches per second. With 0, a search takes no
    /// processor time.
    pub search_rate: u64,
    /// Number of cached file names (LRU). Opening such a file needs no search of its directory.
    pub name_cache: u64,
    /// When changes of names and inodes (metadata) reach the disk.
    pub metadata: MetadataMode,
    /// Whether reading a file changes the file's inode (its access time).
    pub access_times: AccessTimes,
    /// Size in bytes at which collected consecutive writes to a file go to the disk as one request.
    /// Four events send the collected bytes earlier: a write elsewhere in the file, `Close`,
    /// `Sync`, and the age `write_back_age`.
    pub cluster: u64,
    /// Limit in bytes of the background writes in flight to one disk. Above the limit, a writer
    /// waits until at most two thirds of the limit are in flight. With 0, every write waits for the
    /// disk. Solaris applies such limits per file (`ufs_HW` and `ufs_LW`).
    pub write_behind: u64,
    /// Number of bytes to read ahead in sequential reads of a file; 0 disables read-ahead.
    pub read_ahead: u64,
    /// Age at which a changed page or block is written to the disk (`autoup` of Solaris).
    pub write_back_age: Duration,
    /// Number of cylinders in a cylinder group, an area of the disk in which FFS keeps related
    /// files together.
    pub group_cylinders: u32,
    /// Number of bytes of the disk per inode of the file system.
    pub bytes_per_inode: u64,
}

impl SystemProfile {
    /// Solaris 2.6 with UFS on a Sun Ultra 1 with 384 MB of memory, as in paper 001
    /// (`docs/figures.md`). The machine reads memory at 129 MB/s (McVoy and Staelin, lmbench,
    /// USENIX 1996, table 2). The name cache has 17 names per megabyte of memory, plus 90
    /// (`ncsize`, Sun's NFS Server Performance and Tuning Guide, table 4-5).
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

/// The parameters of a mechanical disk. The modelled disk has equal tracks, no defects and a
/// read-ahead buffer. A write finishes only when its bytes are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// Number of cylinders. The first cylinder is the outermost.
    pub cylinders: u32,
    /// Number of tracks in a cylinder.
    pub heads: u32,
    /// Number of sectors of [`SECTOR`] bytes on a track.
    pub sectors_per_track: u32,
    /// Number of rotations per minute.
    pub turns_per_minute: u32,
    /// Distance in sectors between the first sectors of two neighbouring tracks of a cylinder.
    /// While these sectors pass, the disk has time to switch heads.
    pub track_skew: u32,
    /// Distance in sectors between the first sector of a cylinder and the start of the previous
    /// cylinder's last track. While these sectors pass, the disk has time to move its arm.
    pub cylinder_skew: u32,
    /// Time to switch to another track of the same cylinder.
    pub head_switch: Duration,
    /// Time of a seek to the next cylinder.
    pub seek_shortest: Duration,
    /// Mean time of a seek between random cylinders.
    pub seek_mean: Duration,
    /// Time of a seek from the first cylinder to the last.
    pub seek_longest: Duration,
    /// Distance in cylinders at which the curve of seek times bends. For shorter seeks, the time
    /// grows with the square root of the distance. For longer seeks, the time grows linearly.
    pub seek_bend: u32,
    /// Time that the disk's controller needs after a request's arrival before the arm can move.
    /// This time may pass while the request waits in the queue.
    pub controller_overhead: Duration,
    /// Number of segments in the disk's own buffer; 0 disables the buffer. A segment contains
    /// consecutive sectors.
    pub buffer_segments: u32,
    /// Number of sectors in a segment of the disk's buffer. An idle disk reads ahead at most this
    /// number of sectors.
    pub buffer_segment_sectors: u64,
    /// Transfer rate between the disk's buffer and the computer, in bytes per second.
    pub bus_rate: u64,
    /// The order in which the disk serves its queue.
    pub scheduling: Scheduling,
    /// The parameters of the operating system that uses the disk.
    pub system: SystemProfile,
}

impl DiskProfile {
    /// The disk Seagate ST15150W of paper 001 (`docs/figures.md`): 4 GB, 7,200 rotations per
    /// minute, 9 ms mean seek. The number of sectors per track gives the paper's 4.7 MB/s over the
    /// whole disk. The real disk has more sectors on outer tracks than on inner tracks.
    ///
    /// All other values are assumptions that are typical of such disks. The shortest seek takes 1.1
    /// ms, the longest 19 ms, and a head switch 1 ms. The buffer has 1 MB, and the bus moves 20
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

    /// Returns the number of sectors of the whole disk.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.cylinders as u64 * self.heads as u64 * self.sectors_per_track as u64
    }

    /// Returns the size of the whole disk in bytes.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.sectors() * SECTOR
    }

    /// Returns a smaller disk with at least `size` bytes. The smaller disk has fewer cylinders, but
    /// a seek from its first to its last cylinder takes as long as on this disk. Returns `None` if
    /// `size` is less than 64 cylinders or more than this disk.
    #[must_use]
    pub fn with_capacity(self, size: u64) -> Option<Self> {
        let cylinder = self.capacity() / u64::from(self.cylinders);
        let cylinders = u32::try_from(size.div_ceil(cylinder)).ok()?;
        let seek_bend = u64::from(self.seek_bend) * u64::from(cylinders);
        let seek_bend = u32::try_from(seek_bend / u64::from(self.cylinders)).ok()?;
        (LEAST_CYLINDERS..=self.cylinders).contains(&cylinders).then_some(Self {
            cylinders,
            seek_bend,
            ..self
        })
    }
}

impl Default for DiskProfile {
    fn default() -> Self {
        Self::st15150w()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_disk_has_fewer_cylinders_and_the_same_longest_seek() {
        let whole = DiskProfile::st15150w();
        let small = whole.with_capacity(72 << 20).expect("large enough");
        assert!((72 << 20..73 << 20).contains(&small.capacity()), "{}", small.capacity());
        assert_eq!((small.cylinders, small.seek_bend), (82, 21));
        assert_eq!(small.seek_longest, whole.seek_longest);
        assert_eq!(whole.with_capacity(whole.capacity()), Some(whole));
        assert_eq!(whole.with_capacity(whole.capacity() + 1), None);
        assert_eq!(whole.with_capacity(1 << 20), None);
    }
}
