//! Tests foxy in a control group of 512 MB with hostile and well-behaved clients at the same time.
//! Each kind of flood tries to exhaust a different resource of foxy. Well-behaved clients must be
//! served almost as fast as without the flood. foxy's memory must stay bounded, and must shrink
//! afterwards.
//!
//! `docs/proofs.md` describes the test at full size.

mod frames;
mod group;
mod honest;
mod kinds;
mod origin;
mod subject;
#[path = "../support/mod.rs"]
mod support;

use foxy_base::clock;
use foxy_report::{Measure, Record, RequestClass};
use honest::{Measured, Mixture, Phase, fetch_all};
use kinds::{ALL, Flood, Seen, Target, begin};
use origin::Origin;
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;
use subject::Subject;
use support::black_box::variable;
use support::run_record::RunRecord;
use tokio::task::LocalSet;

/// Limit in bytes for foxy's memory, without the page cache.
const BOUND: u64 = 400 << 20;
/// After the flood, foxy's memory may exceed its value before the flood by at most this number of
/// bytes.
const BACK: u64 = 32 << 20;
/// Memory in bytes that foxy with default settings uses once its memory cache is full. If the value
/// before the flood is smaller, the cache was not full yet. The test then uses this value instead.
const FILLED: u64 = 96 << 20;
/// Time limit after a flood for foxy's memory use to fall.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// Limit on the slowdown of well-behaved clients. The slowdown is the 99th percentile of their
/// request times during a flood, divided by the 99th percentile without a flood.
const SLOWER: f64 = 3.0;
/// Longest time of a single request of a well-behaved client, in microseconds. The percentile alone
/// could miss long delays, because a waiting client sends no other request.
const LONGEST: u64 = 1_000_000;
/// A slowdown counts only above this request time in microseconds. Shorter times differ by chance
/// on any machine.
const LEAST: u64 = 2_000;

/// The size of a test run: number of connections, duration of phases, and number of objects.
#[derive(Clone, Copy)]
struct Size {
    smaller: u64,
    before: Duration,
    during: Duration,
    disk_objects: u64,
    /// Whether the test judges request times. On a machine that also does other work, request times
    /// mean nothing.
    timed: bool,
}

const SMALL: Size = Size {
    smaller: 10,
    before: Duration::from_millis(500),
    during: Duration::from_millis(1_200),
    disk_objects: 200,
    timed: false,
};
const FULL: Size = Size {
    smaller: 1,
    before: Duration::from_secs(6),
    during: Duration::from_secs(9),
    disk_objects: 4_000,
    timed: true,
};

/// Floods in the small run. Each tries to exhaust a different shared resource.
const FEW: [&str; 4] =
    ["http2-hits-unread", "http1-heads", "idle-from-one-address", "http2-settings"];

/// Results of a flood.
struct Outcome {
    name: &'static str,
    before: Measured,
    during: Measured,
    memory_before: u64,
    memory_most: u64,
    sockets: u64,
    back: Option<Duration>,
    opened: u64,
    ended: u64,
    calmed: u64,
    alive: bool,
}

#[test]
fn floods_take_neither_memory_nor_time_from_honest_clients() {
    let wanted = variable("FOXY_FLOODS");
    let (size, names) = match wanted.as_deref() {
        None => (SMALL, FEW.to_vec()),
        Some("full") => (FULL, ALL.iter().map(|(name, _)| *name).collect()),
        Some(names) => (FULL, names.split(',').collect()),
    };
    raise_descriptors();
    let origin = Origin::start();
    let mut record = RunRecord::new("cargo test --test floods", 1, 1.0 / size.smaller as f64);
    let mut missed = Vec::new();
    for wanted in names {
        let found = ALL.iter().find(|(name, _)| *name == wanted);
        let (name, flood) = *found.unwrap_or_else(|| panic!("there is no flood {wanted}"));
        match flood_once(name, flood, origin, size) {
            Ok(outcome) => {
                outcome.write(&mut record);
                let all = outcome.missed(flood, size);
                say(&format!("{}{}", outcome.line(), if all.is_empty() { "ok" } else { "MISSED" }));
                missed.extend(all.into_iter().map(|why| format!("{name}: {why}")));
            }
            Err(why) => return say(&format!("NOT RUN: floods need a control group: {why}")),
        }
    }
    record.write(variable("FOXY_FLOODS_RECORD").as_deref(), missed.is_empty());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Starts foxy, runs a flood, and observes foxy after the flood.
fn flood_once(
    name: &'static str,
    flood: Flood,
    origin: Origin,
    size: Size,
) -> Result<Outcome, String> {
    let mut subject = Subject::start(flood, &origin, size.smaller)?;
    let names = flood == Flood::SilentNames;
    let mixture = Mixture { proxy: subject.proxy, origin, disk: size.disk_objects, names };
    let failed = fetch_all(
        subject.proxy,
        flood.stored(&origin).into_iter().chain(mixture.stored()).collect(),
    );
    assert!(failed.is_empty(), "{name}: {} objects were not stored: {}", failed.len(), failed[0]);
    // Ignores the first measurements after the cache was filled, because they are not typical.
    Phase::begin(mixture, 1).run_for(size.before / 3);
    subject.memory.most();
    let before = Phase::begin(mixture, 2).run_for(size.before);
    let memory_before = subject.memory.most();
    subject.memory.sockets();
    let (stop, until) = tokio::sync::oneshot::channel::<()>();
    let (tell, begun) = channel();
    let target = Target { proxy: subject.proxy, origin, smaller: size.smaller };
    let flooder = spawn(move || {
        give_way();
        let (tasks, seen) = (LocalSet::new(), Rc::new(Seen::default()));
        begin(flood, target, &tasks, &seen);
        tell.send(()).expect("somebody waits");
        let _either_way_it_is_over = runtime().block_on(tasks.run_until(until));
        (seen.opened.get(), seen.ended.get(), seen.calmed.get())
    });
    begun.recv().expect("it begins");
    let during = Phase::begin(mixture, 3).run_for(size.during);
    drop(stop);
    let (opened, ended, calmed) = flooder.join().expect("a flood ends when it is told to");
    let (memory_most, sockets) = (subject.memory.most(), subject.memory.sockets());
    let back = given_back(&subject, memory_before.max(FILLED) + BACK);
    let alive = subject.is_running();
    Ok(Outcome {
        name,
        before,
        during,
        memory_before,
        memory_most,
        sockets,
        back,
        opened,
        ended,
        calmed,
        alive,
    })
}

/// Returns how long foxy's memory took to fall to `enough` bytes. Returns `None` if it took longer
/// than the time limit.
fn given_back(subject: &Subject, enough: u64) -> Option<Duration> {
    let begun = clock::monotonic();
    loop {
        let passed = clock::monotonic().since(begun);
        if subject.memory.now() <= enough {
            return Some(passed);
        }
        if passed > BACK_WITHIN {
            return None;
        }
        sleep(Duration::from_millis(50));
    }
}

impl Phase {
    fn run_for(self, time: Duration) -> Measured {
        sleep(time);
        self.end()
    }
}

impl Outcome {
    /// Returns a sentence for each limit that foxy exceeded during or after the flood.
    fn missed(&self, flood: Flood, size: Size) -> Vec<String> {
        let mut missed = Vec::new();
        if !self.alive {
            missed.push("foxy was killed or ended".to_owned());
        }
        if self.before.failures + self.during.failures > 0 {
            let reasons = self.before.reasons.iter().chain(&self.during.reasons);
            let reasons: Vec<&str> = reasons.map(String::as_str).collect();
            let count = (self.before.failures, self.during.failures);
            missed.push(format!("failures before and during {count:?}: {}", reasons.join("; ")));
        }
        if self.memory_most > BOUND {
            missed.push(format!("held {} MiB", self.memory_most >> 20));
        }
        if self.back.is_none() {
            missed.push(format!("memory did not go back within {BACK_WITHIN:?}"));
        }
        let (before, during) = (self.before.all.at(0.99), self.during.all.at(0.99));
        if size.timed && during as f64 > SLOWER * before as f64 && during > before + LEAST {
            missed.push(format!("p99 {during} µs, without the flood {before} µs"));
        }
        if size.timed && self.during.all.at(1.0) > LONGEST.max(2 * self.before.all.at(1.0)) {
            missed.push(format!("an honest request took {} µs", self.during.all.at(1.0)));
        }
        if matches!(flood, Flood::Frames(_)) && self.calmed == 0 {
            missed.push("nobody was told ENHANCE_YOUR_CALM".to_owned());
        }
        missed
    }

    fn line(&self) -> String {
        let (before, during) = (&self.before.all, &self.during.all);
        format!(
            "{:24} p99 {:6} -> {:6} µs, p50 {:5} -> {:5}, longest {:8} -> {:8}, \
             requests {} -> {}, failures {}, connections {}, ended {}, calmed {}, \
             memory {} -> {} MiB, sockets {} MiB, back {:?}: ",
            self.name,
            before.at(0.99),
            during.at(0.99),
            before.at(0.5),
            during.at(0.5),
            before.at(1.0),
            during.at(1.0),
            before.count(),
            during.count(),
            self.during.failures,
            self.opened,
            self.ended,
            self.calmed,
            self.memory_before >> 20,
            self.memory_most >> 20,
            self.sockets >> 20,
            self.back,
        )
    }

    fn write(&self, record: &mut RunRecord) {
        let seconds = self.back.map_or(-1.0, |back| back.as_secs_f64());
        for (name, value, unit) in [
            ("latency_p50_us_without_flood", self.before.all.at(0.5) as f64, "us"),
            ("latency_p99_us_without_flood", self.before.all.at(0.99) as f64, "us"),
            ("latency_p50_us", self.during.all.at(0.5) as f64, "us"),
            ("latency_p99_us", self.during.all.at(0.99) as f64, "us"),
            ("latency_max_us_without_flood", self.before.all.at(1.0) as f64, "us"),
            ("latency_max_us", self.during.all.at(1.0) as f64, "us"),
            ("errors_without_flood", self.before.failures as f64, "count"),
            ("errors", self.during.failures as f64, "count"),
            ("resident_before_bytes", self.memory_before as f64, "B"),
            ("resident_peak_bytes", self.memory_most as f64, "B"),
            ("kernel_socket_peak_bytes", self.sockets as f64, "B"),
            ("resident_back_seconds", seconds, "s"),
            ("flood_connections", self.opened as f64, "count"),
            ("flood_connections_ended", self.ended as f64, "count"),
            ("flood_connections_calmed", self.calmed as f64, "count"),
            ("alive", f64::from(u8::from(self.alive)), "flag"),
        ] {
            let measure = Measure {
                workload: Some(self.name.into()),
                ..Measure::once(name, "foxy", value, unit)
            };
            record.add(Record::Measure(measure));
        }
        for (phase, measured) in [("before", &self.before), ("during", &self.during)] {
            for (class, latencies) in [
                ("memory-hits", &measured.memory),
                ("disk-hits", &measured.disk),
                ("misses", &measured.miss),
                ("new-names", &measured.names),
            ] {
                let class = format!("{}/{phase}/{class}", self.name);
                record.add(Record::RequestClass(RequestClass::new(&class, "foxy", 0, latencies)));
            }
        }
    }
}

/// Creates a Tokio runtime with one thread.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Raises this process's limit on open files as far as the system permits.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit anybody may");
}

/// Lowers the priority of the flood's thread, so that it takes no CPU time from the well-behaved
/// clients. Then only foxy's reaction to the flood can slow them.
fn give_way() {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    let number = thread.and_then(|path| path.file_name()?.to_str()?.parse().ok());
    let _only_less_gentle =
        rustix::process::setpriority_process(number.and_then(rustix::process::Pid::from_raw), 10);
}

/// Prints `text`, even while the test harness captures output.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is writable");
}
