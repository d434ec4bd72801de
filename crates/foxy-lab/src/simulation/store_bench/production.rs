//! The default engine itself in front of a stream of gets: the production scheme on a device in
//! memory, in virtual time. What the model of its rules leaves out is in it: parts, batches, pages,
//! summaries, the journal, and what it copies at most. Of an object that has lost some of its parts
//! only those are fetched.

use super::engine::Store;
use super::misses::MissTally;
use bytes::Bytes;
use foxy_device::Memory;
use foxy_store::settings::{Newcomers, RECORD_BODY_LIMIT, WriteBudget};
use foxy_store::{Record, StoreSettings};
use std::time::Duration;

/// Virtual time from one get to the next.
const BETWEEN_GETS: Duration = Duration::from_millis(1);

/// A small store has no room for parts as large as the proxy's: one has this share of its bytes at
/// most, as a divisor.
const PARTS: u64 = 32;

/// Of an object that is not stored.
const ABSENT: u64 = u64::MAX;

struct Objects {
    store: Store<Memory>,
    /// Bytes of an object's parts but the last.
    part: u64,
    body: Bytes,
    /// As large as each object was when it was put.
    sizes: Vec<u64>,
}

/// Sends the gets through an empty store of `capacity` bytes, of which `held` are memory in which
/// heavy newcomers wait until they are asked for again. A repeat is a hit even if its size has
/// changed.
///
/// # Panics
/// When the store does not serve.
pub fn run(list: &[(u32, u64)], capacity: u64, urls: u32, held: Option<u64>) -> MissTally {
    let memory = held.unwrap_or(0);
    let budget = |memory| WriteBudget {
        bytes_a_day: 0,
        memory: usize::try_from(memory).expect("memory can be named"),
        newcomers: Newcomers::Heavy,
    };
    let size =
        capacity.saturating_sub(memory).max(foxy_store::settings::MINIMUM_SIZE) / 4096 * 4096;
    let settings = StoreSettings {
        record_limit: u32::MAX,
        write_budget: held.map(budget),
        ..StoreSettings::with_size(size)
    };
    let part = (size / PARTS).clamp(4096, RECORD_BODY_LIMIT as u64);
    let store = Store::with(&settings, Memory::default()).expect("a store in memory serves");
    let body = Bytes::from(vec![0x5a; RECORD_BODY_LIMIT]);
    let mut objects = Objects { store, part, body, sizes: vec![ABSENT; urls as usize] };
    let mut tally = MissTally::default();
    for &(url, size) in list {
        match objects.get(url, size) {
            None => tally.counts.add(size, true),
            Some(missing) => tally.counts.add_incomplete(size, missing),
        }
    }
    let copied = objects.store.statistic("carried_over_bytes");
    MissTally {
        admitted: objects.store.statistic("written_bytes").saturating_sub(copied),
        copied,
        ..tally
    }
}

impl Objects {
    /// Looks an object up, and stores those of its parts that are not there, as the proxy does with
    /// what has a strong validator and comes in ranges. Says how many bytes those have, or `None`
    /// when nothing is missing.
    fn get(&mut self, url: u32, size: u64) -> Option<u64> {
        self.store.pass(BETWEEN_GETS);
        let stored = self.sizes[url as usize];
        let mut missing: Vec<_> = self.parts(url, size).collect();
        if stored != ABSENT {
            let gone: Vec<_> = self
                .parts(url, stored)
                .filter(|&(number, length)| self.store.length(number) != Some(length))
                .collect();
            if gone.is_empty() {
                return None;
            }
            if stored == size {
                missing = gone;
            }
        }
        let is_stored = missing.iter().all(|&(number, length)| self.put(number, length));
        self.sizes[url as usize] = if is_stored { size } else { ABSENT };
        Some(missing.iter().map(|&(_, length)| length).sum())
    }

    fn put(&mut self, number: u64, length: u64) -> bool {
        let length = usize::try_from(length).expect("parts are small");
        self.store.put(number, &Record { head: Bytes::new(), body: self.body.slice(..length) })
    }

    /// The records of an object, each with its length.
    fn parts(&self, url: u32, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let part = self.part;
        let lengths = (0..size.div_ceil(part).max(1))
            .map(move |number| (number, (size - number * part).min(part)));
        lengths.map(move |(number, length)| (u64::from(url) << 32 | number, length))
    }
}
