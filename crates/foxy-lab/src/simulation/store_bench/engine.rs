//! What the default engine costs by itself: memory for a record, bytes written for a byte admitted,
//! reads for a hit, processor time for a byte, and how soon a killed store answers. It runs the
//! production scheme in one thread and virtual time; nothing here knows the machine, whose time and
//! memory the caller reads.

use bytes::Bytes;
use foxy_base::{Instant, Random};
use foxy_device::{Device, Memory};
use foxy_store::contract::Scheme;
use foxy_store::webcosm::Webcosm;
use foxy_store::{
    Answer, Key, Observer, PlacementHint, Record, StepDriver, StoreSettings, StoreStatus,
};
use std::time::Duration;

/// A store and what it shows.
pub struct Store<D> {
    driver: StepDriver<D>,
    observer: Observer,
}

impl<D: Device> Store<D> {
    /// Opens a store of `size` bytes, and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
    pub fn open(size: u64, seed: u64, device: D) -> Result<Self, StoreStatus> {
        Self::with(
            &StoreSettings { seed, record_limit: u32::MAX, ..StoreSettings::with_size(size) },
            device,
        )
    }

    /// Opens a store with those settings, and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
    pub fn with(settings: &StoreSettings, device: D) -> Result<Self, StoreStatus> {
        let observer = Observer::default();
        let scheme = Webcosm::boxed(settings, observer.clone());
        Self::of(scheme, device, observer)
    }

    /// Opens a store of that scheme, and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
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

    /// Whether the store holds that record.
    pub fn holds(&mut self, number: u64, record: &Record) -> bool {
        self.driver.get(key(number)) == Answer::Found(record.clone())
    }

    /// A value of the store's table of statistics.
    ///
    /// # Panics
    /// When there is none of that name.
    pub fn statistic(&self, name: &str) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == name).expect("names are those of the table").value
    }

    /// How many bytes the body of that record has, if the store holds it.
    pub fn length(&mut self, number: u64) -> Option<u64> {
        match self.driver.get(key(number)) {
            Answer::Found(record) => Some(record.body.len() as u64),
            _ => None,
        }
    }

    /// Stores a record; says whether it was taken.
    pub fn put(&mut self, number: u64, record: &Record) -> bool {
        let hint = PlacementHint { size: record.len() as u64, ..PlacementHint::default() };
        self.driver.put(key(number), record.clone(), hint) == Answer::Stored
    }

    /// Has what still waits written.
    pub fn flush(&mut self) {
        let later = self.driver.now() + Duration::from_secs(5);
        self.driver.run_until(later);
        self.driver.run_until_idle();
    }

    /// Lets that much time pass.
    pub fn pass(&mut self, time: Duration) {
        self.driver.run_until(self.driver.now() + time);
    }

    /// The device.
    pub const fn device(&mut self) -> &mut D {
        self.driver.device()
    }

    /// Ends the store where it stands, as a killed process does.
    pub fn kill(self) -> D {
        self.driver.into_device()
    }
}

/// The name of a record.
pub(super) fn key(number: u64) -> Key {
    let mut state = number;
    let (low, high) =
        (foxy_base::random::split_mix(&mut state), foxy_base::random::split_mix(&mut state));
    Key((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}

/// A record of `length` bytes, head and body together.
pub fn record(number: u64, length: usize) -> Record {
    let mut bytes = vec![0; length];
    Random::new(number).fill(&mut bytes);
    let all = Bytes::from(bytes);
    Record { head: all.slice(..length.min(80)), body: all.slice(length.min(80)..) }
}

/// Lengths as the web's: log-normal, median 5 KB, mean about 15 KB, at most a mebibyte.
pub fn web_length(random: &mut Random) -> usize {
    let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    (5_000.0 * (1.5 * normal).exp()).clamp(100.0, f64::from(1 << 20)) as usize
}

/// What came of filling a store.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Records stored.
    pub records: u64,
    /// Bytes of their keys, heads and bodies.
    pub admitted: u64,
    /// Bytes handed to the device meanwhile.
    pub written: u64,
    /// Bytes of memory the index says it takes.
    pub index: u64,
}

/// Fills a store whose device keeps nothing with records of one length, until they have `bytes`.
///
/// # Errors
/// The status of a store that does not serve.
pub fn fill_nothing(
    bytes: u64,
    length: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<(Filled, Store<Memory>), StoreStatus> {
    let mut store = Store::open(bytes / 4 * 5 + (256 << 20), 1, Memory::null())?;
    let content = record(1, length);
    let (mut filled, before) = (Filled::empty(), store.statistic("written_bytes"));
    while filled.admitted < bytes {
        filled.add(store.put(filled.records, &content), length);
        if filled.records.is_multiple_of(4096) {
            progress(filled.admitted);
        }
    }
    store.flush();
    Ok((filled.done(&store, before), store))
}

impl Filled {
    const fn empty() -> Self {
        Self { records: 0, admitted: 0, written: 0, index: 0 }
    }

    fn add(&mut self, stored: bool, length: usize) {
        self.records += 1;
        self.admitted += if stored { (length + size_of::<Key>()) as u64 } else { 0 };
    }

    fn done<D: Device>(self, store: &Store<D>, before: u64) -> Self {
        Self {
            written: store.statistic("written_bytes") - before,
            index: store.statistic("index_bytes"),
            ..self
        }
    }
}

/// Turns a store over that many times with records of those lengths, each as new as all others, and
/// counts what is written.
///
/// # Errors
/// The status of a store that does not serve.
pub fn turn_over(
    size: u64,
    turns: u64,
    seed: u64,
    length: &dyn Fn(&mut Random) -> usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Filled, StoreStatus> {
    let mut store = Store::open(size, seed, Memory::default())?;
    let mut random = Random::new(seed);
    let (mut filled, before) = (Filled::empty(), store.statistic("written_bytes"));
    while filled.admitted < turns * size {
        let content = record(filled.records, length(&mut random));
        filled.add(store.put(filled.records, &content), content.len());
        progress(filled.admitted);
    }
    store.flush();
    Ok(filled.done(&store, before))
}

/// What hits of small records cost.
#[derive(Clone, Copy, Debug)]
pub struct SmallHits {
    /// Bytes written for each byte of a key, head or body.
    pub space: f64,
    /// Reads for a get.
    pub reads: f64,
    /// Bytes read for a get.
    pub read_bytes: f64,
    /// Hits among the gets.
    pub hits: f64,
}

/// Stores records below a page, and asks for each once.
///
/// # Errors
/// The status of a store that does not serve.
pub fn small_hits(
    count: u64,
    seed: u64,
    length: &dyn Fn(&mut Random) -> usize,
) -> Result<SmallHits, StoreStatus> {
    // None is given up, even where each takes a page of its own.
    let mut store = Store::open((count * 8192).max(16 << 20), seed, Memory::default())?;
    let mut random = Random::new(seed);
    let lengths: Vec<_> = (0..count).map(|_| length(&mut random)).collect();
    let (mut filled, before) = (Filled::empty(), store.statistic("written_bytes"));
    for (number, &length) in (0..).zip(&lengths) {
        filled.add(store.put(number, &record(number, length)), length);
    }
    store.flush();
    let filled = filled.done(&store, before);
    let (reads, bytes) = (store.statistic("reads"), store.statistic("read_bytes"));
    let hits = (0..)
        .zip(&lengths)
        .filter(|&(number, &length)| store.holds(number, &record(number, length)))
        .count();
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
