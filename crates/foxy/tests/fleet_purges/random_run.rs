//! The random run: purges at random nodes while nodes are killed, the engine is killed, and entries
//! leave the log. A checker compares each answer with the purges that were acknowledged before its
//! request.

use crate::fleet::{Fleet, NAMES, Versions, version};
use crate::redis::{LOG, Redis};
use crate::support::black_box::{number, variable};
use crate::support::run_record::RunRecord;
use crate::support::{Response, not_run};
use foxy_base::{Random, clock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

const OBJECTS: u64 = 20;
/// Number of purges in the short run, which runs with all other tests.
const SHORT: u64 = 60;
/// Mean number of purges between two faults.
const PURGES_PER_FAULT: u64 = 15;
const READERS: u64 = 3;

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    validated: AtomicU64,
    other_answers: AtomicU64,
    stale: AtomicU64,
    refused: AtomicU64,
    node_kills: AtomicU64,
    engine_kills: AtomicU64,
    engine_wipes: AtomicU64,
    removed_entries: AtomicU64,
}

struct Run {
    origin: Versions,
    fleet: RwLock<Fleet>,
    /// The newest version of each object whose purge was acknowledged.
    acknowledged: Mutex<BTreeMap<String, u64>>,
    counts: Counts,
    is_over: AtomicBool,
    findings: Mutex<Vec<String>>,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Run {
    fn read(&self, seed: u64) {
        let mut random = Random::new(seed);
        while !self.is_over.load(Ordering::Acquire) {
            let path = format!("/{}", random.below(OBJECTS));
            let number = usize::try_from(random.below(NAMES.len() as u64)).expect("small");
            let known = self.acknowledged.lock().expect("sound").get(&path).copied().unwrap_or(0);
            let fleet = self.fleet.read().expect("sound");
            let Some(node) = &fleet.nodes[number] else {
                drop(fleet);
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let answer = node.get(&self.origin.url(&path));
            drop(fleet);
            self.check(&answer, &path, known, NAMES[number]);
        }
    }

    fn check(&self, answer: &Response, path: &str, known: u64, name: &str) {
        let (status, Some(got)) = (answer.cache_status(), version(answer)) else {
            return add(&self.counts.other_answers);
        };
        if got < known {
            add(&self.counts.stale);
            let text = format!("{name} answered {path} with version {got} < {known}: {status}");
            self.findings.lock().expect("sound").push(text);
        }
        match status {
            status if status.contains("; hit") => add(&self.counts.hits),
            status if status.contains("fwd-status=304") => add(&self.counts.validated),
            _ => {}
        }
    }

    /// Purges an object. Returns the time until the acknowledgement.
    fn purge(&self, random: &mut Random) -> Option<Duration> {
        let path = format!("/{}", random.below(OBJECTS));
        let number = usize::try_from(random.below(NAMES.len() as u64)).expect("small");
        let newest = self.origin.change(&path);
        let fleet = self.fleet.read().expect("sound");
        fleet.nodes[number].as_ref()?;
        let begun = clock::monotonic();
        let answer = fleet.purge(number, &self.origin.url(&path));
        let took = clock::monotonic().since(begun);
        if answer.status != 200 {
            add(&self.counts.refused);
            return None;
        }
        let mut acknowledged = self.acknowledged.lock().expect("sound");
        let known = acknowledged.entry(path).or_default();
        *known = newest.max(*known);
        Some(took)
    }

    fn fault(&self, redis: &mut Redis, random: &mut Random) {
        let number = usize::try_from(random.below(NAMES.len() as u64)).expect("small");
        match random.below(6) {
            0 | 1 => {
                let mut fleet = self.fleet.write().expect("sound");
                fleet.kill(number);
                add(&self.counts.node_kills);
            }
            2 | 3 => {
                let mut fleet = self.fleet.write().expect("sound");
                for other in 0..NAMES.len() {
                    if fleet.nodes[other].is_none() {
                        fleet.begin(other);
                    }
                }
            }
            4 => {
                if random.chance(0.3) {
                    redis.kill_and_wipe();
                    add(&self.counts.engine_wipes);
                } else {
                    redis.kill();
                }
                add(&self.counts.engine_kills);
                std::thread::sleep(Duration::from_millis(random.below(3000)));
                redis.restart();
            }
            _ => {
                let last = redis.run(&["XLEN", LOG]);
                let last = last.trim_start_matches(':').parse().unwrap_or(0);
                let removed = (0..3).filter(|_| redis.remove(last - random.below(3).min(last)));
                let removed = removed.count() as u64;
                self.counts.removed_entries.fetch_add(removed, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn no_answer_is_stale_while_nodes_and_engine_die_and_entries_vanish() {
    let Some(mut redis) = Redis::start("always") else {
        return not_run("random purges of a fleet", "the machine has no redis-server");
    };
    let (purges, seed) = (number("FOXY_FLEET_PURGES", SHORT), number("FOXY_FLEET_RUN_SEED", 1));
    let run = Run {
        origin: Versions::start(),
        fleet: RwLock::new(Fleet::start(&redis)),
        acknowledged: Mutex::default(),
        counts: Counts::default(),
        is_over: AtomicBool::new(false),
        findings: Mutex::default(),
    };
    let mut random = Random::new(seed);
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let run = &run;
            scope.spawn(move || run.read(seed * 100 + reader));
        }
        for _ in 0..purges {
            if random.below(PURGES_PER_FAULT) == 0 {
                run.fault(&mut redis, &mut random);
            }
            times.extend(run.purge(&mut random));
            std::thread::sleep(Duration::from_millis(random.below(20)));
        }
        run.is_over.store(true, Ordering::Release);
    });
    times.sort_unstable();
    let is_fresh = run.counts.stale.load(Ordering::Relaxed) == 0;
    record(&run.counts, seed, purges, &times, is_fresh);
    let findings = run.findings.lock().expect("sound").join("\n");
    assert!(is_fresh, "seed {seed}:\n{findings}");
    assert!(times.len() as u64 > purges / 10, "only {} acknowledgements", times.len());
    assert!(run.counts.hits.load(Ordering::Relaxed) > purges, "too few hits to prove anything");
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn record(counts: &Counts, seed: u64, purges: u64, times: &[Duration], held: bool) {
    let mut record = RunRecord::new("cargo test --test fleet_purges", seed, 1.0);
    let numbers = [
        ("hits", &counts.hits),
        ("answers_renewed_by_304", &counts.validated),
        ("other_answers", &counts.other_answers),
        ("stale_answers_after_acknowledgement", &counts.stale),
        ("refused_purges", &counts.refused),
        ("node_kills", &counts.node_kills),
        ("engine_kills", &counts.engine_kills),
        ("engine_wipes", &counts.engine_wipes),
        ("removed_entries", &counts.removed_entries),
    ];
    for (name, counter) in numbers {
        record.measure(name, "foxy", counter.load(Ordering::Relaxed) as f64, "count");
    }
    record.measure("purges", "foxy", purges as f64, "count");
    record.measure("acknowledged_purges", "foxy", times.len() as f64, "count");
    for (name, share) in [("p50", 50), ("p99", 99), ("max", 100)] {
        let place = (times.len() * share).div_ceil(100).saturating_sub(1);
        let time = times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        record.measure(&format!("acknowledgement_{name}"), "foxy", time, "ms");
    }
    record.write(variable("FOXY_FLEET_RECORD").as_deref(), held);
}
