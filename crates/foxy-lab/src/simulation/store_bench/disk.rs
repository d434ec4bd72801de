//! Measures the default engine on a real disk. The store fills at full speed, with or without reads
//! at the same time. For comparison, measures the same writes and reads on the disk without a
//! store.

use super::engine::{found, key, record, start_shard};
use foxy_base::clock::monotonic;
use foxy_base::{Instant, Random};
use foxy_device::{BlockingDevice, FileId, IoBuffer, IoDone, IoError, IoId, IoOp, StorePath};
use foxy_report::Latencies;
use foxy_store::{
    Answer, PlacementHint, Record, RefusedReason, Shard, StoreHandle, StoreSettings, StoreStatus,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

const PUTS_AT_ONCE: usize = 32;

const RETRY_INTERVAL: Duration = Duration::from_micros(200);

pub struct FilledStore {
    shard: Shard,
    handle: StoreHandle,
    content: Record,
    size: u64,
    /// The number of records put into the store so far.
    count: AtomicU64,
}

#[derive(Debug, Default)]
pub struct ReadResults {
    pub latencies: Latencies,
    pub misses: u64,
}

impl ReadResults {
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.misses += other.misses;
    }
}

impl FilledStore {
    /// Creates a store of `size` bytes for records of `length` bytes each.
    pub fn new(device: Box<dyn BlockingDevice>, size: u64, length: usize) -> Result<Self, String> {
        let settings = StoreSettings { record_limit: u32::MAX, ..StoreSettings::with_size(size) };
        let shard = start_shard(&settings, device).map_err(|error| error.to_string())?;
        let handle = shard.handle();
        while handle.observer().status.get() == StoreStatus::Opening {
            std::thread::sleep(RETRY_INTERVAL);
        }
        match handle.observer().status.get() {
            StoreStatus::Serving => {}
            other => return Err(format!("the store does not serve: {other:?}")),
        }
        Ok(Self { shard, handle, content: record(1, length), size, count: AtomicU64::new(0) })
    }

    /// Puts records at full speed until they have `bytes` bytes together, or until `stop` is set.
    /// Then waits for the remaining answers. If the store is busy and refuses a put, repeats it.
    /// Ends at any other refusal.
    pub fn fill(&self, bytes: u64, stop: &AtomicBool) -> Written {
        let begun = monotonic();
        let bytes = self.put_until(bytes, stop);
        Written { bytes, took: monotonic().since(begun) }
    }

    fn put_until(&self, bytes: u64, stop: &AtomicBool) -> u64 {
        let (sender, receiver) = sync_channel(PUTS_AT_ONCE);
        let (mut taken, mut under_way, mut again) = (0, 0, Vec::new());
        let mut next = self.count.load(Relaxed);
        while taken < bytes && !stop.load(Relaxed) {
            let number = again.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            self.put(number, sender.clone());
            under_way += 1;
            while under_way == PUTS_AT_ONCE {
                let Ok((number, answer)) = receiver.recv() else { return taken };
                under_way -= 1;
                match answer {
                    Answer::Stored => taken += self.content.len() as u64,
                    Answer::Refused(RefusedReason::Busy) => again.push(number),
                    _ => return taken,
                }
            }
            if !again.is_empty() {
                std::thread::sleep(RETRY_INTERVAL);
            }
            self.count.store(next, Relaxed);
        }
        drop(sender);
        let last = receiver.iter().filter(|(_, answer)| matches!(answer, Answer::Stored)).count();
        taken + (last * self.content.len()) as u64
    }

    fn put(&self, number: u64, sender: SyncSender<(u64, Answer)>) {
        let hint = PlacementHint { size: self.content.len() as u64, ..PlacementHint::default() };
        // The channel has room for every answer. If the receiver is gone, nobody needs the answer.
        let reply = Box::new(move |answer| sender.try_send((number, answer)).unwrap_or(()));
        self.handle.put(key(number), self.content.clone(), hint, reply);
    }

    /// Reads `count` records one after another, with pauses. Leaves out the newest records, which
    /// are still in memory. Chooses from so large a range that it rarely reads a record twice.
    pub fn read(&self, count: u64, random: &mut Random) -> ReadResults {
        let mut reads = ReadResults::default();
        let capacity = self.size / self.content.len() as u64;
        for _ in 0..count {
            let begun = monotonic();
            let newest = self.count.load(Relaxed);
            let number = newest - capacity / 10 - random.below(capacity / 2);
            if found(&self.handle, number).as_ref() == Some(&self.content) {
                reads.latencies.add(monotonic().since(begun));
            } else {
                reads.misses += 1;
            }
            std::thread::sleep(READ_INTERVAL.saturating_sub(monotonic().since(begun)));
        }
        reads
    }

    /// Closes the store. Afterwards, all records are durable.
    pub fn close(self) {
        drop(self.shard);
    }
}

/// The size of each write in bytes, as in the engine.
const WRITE_BYTES: usize = 256 << 10;
/// The number of writes in progress, as in the engine.
const WRITES_AT_ONCE: usize = 4;

/// The time between the starts of two reads. It is so long that the reads alone do not keep a disk
/// busy.
const READ_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub bytes: u64,
    pub took: Duration,
}

impl Written {
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

const FILE: FileId = FileId(1);

/// A disk without a store. It has one file, which is written from beginning to end again and again.
pub struct RawDisk {
    device: Box<dyn BlockingDevice>,
    size: u64,
    written: u64,
    operations: u64,
    writing: Vec<IoBuffer>,
    reading: Option<Instant>,
    latencies: Latencies,
    random: Random,
}

impl RawDisk {
    pub fn new(device: Box<dyn BlockingDevice>, size: u64) -> Result<Self, IoError> {
        let mut random = Random::new(size);
        let mut piece = vec![0; WRITE_BYTES];
        random.fill(&mut piece);
        let mut raw = Self {
            device,
            size: size / WRITE_BYTES as u64 * WRITE_BYTES as u64,
            written: 0,
            operations: 0,
            writing: (0..WRITES_AT_ONCE).map(|_| IoBuffer::copy_of(&piece)).collect(),
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

    /// Processes completed operations of the device. Waits at most `timeout` for the first.
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
                Some(buffer) if buffer.len() == WRITE_BYTES => self.writing.push(buffer),
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

    fn write_more(&mut self) {
        while let Some(buffer) = self.writing.pop() {
            let offset = self.written % self.size;
            self.written += WRITE_BYTES as u64;
            self.submit(IoOp::Write { file: FILE, offset, buffer });
        }
    }

    /// Writes whole pieces until they have `bytes` bytes together, or until `stop` is set. Waits
    /// for the writes but not for a sync, as the engine does. In the first round, the file grows
    /// into space that was never written.
    pub fn write(&mut self, bytes: u64, stop: &AtomicBool) -> Result<Written, IoError> {
        let (begun, before) = (monotonic(), self.written);
        let end = before + bytes;
        while self.written < end && !stop.load(Relaxed) {
            self.write_more();
            self.take(None)?;
        }
        self.finish()?;
        Ok(Written { bytes: self.written - before, took: monotonic().since(begun) })
    }

    /// Reads `count` pieces of `length` bytes at random positions, one after another with pauses.
    /// If `beside_writes` is set, writes at the same time.
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
                due = now + READ_INTERVAL;
                self.submit(IoOp::Read { file: FILE, offset, buffer: IoBuffer::zeroed(length) });
            }
            if beside_writes {
                self.write_more();
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
    fn a_store_is_filled_and_read_meanwhile() {
        let store =
            FilledStore::new(Box::new(Memory::default()), 64 << 20, 64 << 10).expect("it serves");
        assert!(store.fill(96 << 20, &AtomicBool::new(false)).bytes >= 96 << 20);
        let stop = AtomicBool::new(false);
        let mut random = Random::new(1);
        let reads = std::thread::scope(|threads| {
            let filling = threads.spawn(|| store.fill(u64::MAX, &stop));
            let reads = store.read(20, &mut random);
            stop.store(true, Relaxed);
            assert!(filling.join().expect("it only puts").bytes > 0);
            reads
        });
        assert_eq!(reads.latencies.count() + reads.misses, 20);
        let idle = store.read(50, &mut random);
        assert!(idle.latencies.count() > 45, "{} misses", idle.misses);
        store.close();
    }

    #[test]
    fn a_raw_disk_is_written_and_read_beside_writes_or_not() {
        let mut raw = RawDisk::new(Box::new(Memory::default()), 3 << 20).expect("made");
        let written = raw.write(4 << 20, &AtomicBool::new(false)).expect("written");
        assert!(written.bytes >= 4 << 20 && written.rate() > 0.0);
        for beside_writes in [false, true] {
            let latencies = raw.read(20, 64 << 10, beside_writes).expect("read");
            assert_eq!(latencies.count(), 20);
        }
    }

    #[test]
    fn a_stopped_write_leaves_the_disk_alone() {
        let mut raw = RawDisk::new(Box::new(Memory::default()), 3 << 20).expect("made");
        assert_eq!(raw.write(u64::MAX, &AtomicBool::new(true)).expect("nothing to do").bytes, 0);
    }
}
