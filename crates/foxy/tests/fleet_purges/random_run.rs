//! The random run: purges at random nodes, in phases without and with faults. Readers and the
//! purgers themselves request what was purged.

use crate::checker::{Acknowledged, Checker, add, percentile};
use crate::engine::{EngineKind, EngineServer, on_each_engine};
use crate::faulty::Subjects;
use crate::fleet::{Fleet, NAMES, TOKEN};
use crate::ground::{Ground, SET_UP};
use crate::plan::{Fault, Faults, Phase};
use crate::support::black_box::{number, variable};
use crate::support::namespace::{self, PROGRESS};
use crate::support::run_record::RunRecord;
use crate::support::{Foxy, Response, not_run};
use crate::versions::Versions;
use foxy_base::{Instant, Random, clock};
use foxy_testkit::http::{head_length, header};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Number of purges in the short run, which runs with all other tests.
const SHORT: u64 = 60;
/// The phases of a longer run are longer by this factor.
const LONGER: u64 = 4;
/// Number of purges at the same time, without faults and with faults.
const CALM_PURGERS: u64 = 2;
const PURGERS: u64 = 8;
const READERS: u64 = 3;
const OBJECTS: u64 = 24;
const TAGS: u64 = 4;
/// With this low rate, each node keeps copies of many responses of the other nodes.
const KEEPS_COPIES: [&str; 2] = ["--fleet-hot-rate", "2"];
/// Time limits of a connection and of an answer.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(8);
/// Pause before a purge that failed is tried again at another node.
const RETRY: Duration = Duration::from_millis(50);
/// The leases of killed processes end within this time.
const CALM: Duration = Duration::from_millis(2100);
/// Bounds of the 99th percentile of acknowledgements, in milliseconds.
const HEALTHY: f64 = 50.0;
const PARTITIONED: f64 = 2500.0;

struct Run {
    seed: u64,
    origin: Versions,
    proxies: Vec<SocketAddr>,
    admins: Vec<SocketAddr>,
    subjects: Subjects,
    checker: Checker,
    is_over: AtomicBool,
}

/// Returns the path of an object. Its first segment is its tag.
fn path(object: u64) -> String {
    let end = if object.is_multiple_of(6) { "-large" } else { "" };
    format!("/t{}/{object}{end}", object % TAGS)
}

impl Run {
    fn start(ground: Arc<Ground>, engine: EngineServer, seed: u64) -> Self {
        let address = |text: String| text.parse().expect("an address");
        let nodes = 0..NAMES.len();
        Self {
            seed,
            origin: Versions::start_at(ground.origin()),
            proxies: nodes.clone().map(|node| address(ground.proxy(node))).collect(),
            admins: nodes.map(|node| address(ground.admin(node))).collect(),
            subjects: Subjects {
                fleet: Mutex::new(Fleet::start_with(ground, engine.url(), &KEEPS_COPIES)),
                engine: Mutex::new(engine),
                busy: Mutex::default(),
            },
            checker: Checker::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Requests an object at a node, and checks the answer.
    fn get(&self, node: usize, path: &str) {
        let known = self.checker.known(path);
        let url = self.origin.url(path);
        let text = format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        match ask(self.proxies[node], &text) {
            Asked::Answered(answer) => self.checker.check(&answer, path, known, NAMES[node]),
            Asked::Cut => add(&self.checker.counts.cut_answers, 1),
            Asked::NotReached => std::thread::sleep(Duration::from_millis(2)),
        }
    }

    fn read(&self, mut random: Random) {
        while !self.is_over.load(Ordering::Acquire) {
            let path = path(random.below(OBJECTS));
            self.get(below(&mut random, NAMES.len()), &path);
            std::thread::sleep(Duration::from_millis(random.below(4)));
        }
    }

    /// Purges until all purges of a phase are done.
    fn purge_all(&self, left: &AtomicU64, phase: Phase, mut random: Random) {
        let take = |left: u64| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            self.purge(phase, &mut random);
            std::thread::sleep(Duration::from_millis(random.below(phase.longest_pause())));
        }
    }

    /// Purges one object, or all objects of a tag, until a node acknowledges the purge. Then
    /// requests the object at all nodes.
    fn purge(&self, phase: Phase, random: &mut Random) {
        let object = random.below(OBJECTS);
        let (is_of_tag, is_hard) = (random.chance(0.2), random.chance(0.5));
        let objects: Vec<_> = (0..OBJECTS)
            .filter(|other| *other == object || is_of_tag && other % TAGS == object % TAGS)
            .map(|other| (path(other), self.origin.change(&path(other))))
            .collect();
        let hard = if is_hard { "Foxy-Purge: hard\r\n" } else { "" };
        let url = self.origin.url(&path(object));
        let by_url = format!("PURGE {url} HTTP/1.1\r\nHost: x\r\n{hard}Connection: close\r\n\r\n");
        let hard = if is_hard { "&hard" } else { "" };
        let tag = object % TAGS;
        loop {
            let node = below(random, NAMES.len());
            let by_tag = format!(
                "POST /purge?tag=t{tag}{hard} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\
                 Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n",
                self.admins[node]
            );
            let begun = clock::monotonic();
            let asked = if is_of_tag {
                ask(self.admins[node], &by_tag)
            } else {
                ask(self.proxies[node], &by_url)
            };
            let took = clock::monotonic().since(begun);
            match asked {
                Asked::Answered(answer) if answer.status == 200 => {
                    let purge = Acknowledged { phase, took };
                    self.checker.acknowledge(&objects, purge, NAMES[node]);
                    break;
                }
                Asked::Answered(answer) => {
                    let text = format!("{} refused a purge: {}", NAMES[node], answer.status);
                    self.checker.note(&format!("{text} {}", answer.cache_status()));
                    add(&self.checker.counts.refused, 1);
                }
                Asked::Cut => add(&self.checker.counts.unknown, 1),
                Asked::NotReached => {}
            }
            std::thread::sleep(RETRY);
        }
        for node in 0..NAMES.len() {
            self.get(node, &path(object));
        }
    }

    fn phase(&self, number: u64, phase: Phase, purges: u64, faults: &mut [Faults]) {
        let (left, is_over) = (AtomicU64::new(purges), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let is_over = &is_over;
            for faults in faults {
                scope.spawn(move || self.subjects.disturb(faults, &self.checker, is_over));
            }
            std::thread::scope(|scope| {
                let count = if phase == Phase::Healthy { CALM_PURGERS } else { PURGERS };
                for purger in 0..count {
                    let random = Random::new(self.seed ^ (number << 32) ^ (purger << 24));
                    let left = &left;
                    scope.spawn(move || self.purge_all(left, phase, random));
                }
            });
            is_over.store(true, Ordering::Release);
        });
        if phase != Phase::Healthy {
            self.subjects.fleet.lock().expect("sound").wait_for_leases();
            std::thread::sleep(CALM);
        }
    }

    fn run(&self, purges: u64, has_links: bool) {
        std::thread::scope(|scope| {
            for reader in 0..READERS {
                scope.spawn(move || self.read(Random::new(self.seed * 100 + reader)));
            }
            let mut phases = Phase::ALL.map(|(phase, count)| {
                let faults = [1, 2].map(|thread| self.seed * 10 + thread);
                (phase, count, faults.map(|seed| Faults::new(seed, phase, has_links)))
            });
            let (mut left, begun) = (purges, clock::monotonic());
            for number in 0.. {
                let at = usize::try_from(number).expect("small") % phases.len();
                let (phase, count, faults) = &mut phases[at];
                let now = left.min(*count * if purges > SHORT { LONGER } else { 1 });
                self.phase(number, *phase, now, faults);
                left -= now;
                self.tell(purges - left, purges, begun);
                if left == 0 {
                    break;
                }
            }
            self.is_over.store(true, Ordering::Release);
        });
    }

    /// Returns the number of copies that the nodes have kept since they started.
    fn copies(&self) -> u64 {
        let fleet = self.subjects.fleet.lock().expect("sound");
        let copies = |node: &Foxy| node.metric::<u64>("foxy_proxy_fleet_copies_total");
        fleet.nodes.iter().flatten().map(copies).sum()
    }

    fn tell(&self, done: u64, purges: u64, begun: Instant) {
        if purges == SHORT {
            return;
        }
        let counts = &self.checker.counts;
        let p99 = |(phase, _)| percentile(&self.checker.times(phase), 99).round();
        namespace::tell(&format!(
            "{PROGRESS}{done} of {purges} purges after {:.0?}, seed {}: {} hits, {} stale, {} \
             refused; p99 {:?} ms",
            clock::monotonic().since(begun),
            self.seed,
            counts.hits.load(Ordering::Relaxed),
            counts.stale.load(Ordering::Relaxed),
            counts.refused.load(Ordering::Relaxed),
            Phase::ALL.map(p99),
        ));
    }
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("small")
}

enum Asked {
    Answered(Response),
    /// The answer did not come to its end.
    Cut,
    /// The request did not reach the node.
    NotReached,
}

fn ask(to: SocketAddr, text: &str) -> Asked {
    let Ok(mut stream) = TcpStream::connect_timeout(&to, CONNECT) else { return Asked::NotReached };
    let mut bytes = Vec::new();
    let is_read = stream.set_read_timeout(Some(ANSWER)).is_ok()
        && stream.write_all(text.as_bytes()).is_ok()
        && stream.read_to_end(&mut bytes).is_ok();
    let Some(length) = head_length(&bytes).filter(|_| is_read) else { return Asked::Cut };
    let head = String::from_utf8_lossy(&bytes[..length]);
    let body = header(&head, "content-length").and_then(|length| length.parse().ok());
    if body.is_some_and(|body: usize| body == bytes.len() - length) {
        Asked::Answered(Response::parse(&bytes))
    } else {
        Asked::Cut
    }
}

on_each_engine!(no_answer_is_stale_while_nodes_links_and_engine_fail_and_entries_vanish);

fn no_answer_is_stale_while_nodes_links_and_engine_fail_and_entries_vanish(kind: EngineKind) {
    const TEST: &str = "no_answer_is_stale_while_nodes_links_and_engine_fail_and_entries_vanish";
    if namespace::is_inside() {
        return check(kind, Ground::namespaces());
    }
    let module = match kind {
        EngineKind::Nats => "on_nats",
        EngineKind::Redis => "on_redis",
    };
    if !namespace::rerun(&format!("random_run::{module}::{TEST}"), SET_UP) {
        check(kind, Ground::loopback());
        not_run("links that go down between nodes of a fleet", "no network namespaces here");
    }
}

fn check(kind: EngineKind, ground: Ground) {
    let ground = Arc::new(ground);
    let Some(engine) = kind.start_on(&ground, "random purges of a fleet") else { return };
    let (purges, seed) = (number("FOXY_FLEET_PURGES", SHORT), number("FOXY_FLEET_RUN_SEED", 1));
    let has_links = ground.has_links();
    let run = Run::start(ground, engine, seed);
    run.run(purges, has_links);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counts = &run.checker.counts;
    let p99 = |phase| percentile(&run.checker.times(phase), 99);
    let is_fresh = run.checker.findings().is_empty();
    let is_fast = p99(Phase::Healthy) < HEALTHY && p99(Phase::Partitioned) <= PARTITIONED;
    record(&run, purges, is_fresh && is_fast);
    assert!(
        is_fresh,
        "{}\nrepeat with FOXY_FLEET_RUN_SEED={seed} FOXY_FLEET_PURGES={purges}",
        run.checker.findings()
    );
    let acknowledged = run.checker.acknowledged() as u64;
    assert_eq!(acknowledged, purges, "every purge was acknowledged in the end");
    assert!(count(&counts.hits) > purges, "too few hits to prove anything");
    assert!(run.copies() > 0, "no node kept a copy");
    assert!(purges == SHORT || is_fast, "acknowledgements were slow: see the record");
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn record(run: &Run, purges: u64, held: bool) {
    let counts = &run.checker.counts;
    let mut record = RunRecord::new("cargo test --test fleet_purges", run.seed, 1.0);
    let numbers = [
        ("hits", &counts.hits),
        ("answers_renewed_by_304", &counts.validated),
        ("answers_fetched", &counts.fetched),
        ("answers_without_version", &counts.without_version),
        ("answers_cut", &counts.cut_answers),
        ("stale_answers_after_acknowledgement", &counts.stale),
        ("refused_purges", &counts.refused),
        ("purges_with_unknown_outcome", &counts.unknown),
        ("removed_entries", &counts.removed_entries),
    ];
    for (name, counter) in numbers {
        record.measure(name, "foxy", counter.load(Ordering::Relaxed) as f64, "count");
    }
    for fault in Fault::ALL {
        record.measure(fault.name(), "foxy", run.checker.faults(fault) as f64, "count");
    }
    record.measure("purges", "foxy", purges as f64, "count");
    record.measure("copies", "foxy", run.copies() as f64, "count");
    record.measure("requests_at_the_origin", "foxy", run.origin.requests() as f64, "count");
    for (phase, _) in Phase::ALL {
        let (times, phase) = (run.checker.times(phase), phase.name());
        record.measure(&format!("acknowledged_{phase}"), "foxy", times.len() as f64, "count");
        for (name, share) in [("p50", 50), ("p99", 99), ("max", 100)] {
            let time = percentile(&times, share);
            record.measure(&format!("acknowledgement_{phase}_{name}"), "foxy", time, "ms");
        }
    }
    record.write(variable("FOXY_FLEET_RECORD").as_deref(), held);
}
