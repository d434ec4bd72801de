//! Measures the costs of the default engine alone: memory per record, bytes written per byte of
//! records stored, and reads per hit. The engine's production code runs in one thread and virtual
//! time. The caller measures time and memory of the process.

use bytes::Bytes;
use foxy_base::clock::monotonic;
use foxy_base::{Instant, Random};
use foxy_device::{BlockingDevice, Device, Memory};
use foxy_store::contract::Scheme;
use foxy_store::shard::ShardSettings;
use foxy_store::webcosm::Webcosm;
use foxy_store::{
    Answer, Key, Observer, PlacementHint, Record, Shard, StepDriver, StoreHandle, StoreSettings,
    StoreStatus,
};
use std::io;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

pub struct Store<D> {
    driver: StepDriver<D>,
    observer: Observer,
}

impl<D: Device> Store<D> {
    pub fn open(size: u64, seed: u64, device: D) -> Result<Self, StoreStatus> {
        Self::with(&settings(size, seed), device)
    }

    pub fn with(settings: &StoreSettings, device: D) -> Result<Self, StoreStatus> {
        let observer = Observer::default();
        let scheme = Webcosm::boxed(settings, observer.clone());
        Self::of(scheme, device, observer)
    }

    pub fn of(
        scheme: Box<dyn Scheme + Send>,
        device: D,
        observer: Observer,
    ) -> Result<Self, StoreStatus> {
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        match observer.status.get() {
            StoreStatus::Serving => Ok(Self { driver, observer }),
            other => Err(other),
        }
    }

    pub fn holds(&mut self, number: u64, record: &Record) -> bool {
        self.driver.get(key(number)) == Answer::Found(record.clone())
    }

    /// Returns a value of the store's statistics. Panics if `name` is unknown.
    pub fn statistic(&self, name: &str) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == name).expect("names are those of the table").value
    }

    /// Returns the length in bytes of the body of a record. Returns `None` if the record is not
    /// stored.
    pub fn length(&mut self, number: u64) -> Option<u64> {
        match self.driver.get(key(number)) {
            Answer::Found(record) => Some(record.body.len() as u64),
            _ => None,
        }
    }

    /// Puts a record that is a whole object. Returns whether the store accepted it.
    pub fn put(&mut self, number: u64, record: &Record) -> bool {
        self.put_part(number, record, record.len() as u64)
    }

    /// Puts a part of an object of `object_bytes` bytes. Returns whether the store accepted it.
    pub fn put_part(&mut self, number: u64, record: &Record, object_bytes: u64) -> bool {
        let hint = PlacementHint { size: object_bytes, ..PlacementHint::default() };
        self.driver.put(key(number), record.clone(), hint) == Answer::Stored
    }

    /// Waits until the store has written its buffered records.
    pub fn flush(&mut self) {
        let later = self.driver.now() + Duration::from_secs(5);
        self.driver.run_until(later);
        self.driver.run_until_idle();
    }

    pub fn pass(&mut self, time: Duration) {
        self.driver.run_until(self.driver.now() + time);
    }

    pub const fn device(&mut self) -> &mut D {
        self.driver.device()
    }

    /// Ends the store without closing it, as if the process were killed.
    pub fn kill(self) -> D {
        self.driver.into_device()
    }
}

pub(super) fn key(number: u64) -> Key {
    let mut state = number;
    let (low, high) =
        (foxy_base::random::split_mix(&mut state), foxy_base::random::split_mix(&mut state));
    Key((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}

/// Returns a record whose head and body together have `length` bytes.
pub fn record(number: u64, length: usize) -> Record {
    let mut bytes = vec![0; length];
    Random::new(number).fill(&mut bytes);
    let all = Bytes::from(bytes);
    Record { head: all.slice(..length.min(80)), body: all.slice(length.min(80)..) }
}

pub(super) fn settings(size: u64, seed: u64) -> StoreSettings {
    StoreSettings { seed, record_limit: u32::MAX, ..StoreSettings::with_size(size) }
}

/// Opens a store on its own thread, as the proxy does.
pub(super) fn start_shard(
    settings: &StoreSettings,
    device: Box<dyn BlockingDevice>,
) -> io::Result<Shard> {
    let observer = Observer::default();
    let scheme = Webcosm::boxed(settings, observer.clone());
    Shard::start(scheme, device, observer, ShardSettings::new(monotonic))
}

/// Gets a record from a store on another thread. Waits for the answer.
pub(super) fn found(handle: &StoreHandle, number: u64) -> Option<Record> {
    let (sender, receiver) = sync_channel(1);
    handle.get(key(number), Box::new(move |answer| sender.try_send(answer).unwrap_or(())));
    match receiver.recv() {
        Ok(Answer::Found(record)) => Some(record),
        _ => None,
    }
}

/// Returns a random object size in bytes. The sizes have a log-normal distribution, as on the web:
/// median 5 KB, mean about 15 KB, at most 1 MiB.
pub fn web_length(random: &mut Random) -> usize {
    let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    (5_000.0 * (1.5 * normal).exp()).clamp(100.0, f64::from(1 << 20)) as usize
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Filled {
    pub records: u64,
    /// The bytes of the stored records: keys, heads and bodies.
    pub admitted: u64,
    /// The bytes written to the device.
    pub written: u64,
    /// The bytes of memory that the index uses, as the store reports them.
    pub index: u64,
}

/// A store while it is being filled. `filled` counts its records and their bytes so far. Until the
/// end, `filled.written` is the number of bytes that the store had written before the filling.
struct Filling<D> {
    store: Store<D>,
    filled: Filled,
}

impl<D: Device> Filling<D> {
    fn new(store: Store<D>) -> Self {
        let written = store.statistic("written_bytes");
        Self { store, filled: Filled { written, ..Filled::default() } }
    }

    fn put(&mut self, record: &Record) {
        if self.store.put(self.filled.records, record) {
            self.filled.admitted += (record.len() + size_of::<Key>()) as u64;
        }
        self.filled.records += 1;
    }

    fn finish(mut self) -> (Filled, Store<D>) {
        self.store.flush();
        let written = self.store.statistic("written_bytes") - self.filled.written;
        let index = self.store.statistic("index_bytes");
        (Filled { written, index, ..self.filled }, self.store)
    }
}

/// Fills a store with records of `length` bytes until their total size is `bytes`. The device
/// counts the writes and drops the content.
pub fn fill_nothing(
    bytes: u64,
    length: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<(Filled, Store<Memory>), StoreStatus> {
    let store = Store::open(bytes / 4 * 5 + (256 << 20), 1, Memory::null())?;
    let (mut filling, content) = (Filling::new(store), record(1, length));
    while filling.filled.admitted < bytes {
        filling.put(&content);
        if filling.filled.records.is_multiple_of(4096) {
            progress(filling.filled.admitted);
        }
    }
    Ok(filling.finish())
}

/// Replaces the whole content of a store `turns` times by new records of random sizes.
pub fn turn_over(
    size: u64,
    turns: u64,
    seed: u64,
    length: &dyn Fn(&mut Random) -> usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Filled, StoreStatus> {
    let mut filling = Filling::new(Store::open(size, seed, Memory::default())?);
    let mut random = Random::new(seed);
    while filling.filled.admitted < turns * size {
        filling.put(&record(filling.filled.records, length(&mut random)));
        progress(filling.filled.admitted);
    }
    Ok(filling.finish().0)
}

#[derive(Clone, Copy, Debug)]
pub struct SmallHits {
    /// The bytes written to the device, divided by the bytes of the stored records (keys, heads and
    /// bodies).
    pub space: f64,
    /// The number of device reads per `get` request.
    pub reads: f64,
    /// The number of bytes read from the device per `get` request.
    pub read_bytes: f64,
    /// The share of `get` requests that found their record.
    pub hits: f64,
}

/// Stores `count` records that are smaller than a page, then requests each record once.
pub fn small_hits(
    count: u64,
    seed: u64,
    length: &dyn Fn(&mut Random) -> usize,
) -> Result<SmallHits, StoreStatus> {
    // The store has room for all records, even if each record used a whole page.
    let store = Store::open((count * 8192).max(16 << 20), seed, Memory::default())?;
    let mut filling = Filling::new(store);
    let mut random = Random::new(seed);
    let lengths: Vec<_> = (0..count).map(|_| length(&mut random)).collect();
    for (number, &length) in (0..).zip(&lengths) {
        filling.put(&record(number, length));
    }
    let (filled, mut store) = filling.finish();
    let (reads, bytes) = (store.statistic("reads"), store.statistic("read_bytes"));
    let mut hits = 0;
    for (number, &length) in (0..).zip(&lengths) {
        hits += u64::from(store.holds(number, &record(number, length)));
    }
    let for_each = |name: &str, before: u64| (store.statistic(name) - before) as f64 / count as f64;
    Ok(SmallHits {
        space: filled.written as f64 / filled.admitted as f64,
        reads: for_each("reads", reads),
        read_bytes: for_each("read_bytes", bytes),
        hits: hits as f64 / count as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_over_store_writes_little_more_than_it_admits() {
        let filled = turn_over(32 << 20, 3, 1, &web_length, &mut |_| {}).expect("it serves");
        let ratio = filled.written as f64 / filled.admitted as f64;
        assert!((1.0..1.15).contains(&ratio), "{ratio}: {filled:?}");
    }

    #[test]
    fn a_small_record_is_one_page_to_read() {
        let small =
            small_hits(2_000, 1, &|random| 100 + random.below(3_900) as usize).expect("it serves");
        assert!(small.reads <= 1.0 && small.hits > 0.999, "{small:?}");
        assert!(small.space < 1.12, "{small:?}");
    }
}
