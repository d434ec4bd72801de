//! The default engine on a real disk: filled as fast as it goes, and read while that happens or
//! not. The caller gives the device and reads the processor's time; what the disk does without a
//! store is in `raw`.

use super::engine::{key, record};
use super::raw::{BETWEEN_READS, Written};
use foxy_base::Random;
use foxy_base::clock::monotonic;
use foxy_device::BlockingDevice;
use foxy_report::Latencies;
use foxy_store::shard::ShardSettings;
use foxy_store::webcosm::Webcosm;
use foxy_store::{
    Answer, Observer, PlacementHint, Record, RefusedReason, Shard, StoreHandle, StoreSettings,
    StoreStatus,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Puts that wait for an answer at once.
const PUTS_AT_ONCE: usize = 32;

/// Before what was refused as too much is tried again.
const PAUSE: Duration = Duration::from_micros(200);

/// A store on a disk, filled and read from other threads as the proxy does it.
pub struct FilledStore {
    shard: Shard,
    handle: StoreHandle,
    content: Record,
    /// Bytes that the store has.
    size: u64,
    /// Records that were put, the newest last.
    count: AtomicU64,
}

/// What reads of a store came to.
#[derive(Debug, Default)]
pub struct Reads {
    /// How long those that found their record took.
    pub latencies: Latencies,
    /// Reads that did not find it.
    pub misses: u64,
}

impl Reads {
    /// Adds all of others.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.misses += other.misses;
    }
}

impl FilledStore {
    /// Makes a store of `size` bytes for records of `length`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(device: Box<dyn BlockingDevice>, size: u64, length: usize) -> Result<Self, String> {
        let observer = Observer::default();
        let settings = StoreSettings { record_limit: u32::MAX, ..StoreSettings::with_size(size) };
        let scheme = Webcosm::boxed(&settings, observer.clone());
        let shard = Shard::start(scheme, device, observer.clone(), ShardSettings::new(monotonic));
        let shard = shard.map_err(|error| error.to_string())?;
        while observer.status.get() == StoreStatus::Opening {
            std::thread::sleep(PAUSE);
        }
        match observer.status.get() {
            StoreStatus::Serving => {}
            other => return Err(format!("the store does not serve: {other:?}")),
        }
        let handle = shard.handle();
        Ok(Self { shard, handle, content: record(1, length), size, count: AtomicU64::new(0) })
    }

    /// Fills it as fast as it goes with so many bytes, or until it is told to stop; what is refused
    /// because the store is busy is put again. Waits for everything that it put, and says how many
    /// bytes were taken and how long that took; fewer if anything else is answered.
    pub fn fill(&self, bytes: u64, stop: &AtomicBool) -> Written {
        let begun = monotonic();
        let bytes = self.put_on(bytes, stop);
        Written { bytes, took: monotonic().since(begun) }
    }

    fn put_on(&self, bytes: u64, stop: &AtomicBool) -> u64 {
        let (sender, receiver) = sync_channel(PUTS_AT_ONCE);
        let (mut taken, mut under_way, mut again) = (0, 0, Vec::new());
        let mut next = self.count.load(Ordering::Relaxed);
        while taken < bytes && !stop.load(Ordering::Relaxed) {
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
                std::thread::sleep(PAUSE);
            }
            self.count.store(next, Ordering::Relaxed);
        }
        drop(sender);
        let last = receiver.iter().filter(|(_, answer)| matches!(answer, Answer::Stored)).count();
        taken + (last * self.content.len()) as u64
    }

    fn put(&self, number: u64, sender: SyncSender<(u64, Answer)>) {
        let hint = PlacementHint { size: self.content.len() as u64, ..PlacementHint::default() };
        // There is room for the answer, unless nobody wants it any more.
        let reply = Box::new(move |answer| sender.try_send((number, answer)).unwrap_or(()));
        self.handle.put(key(number), self.content.clone(), hint, reply);
    }

    /// Reads so many records, one after another with pauses: of those that were put last, but not
    /// so lately that they wait in memory. None of them has been asked for before with any
    /// likelihood.
    pub fn read(&self, count: u64, random: &mut Random) -> Reads {
        let mut reads = Reads::default();
        let held = self.size / self.content.len() as u64;
        for _ in 0..count {
            let begun = monotonic();
            let newest = self.count.load(Ordering::Relaxed);
            let number = newest - held / 10 - random.below(held / 2);
            let (sender, receiver) = sync_channel(1);
            self.handle
                .get(key(number), Box::new(move |answer| sender.try_send(answer).unwrap_or(())));
            match receiver.recv() {
                Ok(Answer::Found(found)) if found == self.content => {
                    reads.latencies.add(monotonic().since(begun))
                }
                _ => reads.misses += 1,
            }
            std::thread::sleep(BETWEEN_READS.saturating_sub(monotonic().since(begun)));
        }
        reads
    }

    /// Closes it: all that waits is durable then.
    pub fn close(self) {
        drop(self.shard);
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
            stop.store(true, Ordering::Relaxed);
            assert!(filling.join().expect("it only puts").bytes > 0);
            reads
        });
        assert_eq!(reads.latencies.count() + reads.misses, 20);
        let idle = store.read(50, &mut random);
        assert!(idle.latencies.count() > 45, "{} misses", idle.misses);
        store.close();
    }
}
