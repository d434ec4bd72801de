//! Misses of the default engine's rules beside classical policies and two oracles, at equal bytes
//! of disk. A model: each store is charged for what its records take, object by object; no disk is
//! touched and no time passes. The engine itself can run beside it (`production`).

use super::production;
use crate::simulation::caches::belady::{Foresight, oracle};
use crate::simulation::caches::cache::{Cache, Counts};
use crate::simulation::caches::policies::{CacheSize, Lookups};
use crate::simulation::caches::segments::{Rule, SegmentCache};
use foxy_schemes::{PolicyName, PolicySettings};
use foxy_workload::Trace;
use foxy_workload::trace::catalogue::{CDN, REGISTRY};
use foxy_workload::trace::synthetic::{BU95, DEC, IRCACHE, TABLE1, TraceModel, generate};

/// Sizes of the disk, in percent of a workload's unique bytes.
pub const SIZES: [f64; 4] = [1.0, 5.0, 10.0, 20.0];

/// Gets of a synthetic trace, and how much shorter it is when quick.
const GETS: usize = 1_000_000;
const QUICK: usize = 50;

/// Of so many bytes of disk, the staged variant has one of memory, which is taken off its disk.
const STAGE: u64 = 50;

/// A stream of gets.
pub struct Workload {
    /// Its name; one that is synthetic says so.
    pub name: String,
    lookups: Lookups,
}

impl Workload {
    /// The gets of a log.
    pub fn of(name: &str, trace: &Trace) -> Self {
        Self { name: name.into(), lookups: Lookups::of(trace) }
    }
}

/// How the synthetic workloads are made, each by its name.
pub fn synthetic() -> Vec<&'static str> {
    let models = MODELS.iter().map(|(model, _)| model.name);
    models.chain([CDN.name, REGISTRY.name]).collect()
}

/// Models with the gets of their traces: those of Boston University are all there are of it.
const MODELS: [(TraceModel, usize); 4] =
    [(BU95, 135_382), (DEC, GETS), (TABLE1, GETS), (IRCACHE, GETS)];

/// Makes the synthetic workload of that name.
///
/// # Panics
/// When there is none.
pub fn make(name: &str, is_quick: bool, seed: u64) -> Workload {
    let shorter = if is_quick { QUICK } else { 1 };
    let trace = if let Some((model, gets)) = MODELS.iter().find(|(model, _)| model.name == name) {
        generate(model, gets / shorter, seed)
    } else {
        let model = [CDN, REGISTRY].into_iter().find(|model| model.name == name);
        let model = model.expect("one of the synthetic workloads");
        model.generate(model.gets / shorter, seed)
    };
    Workload::of(&format!("{name}, synthetic"), &trace)
}

/// Who decides what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// A policy of the store, in a store of 512-byte granules whose index takes no disk.
    Policy(PolicyName),
    /// Segments with plain reinsertion.
    Reinsertion,
    /// The default engine's rules, everything that is missed written.
    Webcosm,
    /// The same, with a stage in memory so that less is written.
    WebcosmStaged,
    /// The default engine itself, on a device in memory.
    Engine,
    /// The same with nothing to write a day, so that heavy newcomers are always held in memory.
    EngineHeld,
    /// An oracle, in the same store as the policies.
    Oracle(Foresight),
    /// A cache that never evicts.
    Infinite,
}

/// All of them; the first is what the others are compared with.
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

/// The default engine itself, beside the model of its rules.
pub const ENGINES: [(Contender, &str); 2] =
    [(Contender::Engine, "webcosm-engine"), (Contender::EngineHeld, "webcosm-engine-held")];

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissTally {
    /// Hits and misses.
    pub counts: Counts,
    /// Bytes of records written because they were missed; only segments count them, and the engine
    /// all but copies.
    pub admitted: u64,
    /// Bytes of records copied forward; only segments count them.
    pub copied: u64,
}

impl MissTally {
    /// Gets that missed.
    pub const fn misses(&self) -> u64 {
        self.counts.gets - self.counts.hits
    }

    /// Bytes that were missed.
    pub const fn missed_bytes(&self) -> u64 {
        self.counts.bytes - self.counts.hit_bytes
    }
}

/// A workload in front of a disk.
pub struct MissTrial<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The disk, in percent of the workload's unique bytes.
    pub percent: f64,
    /// Who decides.
    pub contender: Contender,
}

/// Runs it from an empty disk.
pub fn run(trial: &MissTrial) -> MissTally {
    let lookups = &trial.workload.lookups;
    let (list, urls) = (&lookups.list, lookups.urls);
    let capacity = CacheSize::Percent(trial.percent).of(lookups);
    let only = |counts| MissTally { counts, ..MissTally::default() };
    match trial.contender {
        Contender::Policy(name) => only(policy(name, list, capacity, urls)),
        Contender::Oracle(foresight) => only(oracle(list, capacity, urls, foresight, granules)),
        Contender::Infinite => only(oracle(list, u64::MAX, urls, Foresight::Time, |_| 0)),
        Contender::Reinsertion => segments(Rule::Reinsertion, list, capacity, urls),
        Contender::Webcosm => segments(Rule::Worth { stage: 0 }, list, capacity, urls),
        Contender::WebcosmStaged => {
            segments(Rule::Worth { stage: capacity / STAGE }, list, capacity, urls)
        }
        Contender::Engine => production::run(list, capacity, urls, None),
        Contender::EngineHeld => production::run(list, capacity, urls, Some(capacity / STAGE)),
    }
}

/// Bytes that an object takes in a classical store.
fn granules(size: u64) -> u64 {
    size.div_ceil(512).saturating_mul(512)
}

fn policy(name: PolicyName, list: &[(u32, u64)], capacity: u64, urls: u32) -> Counts {
    let policy = name.make(&PolicySettings { capacity, object_limit: u64::MAX });
    let mut cache = Cache::new(policy, capacity, urls);
    let mut counts = Counts::default();
    for &(url, size) in list {
        counts.add(size, cache.holds(url));
        cache.get(url, granules(size));
    }
    counts
}

fn segments(rule: Rule, list: &[(u32, u64)], capacity: u64, urls: u32) -> MissTally {
    let mut cache = SegmentCache::new(rule, capacity, urls);
    list.iter().for_each(|&(url, size)| cache.get(url, size));
    let done = cache.counts();
    MissTally { counts: done.counts, admitted: done.admitted, copied: done.copied }
}

/// The share of the gap between LRU's misses and an oracle's that a run closes; the better of the
/// two oracles counts. None where there is no gap.
pub fn gap_closed(of: &MissTally, lru: &MissTally, oracles: &[MissTally]) -> Option<f64> {
    let best = oracles.iter().map(MissTally::misses).min()?;
    let gap = lru.misses().checked_sub(best).filter(|&gap| gap > 0)?;
    Some((lru.misses() as f64 - of.misses() as f64) / gap as f64)
}

/// `a / b`; 1 when both are none.
pub fn times(a: u64, b: u64) -> f64 {
    if a == b { 1.0 } else { a as f64 / b as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_rules_miss_less_than_lru_and_reinsertion_and_the_oracle_less_than_they() {
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
    fn a_stage_saves_writes() {
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
            [Contender::Webcosm, Contender::Engine, Contender::EngineHeld].map(of);
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
        assert_eq!((times(0, 0), times(1, 2)), (1.0, 0.5));
    }
}
