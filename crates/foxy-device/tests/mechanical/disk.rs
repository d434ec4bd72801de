//! A simulated device that runs one operation after another, in simulated time.

use foxy_base::Instant;
use foxy_device::{
    Device, DiskProfile, FileId, IoBuffer, IoError, IoId, IoOp, IoOutput, Mechanical, StorePath,
};
use std::time::Duration;

pub const FILE: FileId = FileId(0);
pub const MIB: u64 = 1 << 20;

pub struct Disk {
    pub device: Mechanical,
    pub now: Instant,
}

impl Disk {
    pub fn new(profile: DiskProfile, spindles: usize, seed: u64) -> Self {
        Self { device: Mechanical::new(profile, spindles, seed), now: Instant::ZERO }
    }

    pub fn submit(&mut self, op: IoOp) {
        self.device.submit(IoId(0), op, self.now);
    }

    /// Finishes all submitted operations. Returns their results in the order of completion.
    pub fn finish(&mut self) -> Vec<Result<IoOutput, IoError>> {
        let mut done = Vec::new();
        while let Some(at) = self.device.next_completion() {
            assert!(at >= self.now, "time goes on");
            self.now = at;
            self.device.reap(at, &mut done);
        }
        done.into_iter().map(|done| done.result).collect()
    }

    /// Runs an operation and returns its duration.
    pub fn time(&mut self, op: IoOp) -> Duration {
        let start = self.now;
        self.submit(op);
        let results = self.finish();
        assert!(matches!(results[..], [Ok(_)]), "{results:?}");
        self.now.since(start)
    }

    /// Writes all changes to the disk and moves the time to the end of these writes.
    pub fn settle(&mut self) {
        self.now = self.device.settle(self.now);
    }
}

pub fn create(file: FileId, path: &str, size: u64) -> IoOp {
    IoOp::Create { file, path: StorePath::new(path), size }
}

pub fn write(file: FileId, offset: u64, length: usize) -> IoOp {
    IoOp::Write { file, offset, buffer: IoBuffer::zeroed(length) }
}

pub fn read(file: FileId, offset: u64, length: usize) -> IoOp {
    IoOp::Read { file, offset, buffer: IoBuffer::zeroed(length) }
}

pub fn directory(path: &str) -> IoOp {
    IoOp::MakeDir { path: StorePath::new(path) }
}

pub fn open(file: FileId, path: &str) -> IoOp {
    IoOp::Open { file, path: StorePath::new(path) }
}
