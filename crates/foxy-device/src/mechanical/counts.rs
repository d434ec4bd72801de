//! Counts of the simulated disks, and a record of each disk request. The records can be shown in a
//! plot.

use super::profile::SECTOR;
use foxy_base::Instant;
use std::collections::VecDeque;
use std::ops::AddAssign;
use std::time::Duration;

/// Purpose of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads pages of a file.
    Read,
    /// Reads a page because a write changes only a part of the page, so the other part must be
    /// known.
    ReadBeforeWrite,
    /// Writes pages of a file.
    Write,
    /// Reads an inode or directory block.
    MetadataRead,
    /// Writes an inode or directory block.
    MetadataWrite,
}

impl RequestKind {
    /// Returns the name of the kind in records and tables.
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

    /// Returns whether the request reads from the disk.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadBeforeWrite | Self::MetadataRead)
    }
}

/// The record of a finished disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Number of the disk, from 0.
    pub spindle: usize,
    /// Purpose of the disk request.
    pub kind: RequestKind,
    /// Number of the first sector that the request reads or writes.
    pub address: u64,
    /// Number of bytes that the request reads or writes.
    pub size: u64,
    /// Whether the disk answered the request from its own buffer or its read-ahead, without a
    /// movement of the head.
    pub buffered: bool,
    /// Duration of the arm's movement (seek).
    pub seek: Duration,
    /// Rotational delay before the first sector reaches the head.
    pub rotation: Duration,
    /// Time from the start of the first sector to the end of the last sector.
    pub transfer: Duration,
    /// Time when the request arrived at the disk.
    pub arrival: Instant,
    /// Time when the disk started the request.
    pub start: Instant,
    /// Time when the request finished: `start + seek + rotation + transfer`.
    pub finish: Instant,
}

/// Counts of requests to one simulated disk, or the sum over all disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MechanicalCounts {
    /// Number of requests for which the disk moved its arm to another cylinder.
    pub seeks: u64,
    /// Number of requests that waited for the disk to rotate.
    pub rotations: u64,
    /// Number of read requests of all kinds.
    pub device_reads: u64,
    /// Number of write requests of all kinds.
    pub device_writes: u64,
    /// Number of bytes read by requests of all kinds.
    pub bytes_read: u64,
    /// Number of bytes written by requests of all kinds.
    pub bytes_written: u64,
    /// Number of requests that the disk answered from its own buffer or its read-ahead.
    pub buffered: u64,
    /// Number of pages that were read because a write changed only a part of the page.
    pub read_modify_writes: u64,
    /// Number of inode and directory blocks that were read.
    pub metadata_reads: u64,
    /// Number of inode and directory blocks that were written.
    pub metadata_writes: u64,
    /// Sum of the seek times of all requests.
    pub seek_time: Duration,
    /// Sum of the rotational delays of all requests.
    pub rotation_time: Duration,
    /// Sum of the transfer times of all requests.
    pub transfer_time: Duration,
}

impl MechanicalCounts {
    /// Returns the time during which the disk was busy: seeks, rotational delays and transfers.
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

pub(super) const fn bytes_of(sectors: u64) -> u64 {
    sectors * SECTOR
}
