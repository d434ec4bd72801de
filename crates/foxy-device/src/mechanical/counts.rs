//! What the modelled disks did: sums, and a record of each request for head plots. Only data.

use super::profile::SECTOR;
use foxy_base::Instant;
use std::collections::VecDeque;
use std::ops::AddAssign;
use std::time::Duration;

/// Why the disk was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// To read pages of a file.
    Read,
    /// To read a page before a part of it is written (R24).
    ReadBeforeWrite,
    /// To write pages of a file.
    Write,
    /// To read a block of inodes or of a directory.
    MetadataRead,
    /// To write a block of inodes or of a directory.
    MetadataWrite,
}

impl RequestKind {
    /// Its name in records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadBeforeWrite => "read-before-write",
            Self::Write => "write",
            Self::MetadataRead => "metadata-read",
            Self::MetadataWrite => "metadata-write",
        }
    }

    /// Whether it takes bytes from the disk.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadBeforeWrite | Self::MetadataRead)
    }
}

/// One request a disk has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Which disk, from 0.
    pub spindle: usize,
    /// Why.
    pub kind: RequestKind,
    /// Its first sector.
    pub address: u64,
    /// Bytes moved.
    pub size: u64,
    /// Whether the disk had it in its buffer, or was reading it ahead.
    pub buffered: bool,
    /// Time the arm moved.
    pub seek: Duration,
    /// Time until the first sector came by.
    pub rotation: Duration,
    /// Time from the first sector's start to the last one's end.
    pub transfer: Duration,
    /// When it came to the disk.
    pub arrival: Instant,
    /// When the arm began to move for it.
    pub start: Instant,
    /// When it was done: `start + seek + rotation + transfer`.
    pub finish: Instant,
}

/// What a disk, or all of them, did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MechanicalCounts {
    /// Requests for which the arm went to another cylinder.
    pub seeks: u64,
    /// Requests that waited for their first sector to come by.
    pub rotations: u64,
    /// Requests that read, all kinds.
    pub device_reads: u64,
    /// Requests that wrote, all kinds.
    pub device_writes: u64,
    /// Bytes read, all kinds.
    pub bytes_read: u64,
    /// Bytes written, all kinds.
    pub bytes_written: u64,
    /// Requests that the disk's buffer served.
    pub buffered: u64,
    /// Pages read because a part of them was to be written (R24).
    pub read_modify_writes: u64,
    /// Inode and directory blocks read.
    pub metadata_reads: u64,
    /// Inode and directory blocks written.
    pub metadata_writes: u64,
    /// Time the arm moved.
    pub seek_time: Duration,
    /// Time waited for sectors to come by.
    pub rotation_time: Duration,
    /// Time sectors moved.
    pub transfer_time: Duration,
}

impl MechanicalCounts {
    /// Time the disk was busy (R101).
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.seek_time + self.rotation_time + self.transfer_time
    }

    pub(super) fn note(&mut self, record: &ServiceRecord, moved_arm: bool) {
        self.seeks += u64::from(moved_arm);
        self.rotations += u64::from(!record.rotation.is_zero());
        self.buffered += u64::from(record.buffered);
        if record.kind.reads() {
            self.device_reads += 1;
            self.bytes_read += record.size;
        } else {
            self.device_writes += 1;
            self.bytes_written += record.size;
        }
        match record.kind {
            RequestKind::ReadBeforeWrite => self.read_modify_writes += 1,
            RequestKind::MetadataRead => self.metadata_reads += 1,
            RequestKind::MetadataWrite => self.metadata_writes += 1,
            RequestKind::Read | RequestKind::Write => {}
        }
        self.seek_time += record.seek;
        self.rotation_time += record.rotation;
        self.transfer_time += record.transfer;
    }
}

impl AddAssign for MechanicalCounts {
    fn add_assign(&mut self, other: Self) {
        self.seeks += other.seeks;
        self.rotations += other.rotations;
        self.device_reads += other.device_reads;
        self.device_writes += other.device_writes;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.buffered += other.buffered;
        self.read_modify_writes += other.read_modify_writes;
        self.metadata_reads += other.metadata_reads;
        self.metadata_writes += other.metadata_writes;
        self.seek_time += other.seek_time;
        self.rotation_time += other.rotation_time;
        self.transfer_time += other.transfer_time;
    }
}

/// The records of the last requests.
#[derive(Debug, Default)]
pub(super) struct Log {
    records: VecDeque<ServiceRecord>,
    dropped: u64,
    limit: usize,
}

impl Log {
    pub(super) fn keep(&mut self, limit: usize) {
        self.limit = limit;
        self.shorten();
    }

    pub(super) fn note(&mut self, record: ServiceRecord) {
        if self.limit > 0 {
            self.records.push_back(record);
            self.shorten();
        }
    }

    pub(super) fn take(&mut self) -> (Vec<ServiceRecord>, u64) {
        (self.records.drain(..).collect(), std::mem::take(&mut self.dropped))
    }

    fn shorten(&mut self) {
        while self.records.len() > self.limit {
            self.records.pop_front();
            self.dropped += 1;
        }
    }
}

/// Bytes of so many sectors.
pub(super) const fn bytes_of(sectors: u64) -> u64 {
    sectors * SECTOR
}
