//! A disk without a store: one file, written from its beginning to its end as often as it takes,
//! and read meanwhile or not. What a store on it is held against.

use foxy_base::clock::monotonic;
use foxy_base::{Instant, Random};
use foxy_device::{BlockingDevice, FileId, IoBuffer, IoDone, IoError, IoId, IoOp, StorePath};
use foxy_report::Latencies;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What is written at once, and how many of them: as the engine does it.
const PIECE: usize = 256 << 10;
const AT_ONCE: usize = 4;

/// Between the beginnings of two reads: so few that they do not keep a disk busy by themselves.
pub(super) const BETWEEN_READS: Duration = Duration::from_millis(2);

/// Bytes that were written, and how long that took.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// From the first write to the end of the last.
    pub took: Duration,
}

impl Written {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

const FILE: FileId = FileId(1);

/// The disk without a store: one file, written from its beginning to its end as often as it takes.
pub struct Raw {
    device: Box<dyn BlockingDevice>,
    size: u64,
    written: u64,
    operations: u64,
    writing: Vec<IoBuffer>,
    reading: Option<Instant>,
    latencies: Latencies,
    random: Random,
}

impl Raw {
    /// Makes the file, of whole pieces.
    ///
    /// # Errors
    /// The device's.
    pub fn new(device: Box<dyn BlockingDevice>, size: u64) -> Result<Self, IoError> {
        let mut random = Random::new(size);
        let mut piece = vec![0; PIECE];
        random.fill(&mut piece);
        let mut raw = Self {
            device,
            size: size / PIECE as u64 * PIECE as u64,
            written: 0,
            operations: 0,
            writing: (0..AT_ONCE).map(|_| IoBuffer::copy_of(&piece)).collect(),
            reading: None,
            latencies: Latencies::default(),
            random,
        };
        raw.submit(IoOp::Create { file: FILE, path: StorePath::new("raw"), size: raw.size });
        raw.finish()?;
        raw.sync()?;
        Ok(raw)
    }

    fn submit(&mut self, op: IoOp) {
        self.operations += 1;
        self.device.submit(IoId(self.operations), op, monotonic());
    }

    /// Takes what has been done, waiting for it so long at most.
    fn take(&mut self, timeout: Option<Duration>) -> Result<(), IoError> {
        let mut done: Vec<IoDone> = Vec::new();
        self.device.reap(monotonic(), &mut done);
        if done.is_empty() && self.device.in_flight() > 0 {
            self.device.wait(timeout);
            self.device.reap(monotonic(), &mut done);
        }
        for IoDone { result, buffer, .. } in done {
            result?;
            match buffer {
                Some(buffer) if buffer.len() == PIECE => self.writing.push(buffer),
                Some(_) => {
                    let since = self.reading.take().expect("one read at a time");
                    self.latencies.add(monotonic().since(since));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), IoError> {
        while self.device.in_flight() > 0 {
            self.take(None)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.submit(IoOp::Sync { file: FILE });
        self.finish()
    }

    /// Begins as many writes as the engine has under way.
    fn write_on(&mut self) {
        while let Some(buffer) = self.writing.pop() {
            let offset = self.written % self.size;
            self.written += PIECE as u64;
            self.submit(IoOp::Write { file: FILE, offset, buffer });
        }
    }

    /// Writes so many bytes, of whole pieces, or until it is told to stop, and waits for them but
    /// for no sync, as the engine does. What is written first goes into space that was never
    /// written to.
    ///
    /// # Errors
    /// The device's.
    pub fn write(&mut self, bytes: u64, stop: &AtomicBool) -> Result<Written, IoError> {
        let (begun, before) = (monotonic(), self.written);
        let end = before + bytes;
        while self.written < end && !stop.load(Relaxed) {
            self.write_on();
            self.take(None)?;
        }
        self.finish()?;
        Ok(Written { bytes: self.written - before, took: monotonic().since(begun) })
    }

    /// Reads so many pieces of `length` bytes from anywhere, one after another with pauses, while
    /// it is written or not.
    ///
    /// # Errors
    /// The device's.
    pub fn read(
        &mut self,
        count: u64,
        length: usize,
        beside_writes: bool,
    ) -> Result<Latencies, IoError> {
        let mut due = monotonic();
        self.latencies = Latencies::default();
        while self.latencies.count() < count {
            let now = monotonic();
            if self.reading.is_none() && now >= due {
                let offset = self.random.below((self.size - length as u64) / 4096) * 4096;
                self.reading = Some(now);
                due = now + BETWEEN_READS;
                self.submit(IoOp::Read { file: FILE, offset, buffer: IoBuffer::zeroed(length) });
            }
            if beside_writes {
                self.write_on();
            }
            if self.device.in_flight() == 0 {
                std::thread::sleep(due.since(monotonic()));
            } else {
                let rest = due.since(monotonic()).max(Duration::from_micros(1));
                self.take(self.reading.is_none().then_some(rest))?;
            }
        }
        self.finish()?;
        Ok(std::mem::take(&mut self.latencies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_device::Memory;

    #[test]
    fn a_disk_is_written_whole_and_read_beside_that_or_not() {
        let mut raw = Raw::new(Box::new(Memory::default()), 3 << 20).expect("made");
        let written = raw.write(4 << 20, &AtomicBool::new(false)).expect("written");
        assert!(written.bytes >= 4 << 20 && written.rate() > 0.0);
        for beside_writes in [false, true] {
            let latencies = raw.read(20, 64 << 10, beside_writes).expect("read");
            assert_eq!(latencies.count(), 20);
        }
    }

    #[test]
    fn a_disk_that_is_not_to_be_written_any_more_is_left_alone() {
        let mut raw = Raw::new(Box::new(Memory::default()), 3 << 20).expect("made");
        assert_eq!(raw.write(u64::MAX, &AtomicBool::new(true)).expect("nothing to do").bytes, 0);
    }
}
