//! Measures how soon a store answers after its process was killed. The store opens on its own
//! thread, as in the proxy. The benchmark requests a record again and again until the store returns
//! it. A device with sparse files allows stores larger than the real disk.

use super::engine::{Store, found, record, settings, start_shard};
use foxy_base::clock::monotonic;
use foxy_base::{Instant, Random};
use foxy_device::{BlockingDevice, Device, IoDone, IoId, IoOp, IoOutput, Memory};
use foxy_store::{Record, Shard, StoreHandle, StoreStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const RETRY_INTERVAL: Duration = Duration::from_micros(200);

/// The virtual time between two requests to the store.
const BETWEEN_REQUESTS: Duration = Duration::from_micros(500);

#[derive(Clone, Copy, Debug)]
pub struct RestartPatience<'a> {
    pub limit: Duration,
    pub stop: &'a AtomicBool,
}

pub struct RestartedStore {
    shard: Shard,
    handle: StoreHandle,
    begun: Instant,
}

impl RestartedStore {
    pub fn start(size: u64, seed: u64, device: Box<dyn BlockingDevice>) -> std::io::Result<Self> {
        let begun = monotonic();
        let shard = start_shard(&settings(size, seed), device)?;
        let handle = shard.handle();
        Ok(Self { shard, handle, begun })
    }

    pub fn holds(&self, number: u64, record: &Record) -> bool {
        found(&self.handle, number).as_ref() == Some(record)
    }

    /// Returns the time from the restart until the store returned the record. Returns `None` if
    /// this did not happen within `patience`.
    pub fn first_hit(
        &self,
        number: u64,
        record: &Record,
        patience: RestartPatience<'_>,
    ) -> Option<Duration> {
        self.wait(patience, || self.holds(number, record))
    }

    /// Returns the time from the restart until the store had found all its records. Returns `None`
    /// if this did not happen within `patience`.
    pub fn all_known(&self, patience: RestartPatience<'_>) -> Option<Duration> {
        self.wait(patience, || self.handle.observer().status.get() == StoreStatus::Serving)
    }

    fn wait(&self, patience: RestartPatience<'_>, happened: impl Fn() -> bool) -> Option<Duration> {
        loop {
            if happened() {
                return Some(monotonic().since(self.begun));
            }
            if monotonic().since(self.begun) > patience.limit || patience.stop.load(Relaxed) {
                return None;
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    pub fn records(&self) -> u64 {
        self.handle.observer().statistics.records.get()
    }

    pub fn close(self) {
        drop(self.shard);
    }
}

/// Returns the hit ratio of requests in which few records are popular. The store of `size` bytes is
/// killed and restarted `kills` times during the requests.
pub fn hit_ratio(
    size: u64,
    requests: u64,
    kills: u64,
    seed: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<f64, StoreStatus> {
    let mut store = Store::open(size, seed, Memory::default())?;
    let mut random = Random::new(seed);
    let catalogue = (size / 3_000) as f64;
    let body = record(seed, 20_000);
    let mut hits = 0_u64;
    for request in 1..=requests {
        let number = (catalogue.powf(random.unit()) - 1.0) as u64;
        let length = 2_000 + (number % 7) as usize * 3_000;
        let content =
            Record { head: body.head.clone(), body: body.body.slice(..length - body.head.len()) };
        if store.holds(number, &content) {
            hits += 1;
        } else {
            store.put(number, &content);
        }
        store.pass(BETWEEN_REQUESTS);
        if request.is_multiple_of(requests / (kills + 1)) && request < requests {
            let mut device = store.kill();
            device.close_all();
            store = Store::open(size, seed, device)?;
        }
        progress(request);
    }
    Ok(hits as f64 / requests as f64)
}

/// A device with sparse files: a new file takes no space, and the device drops writes longer than
/// `longest` bytes. The caller must give each file its full length before the file is opened again.
pub struct SparseDevice<D> {
    inner: D,
    longest: usize,
    done: Vec<IoDone>,
}

impl<D: Device> SparseDevice<D> {
    pub const fn new(inner: D, longest: usize) -> Self {
        Self { inner, longest, done: Vec::new() }
    }

    pub const fn keep(&mut self, longest: usize) {
        self.longest = longest;
    }
}

impl<D: Device> Device for SparseDevice<D> {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        match op {
            IoOp::Write { buffer, .. } if buffer.len() > self.longest => {
                let result = Ok(IoOutput::Moved { count: buffer.len() });
                self.done.push(IoDone { id, result, buffer: Some(buffer) });
            }
            IoOp::Create { file, path, .. } => {
                self.inner.submit(id, IoOp::Create { file, path, size: 0 }, now)
            }
            other => self.inner.submit(id, other, now),
        }
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.done);
        self.inner.reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.inner.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.done.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_device::{FileId, IoBuffer, StorePath};
    use foxy_store::webcosm::FILE_NAME;

    /// Gives the store's file the length that the store expects when it opens.
    fn lengthen(device: &mut Memory, size: u64) {
        let (file, path) = (FileId(900), StorePath::new(FILE_NAME));
        let buffer = IoBuffer::zeroed(4096);
        let ops = [
            IoOp::Open { file, path },
            IoOp::Write { file, offset: size - 4096, buffer },
            IoOp::Close { file },
        ];
        for (id, op) in (1..).zip(ops) {
            device.submit(IoId(id), op, Instant::ZERO);
        }
        let mut done = Vec::new();
        device.reap(Instant::ZERO, &mut done);
        assert!(done.iter().all(|done| done.result.is_ok()));
    }

    #[test]
    fn a_sparse_store_knows_all_records_and_holds_those_that_were_kept() {
        let size = 64 << 20;
        let mut store = Store::open(size, 1, SparseDevice::new(Memory::default(), 64 << 10))
            .expect("it serves");
        let put =
            |store: &mut Store<_>, number| assert!(store.put(number, &record(number, 100_000)));
        (0..300).for_each(|number| put(&mut store, number));
        store.flush();
        store.device().keep(usize::MAX);
        (300..310).for_each(|number| put(&mut store, number));
        store.flush();
        let SparseDevice { inner: mut device, .. } = store.kill();
        device.close_all();
        lengthen(&mut device, size);
        let store = RestartedStore::start(size, 1, Box::new(device)).expect("a thread");
        let patience =
            RestartPatience { limit: Duration::from_secs(30), stop: &AtomicBool::new(false) };
        assert!(store.first_hit(309, &record(309, 100_000), patience).is_some());
        assert!(store.all_known(patience).is_some() && !store.holds(5, &record(5, 100_000)));
        let stopped = RestartPatience { stop: &AtomicBool::new(true), ..patience };
        assert!(store.first_hit(310, &record(310, 100_000), stopped).is_none(), "it was never put");
        store.close();
    }

    #[test]
    fn kills_cost_few_hits() {
        let hit_ratio =
            |kills| hit_ratio(32 << 20, 40_000, kills, 1, &mut |_| {}).expect("it serves");
        let (never, often) = (hit_ratio(0), hit_ratio(2));
        assert!(never > 0.5 && never - often < 0.02, "{never} {often}");
    }
}
