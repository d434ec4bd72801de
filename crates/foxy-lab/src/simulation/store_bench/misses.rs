//! Counts the misses of simulated caches that all have the same amount of disk space. The caches
//! use the default engine's rules, classical policies, or an oracle that knows the future. The
//! simulations count the disk bytes of each object and do no IO. The engine itself can run too, in
//! virtual time on a device in memory.

use super::engine::Store;
use crate::simulation::caches::belady::{Foresight, oracle};
use crate::simulation::caches::cache::Cache;
use crate::simulation::caches::policies::{CacheSize, Lookups};
pub use crate::simulation::caches::segments::MissTally;
use crate::simulation::caches::segments::{Rule, SegmentCache};
use bytes::Bytes;
use foxy_device::Memory;
use foxy_schemes::{PolicyName, PolicySettings};
use foxy_store::settings::{MINIMUM_SIZE, Newcomers, RECORD_BODY_LIMIT, WriteBudget};
use foxy_store::{Record, StoreSettings};
use foxy_workload::Trace;
use foxy_workload::trace::catalogue::{CDN, Catalogue, REGISTRY, SITE};
use foxy_workload::trace::synthetic::{BU95, DEC, IRCACHE, TABLE1, TraceModel, generate};
use std::time::Duration;

/// The sizes of the disk, in percent of the unique bytes of a workload (the sum of the sizes of all
/// its URLs).
pub const DISK_PERCENTAGES: [f64; 4] = [1.0, 5.0, 10.0, 20.0];

/// The number of look-ups in a synthetic trace. A quick run has 1/`QUICK` of this number.
const GETS: usize = 1_000_000;
const QUICK: usize = 50;

/// The size of the disk divided by the size of the write buffer. The disk size includes the buffer.
const BUFFER: u64 = 50;

pub struct Workload {
    /// The name of the workload, which also says whether the workload is synthetic.
    pub name: String,
    lookups: Lookups,
}

impl Workload {
    pub fn of(name: &str, trace: &Trace) -> Self {
        Self { name: name.into(), lookups: Lookups::of(trace) }
    }
}

pub fn synthetic() -> Vec<&'static str> {
    let models = MODELS.iter().map(|(model, _)| model.name);
    models.chain(CATALOGUES.iter().map(|model| model.name)).collect()
}

const CATALOGUES: [Catalogue; 3] = [CDN, REGISTRY, SITE];

/// The trace models and the number of look-ups in their traces. The trace of Boston University
/// (BU95) has its original length.
const MODELS: [(TraceModel, usize); 4] =
    [(BU95, 135_382), (DEC, GETS), (TABLE1, GETS), (IRCACHE, GETS)];

/// Creates a synthetic workload. The trace of a quick run is shorter by the factor `QUICK`. Panics
/// if `name` is unknown.
pub fn make(name: &str, is_quick: bool, seed: u64) -> Workload {
    let shorter = if is_quick { QUICK } else { 1 };
    let trace = if let Some((model, gets)) = MODELS.iter().find(|(model, _)| model.name == name) {
        generate(model, gets / shorter, seed)
    } else {
        let model = CATALOGUES.iter().find(|model| model.name == name);
        let model = model.expect("one of the synthetic workloads");
        model.generate(model.gets / shorter, seed)
    };
    Workload::of(&format!("{name}, synthetic"), &trace)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// A replacement policy in a store that allocates space in units of 512 bytes. The index of
    /// this store uses no disk space.
    Policy(PolicyName),
    /// Segmented logs. When the store frees a segment, it copies each used object into a new
    /// segment.
    Reinsertion,
    /// The rules of the default engine without a write buffer. The engine writes every missed
    /// object.
    Webcosm,
    /// The rules of the default engine with a write buffer, which avoids the writes of objects
    /// without a second request.
    WebcosmStaged,
    /// The production code of the default engine, on a device in memory.
    Engine,
    /// The default engine with a write budget of 0. Large new objects then always wait in memory
    /// for a second request.
    EngineDeferred,
    /// An oracle that knows all future requests. Its store has the size of the policies' stores.
    Oracle(Foresight),
    Infinite,
}

/// The simulated caches to compare. The first, LRU, is the baseline.
pub const CONTENDERS: [(Contender, &str); 11] = [
    (Contender::Policy(PolicyName::Lru), "lru"),
    (Contender::Policy(PolicyName::S3Fifo), "s3-fifo"),
    (Contender::Policy(PolicyName::Sieve), "sieve"),
    (Contender::Policy(PolicyName::WTinyLfu), "w-tiny-lfu"),
    (Contender::Policy(PolicyName::Gdsf), "gdsf"),
    (Contender::Reinsertion, "segments-reinsertion"),
    (Contender::Webcosm, "webcosm"),
    (Contender::WebcosmStaged, "webcosm-staged"),
    (Contender::Oracle(Foresight::Time), "belady"),
    (Contender::Oracle(Foresight::SpaceAndTime), "belady-by-size"),
    (Contender::Infinite, "never-evicts"),
];

pub const ENGINES: [(Contender, &str); 2] =
    [(Contender::Engine, "webcosm-engine"), (Contender::EngineDeferred, "webcosm-engine-held")];

pub struct MissTrial<'a> {
    pub workload: &'a Workload,
    /// The size of the disk, in percent of the unique bytes of the workload (the sum of the sizes
    /// of all its URLs).
    pub percent: f64,
    pub contender: Contender,
}

pub fn run(trial: &MissTrial) -> MissTally {
    let lookups = &trial.workload.lookups;
    let capacity = CacheSize::Percent(trial.percent).of(lookups);
    let buffer = capacity / BUFFER;
    match trial.contender {
        Contender::Policy(name) => policy(name, lookups, capacity),
        Contender::Oracle(foresight) => run_oracle(lookups, capacity, foresight, granules),
        Contender::Infinite => run_oracle(lookups, u64::MAX, Foresight::Time, |_| 0),
        Contender::Reinsertion => segments(Rule::Reinsertion, lookups, capacity),
        Contender::Webcosm => segments(Rule::Worth { buffer: 0 }, lookups, capacity),
        Contender::WebcosmStaged => segments(Rule::Worth { buffer }, lookups, capacity),
        Contender::Engine => run_engine(lookups, capacity, None),
        Contender::EngineDeferred => run_engine(lookups, capacity, Some(buffer)),
    }
}

/// Returns the disk bytes of an object in a store that allocates units of 512 bytes.
fn granules(size: u64) -> u64 {
    size.div_ceil(512).saturating_mul(512)
}

fn run_oracle(
    lookups: &Lookups,
    capacity: u64,
    foresight: Foresight,
    charged: fn(u64) -> u64,
) -> MissTally {
    let counts = oracle(&lookups.list, capacity, lookups.urls, foresight, charged);
    MissTally { counts, ..MissTally::default() }
}

fn policy(name: PolicyName, lookups: &Lookups, capacity: u64) -> MissTally {
    let policy = name.make(&PolicySettings { capacity, object_limit: u64::MAX });
    let mut cache = Cache::new(policy, capacity, lookups.urls);
    let mut tally = MissTally::default();
    for &(url, size) in &lookups.list {
        tally.counts.add(size, cache.holds(url));
        cache.get(url, granules(size));
    }
    tally
}

fn segments(rule: Rule, lookups: &Lookups, capacity: u64) -> MissTally {
    let mut cache = SegmentCache::new(rule, capacity, lookups.urls);
    lookups.list.iter().for_each(|&(url, size)| cache.get(url, size));
    cache.tally()
}

/// Returns how much of the possible improvement over LRU this run reaches. The possible improvement
/// is the difference between the misses of LRU and of the better oracle. Returns `None` if the
/// difference is zero.
pub fn gap_closed(of: &MissTally, lru: &MissTally, oracles: &[MissTally]) -> Option<f64> {
    let best = oracles.iter().map(MissTally::misses).min()?;
    let gap = lru.misses().checked_sub(best).filter(|&gap| gap > 0)?;
    Some((lru.misses() as f64 - of.misses() as f64) / gap as f64)
}

/// Returns `a / b`. Returns 1 if both are equal, even for 0 / 0.
pub fn ratio(a: u64, b: u64) -> f64 {
    if a == b { 1.0 } else { a as f64 / b as f64 }
}

/// The virtual time that passes between two look-ups.
const BETWEEN_GETS: Duration = Duration::from_millis(1);

/// The smallest number of object parts for which the store must have room.
const PARTS: u64 = 32;

const ABSENT: u64 = u64::MAX;

/// A part of an object. The store keeps each part of an object as a record.
struct ObjectPart {
    number: u64,
    length: u64,
}

struct Objects {
    store: Store<Memory>,
    /// The size in bytes of each part of an object. The last part may be smaller.
    part_bytes: u64,
    body: Bytes,
    /// The size of each object when it was last put, or [`ABSENT`].
    sizes: Vec<u64>,
}

/// Looks up all objects in a real engine on a device in memory. With `buffer`, this number of bytes
/// of the capacity is a write buffer for large new objects. A repeated look-up is a hit even if the
/// object's size has changed.
fn run_engine(lookups: &Lookups, capacity: u64, buffer: Option<u64>) -> MissTally {
    let memory = buffer.unwrap_or(0);
    let budget = |memory| WriteBudget {
        bytes_a_day: 0,
        memory: usize::try_from(memory).expect("memory can be named"),
        newcomers: Newcomers::Heavy,
    };
    let size = capacity.saturating_sub(memory).max(MINIMUM_SIZE) / 4096 * 4096;
    let settings = StoreSettings {
        record_limit: u32::MAX,
        write_budget: buffer.map(budget),
        ..StoreSettings::with_size(size)
    };
    let part_bytes = (size / PARTS).clamp(4096, RECORD_BODY_LIMIT as u64);
    let store = Store::with(&settings, Memory::default()).expect("a store in memory serves");
    let body = Bytes::from(vec![0x5a; RECORD_BODY_LIMIT]);
    let mut objects =
        Objects { store, part_bytes, body, sizes: vec![ABSENT; lookups.urls as usize] };
    let mut tally = MissTally::default();
    for &(url, size) in &lookups.list {
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
    /// Looks up an object and stores its missing parts. The proxy does the same with range requests
    /// if the response has a strong validator. Returns the number of missing bytes. Returns `None`
    /// if no part is missing.
    fn get(&mut self, url: u32, size: u64) -> Option<u64> {
        self.store.pass(BETWEEN_GETS);
        let stored = self.sizes[url as usize];
        let mut missing: Vec<_> = self.parts(url, size).collect();
        if stored != ABSENT {
            let mut gone: Vec<_> = self.parts(url, stored).collect();
            gone.retain(|part| self.store.length(part.number) != Some(part.length));
            if gone.is_empty() {
                return None;
            }
            if stored == size {
                missing = gone;
            }
        }
        let is_stored = missing.iter().all(|part| self.put(part, size));
        self.sizes[url as usize] = if is_stored { size } else { ABSENT };
        Some(missing.iter().map(|part| part.length).sum())
    }

    fn put(&mut self, part: &ObjectPart, object_bytes: u64) -> bool {
        let length = usize::try_from(part.length).expect("parts are small");
        let record = Record { head: Bytes::new(), body: self.body.slice(..length) };
        self.store.put_part(part.number, &record, object_bytes)
    }

    fn parts(&self, url: u32, size: u64) -> impl Iterator<Item = ObjectPart> + use<> {
        let part_bytes = self.part_bytes;
        (0..size.div_ceil(part_bytes).max(1)).map(move |number| ObjectPart {
            number: u64::from(url) << 32 | number,
            length: (size - number * part_bytes).min(part_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::caches::cache::Counts;

    fn tally(workload: &Workload, percent: f64, contender: Contender) -> MissTally {
        run(&MissTrial { workload, percent, contender })
    }

    #[test]
    fn every_contender_sees_every_get_and_none_hits_more_than_repeats() {
        for name in synthetic() {
            let workload = make(name, true, 1);
            let repeats = tally(&workload, 1.0, Contender::Infinite).counts;
            assert!(workload.name.ends_with(", synthetic"));
            for (contender, name) in CONTENDERS {
                let counts = tally(&workload, 10.0, contender).counts;
                assert_eq!((counts.gets, counts.bytes), (repeats.gets, repeats.bytes), "{name}");
                assert!(counts.hits <= repeats.hits, "{name}");
            }
        }
    }

    #[test]
    fn the_rules_miss_less_than_lru_and_reinsertion_but_more_than_the_oracle() {
        for name in ["bu95", "dec", "cdn", "registry"] {
            let workload = make(name, true, 1);
            let misses = |contender| tally(&workload, 10.0, contender).misses();
            let all = [
                misses(Contender::Oracle(Foresight::SpaceAndTime)),
                misses(Contender::Webcosm),
                misses(Contender::Reinsertion),
            ];
            assert!(all.is_sorted(), "{name}: {all:?}");
            assert!(all[1] * 100 < misses(Contender::Policy(PolicyName::Lru)) * 95, "{name}");
        }
    }

    #[test]
    fn a_write_buffer_saves_writes() {
        let workload = make("dec", true, 1);
        let [all, staged] = [Contender::Webcosm, Contender::WebcosmStaged]
            .map(|contender| tally(&workload, 10.0, contender));
        assert!(staged.admitted * 3 < all.admitted * 2, "{} {}", staged.admitted, all.admitted);
    }

    #[test]
    fn the_engine_hits_about_as_often_as_its_model_and_writes_less_when_it_defers() {
        let workload = make("dec", true, 1);
        let of = |contender| tally(&workload, 20.0, contender);
        let [model, engine, held] =
            [Contender::Webcosm, Contender::Engine, Contender::EngineDeferred].map(of);
        assert_eq!(
            (engine.counts.gets, engine.counts.bytes),
            (model.counts.gets, model.counts.bytes)
        );
        let (ours, models) = (engine.misses() as f64, model.misses() as f64);
        assert!((0.95..1.1).contains(&(ours / models)), "{ours} {models}");
        let written = |tally: &MissTally| tally.admitted + tally.copied;
        assert!(
            written(&held) * 4 < written(&engine) * 3,
            "{} {}",
            written(&held),
            written(&engine)
        );
    }

    #[test]
    fn the_gap_is_between_lru_and_the_better_oracle() {
        let of = |misses| MissTally {
            counts: Counts { gets: misses, ..Counts::default() },
            ..MissTally::default()
        };
        let gap = |ours| gap_closed(&of(ours), &of(100), &[of(80), of(60)]);
        assert_eq!([gap(100), gap(70), gap(110)], [Some(0.0), Some(0.75), Some(-0.25)]);
        assert_eq!(gap_closed(&of(1), &of(5), &[of(5)]), None);
        assert_eq!((ratio(0, 0), ratio(1, 2)), (1.0, 0.5));
    }
}
