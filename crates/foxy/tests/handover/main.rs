//! Tests that reloads and upgrades fail no request and lose no hit, while connections of every kind
//! are open. Also tests that a kill during an upgrade leaves a process that serves, and a whole
//! store.
//!
//! `docs/proofs.md` describes the test at full size.

mod clients;
mod http2;
mod kills;
mod origin;
mod streams;
mod subject;
#[path = "../support/mod.rs"]
mod support;
mod tally;

use clients::{Connection, Load};
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_base::time::Instant;
use origin::Origin;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;
use subject::{Content, Subject};
use support::black_box::{number, variable};
use support::run_record::RunRecord;
use tally::{KINDS, Kind, Tally};

/// The test computes the hit ratio over this duration after each reload or upgrade.
const FIRST_SECOND: Duration = Duration::from_secs(1);
/// In a full run, the hit ratio of the second after each reload or upgrade must be at least this
/// high.
const LEAST_HIT_RATIO: f64 = 0.99;
/// Number of busy clients, and their longest pause between two requests.
const BUSY: (u64, Duration) = (6, Duration::from_millis(6));
/// Number of clients that mostly wait, and their longest pause between two requests.
const LAZY: (u64, Duration) = (24, Duration::from_secs(4));
/// Longest life of a stream. Only one stream of each kind lasts as long as the test.
const LIFE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy)]
struct Size {
    reloads: u64,
    upgrades: u64,
    mistakes: u64,
    body_bytes: u64,
    body_time: Duration,
    store: &'static str,
    /// Pause between two changes (reloads or upgrades).
    pause: Duration,
    /// Whether the test judges hit ratios.
    is_timed: bool,
}

const SMALL: Size = Size {
    reloads: 8,
    upgrades: 3,
    mistakes: 2,
    body_bytes: 20_000_000,
    body_time: Duration::from_secs(2),
    store: "256M",
    pause: Duration::from_millis(100),
    is_timed: false,
};

fn full() -> Size {
    Size {
        reloads: number("FOXY_HANDOVER_RELOADS", 1_000),
        upgrades: number("FOXY_HANDOVER_UPGRADES", 200),
        mistakes: number("FOXY_HANDOVER_RELOADS", 1_000) / 10,
        body_bytes: 1_000_000_000,
        body_time: Duration::from_secs(40),
        store: "8G",
        // The pause is shorter than a second. So the second after a reload often contains further
        // reloads, whose effect counts too.
        pause: Duration::from_millis(number("FOXY_HANDOVER_PAUSE_MS", 50)),
        is_timed: true,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Reload,
    Upgrade,
    Mistake,
}

/// The results of all reloads and upgrades of a run.
#[derive(Default)]
struct Outcome {
    reloads: u64,
    upgrades: u64,
    mistakes: u64,
    wrong: Vec<String>,
    /// Longest time in milliseconds for which new connections waited.
    longest_gap: u64,
    most_processes: usize,
    /// For each change: its kind, the time when it ended (for an upgrade, when new connections
    /// began to wait), and how long they waited.
    seconds: Vec<(Change, Instant, Duration)>,
}

#[test]
fn reloads_and_upgrades_fail_no_request_and_lose_no_hit() {
    let size = if variable("FOXY_HANDOVER").is_some() { full() } else { SMALL };
    let seed = number("FOXY_HANDOVER_SEED", 1);
    let origin = Origin::start(size.body_bytes);
    let mut subject = Subject::start(size.store, origin.echo.port());
    let load = Load { to: subject.to, origin, tally: Tally::new(), body_time: size.body_time };
    load.store_pages();
    let outcome = std::thread::scope(|scope| {
        begin(&load, &subject, scope, seed);
        let outcome = change_all(&mut subject, &load, size, &mut Random::new(seed));
        let patience = clock::monotonic() + 15 * size.body_time;
        while load.tally.count(Kind::StoredBody) == 0 && clock::monotonic() < patience {
            sleep(FIRST_SECOND);
        }
        load.tally.is_over.store(true, Ordering::SeqCst);
        outcome
    });
    let mut wrong = load.tally.reasons();
    wrong.extend(outcome.wrong.iter().cloned());
    wrong.extend(
        KINDS
            .iter()
            .filter(|(_, kind)| load.tally.count(*kind) == 0)
            .map(|(name, _)| format!("no {name}")),
    );
    if size.is_timed && outcome.least_ratio(&load.tally, None).0 < LEAST_HIT_RATIO {
        wrong.push("the hit ratio fell after a change".into());
    }
    record(&outcome, &load.tally, size, seed, wrong.is_empty());
    let said = subject.said();
    assert!(!said.contains("panicked"), "{said}");
    assert!(wrong.is_empty(), "seed {seed}:\n{}\n{said}", wrong.join("\n"));
}

/// Starts clients of every kind.
fn begin<'scope>(
    load: &'scope Load,
    subject: &Subject,
    scope: &'scope std::thread::Scope<'scope, '_>,
    seed: u64,
) {
    let mut random = Random::new(seed ^ 1);
    for (count, pause) in [BUSY, LAZY] {
        for _ in 0..count {
            let seed = random.next_u64();
            scope.spawn(move || load.browse(seed, pause));
        }
    }
    for kind in [Kind::Tunnel, Kind::WebSocket, Kind::Events] {
        for life in [None, Some(LIFE), Some(LIFE)] {
            let seed = random.next_u64();
            scope.spawn(move || load.stream(kind, seed, life));
        }
    }
    for kind in [Kind::StoredBody, Kind::StoredBody, Kind::PassedBody] {
        scope.spawn(move || load.stream(kind, 0, None));
    }
    let (tls, seed) = (http2::connector(&subject.authority), random.next_u64());
    scope.spawn(move || load.browse_over_http2(&tls, seed, BUSY.1));
}

/// Reloads, upgrades and tries faulty configurations in a random order, as often as `size` says.
fn change_all(subject: &mut Subject, load: &Load, size: Size, random: &mut Random) -> Outcome {
    let mut changes = Vec::new();
    for (change, count) in [
        (Change::Reload, size.reloads),
        (Change::Upgrade, size.upgrades),
        (Change::Mistake, size.mistakes),
    ] {
        changes.extend((0..count).map(|_| change));
    }
    let mut outcome = Outcome::default();
    let mut content = Content::Open;
    sleep(size.pause);
    while !changes.is_empty() {
        let next = usize::try_from(random.below(changes.len() as u64)).expect("small");
        let change = changes.swap_remove(next);
        outcome.make(change, &mut content, subject, load);
        outcome.most_processes = outcome.most_processes.max(subject.running().len());
        if size.is_timed && changes.len() % 100 == 0 {
            say(&format!("handover: {} changes to come", changes.len()));
        }
        sleep(size.pause);
    }
    sleep(FIRST_SECOND);
    outcome
}

impl Outcome {
    fn make(&mut self, change: Change, content: &mut Content, subject: &mut Subject, load: &Load) {
        let mut wait = Duration::ZERO;
        match change {
            Change::Reload => {
                *content = if *content == Content::Open { Content::Closed } else { Content::Open };
                subject.write(*content);
                self.expect(subject.reload(), "a reload failed");
                self.reloads += 1;
            }
            Change::Mistake => {
                subject.write(Content::Mistake);
                self.expect(!subject.reload(), "a reload took a mistake");
                subject.write(*content);
                self.mistakes += 1;
            }
            Change::Upgrade => match subject.upgrade() {
                Ok(gap) => {
                    self.longest_gap = self.longest_gap.max(gap);
                    wait = Duration::from_millis(gap);
                    self.upgrades += 1;
                }
                Err(why) => self.expect(false, &format!("an upgrade failed: {why}")),
            },
        }
        self.seconds.push((change, clock::monotonic() - wait, wait));
        let is_closed = load.get_closed();
        let expected = *content == Content::Closed;
        self.expect(is_closed == Some(expected), &format!("{change:?}: {is_closed:?}"));
    }

    fn expect(&mut self, is_right: bool, otherwise: &str) {
        if !is_right {
            self.wrong.push(otherwise.to_owned());
        }
    }

    /// Returns the smallest and the mean hit ratio of the seconds after changes of the kind `of`,
    /// or of any kind without `of`. If new connections waited, the second is longer by this time.
    fn least_ratio(&self, tally: &Tally, of: Option<Change>) -> (f64, f64) {
        let seconds = self.seconds.iter().filter(|(change, ..)| of.is_none_or(|of| of == *change));
        let ratio =
            |(_, from, wait): &(_, _, Duration)| tally.hit_ratio(*from, FIRST_SECOND + *wait).0;
        let ratios: Vec<f64> = seconds.map(ratio).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        (ratios.iter().copied().fold(1.0, f64::min), mean)
    }
}

impl Load {
    /// Requests the page that a rule may deny. Returns whether the rule denies it now, or `None` if
    /// there is no answer or it has another status.
    fn get_closed(&self) -> Option<bool> {
        let mut connection = Connection::open(self.to.proxy).ok()?;
        let answer = connection.ask(&self.get("/page/closed")).ok()?;
        match answer.head.split(' ').nth(1)? {
            "403" => Some(true),
            "200" => Some(false),
            _ => None,
        }
    }
}

fn record(outcome: &Outcome, tally: &Tally, size: Size, seed: u64, held: bool) {
    let scale = size.upgrades as f64 / 200.0;
    let mut record = RunRecord::new("cargo test --test handover", seed, scale);
    let mut measures = vec![
        ("reloads", outcome.reloads as f64, "count"),
        ("upgrades", outcome.upgrades as f64, "count"),
        ("reloads_with_a_mistake", outcome.mistakes as f64, "count"),
        ("failed_requests", tally.failures() as f64, "count"),
        ("wrong_changes", outcome.wrong.len() as f64, "count"),
        ("longest_wait_of_new_connections", outcome.longest_gap as f64, "ms"),
        ("most_processes", outcome.most_processes as f64, "count"),
        ("connections", tally.opened.load(Ordering::SeqCst) as f64, "count"),
        (
            "refused_streams_sent_again",
            tally.refused_streams.load(Ordering::SeqCst) as f64,
            "count",
        ),
    ];
    for (name, kind) in KINDS {
        measures.push((name, tally.count(kind) as f64, "count"));
    }
    for (least, mean, of) in [
        ("least_hit_ratio_after_a_reload", "mean_hit_ratio_after_a_reload", Change::Reload),
        ("least_hit_ratio_after_an_upgrade", "mean_hit_ratio_after_an_upgrade", Change::Upgrade),
    ] {
        let (lowest, average) = outcome.least_ratio(tally, Some(of));
        measures.extend([(least, lowest, "ratio"), (mean, average, "ratio")]);
    }
    for (name, value, unit) in measures {
        say(&format!("handover: {name} {value}"));
        record.measure(name, "foxy", value, unit);
    }
    record.write(variable("FOXY_HANDOVER_RECORD").as_deref(), held);
}

/// Prints `text`, even while the test harness captures output.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is writable");
}
