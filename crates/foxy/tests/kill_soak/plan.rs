//! Runs the soak test: chooses the stores, starts and ends foxy, moves the clock, and starts storms
//! (bursts of thousands of requests).

use crate::clients::{Client, Place, Shared};
use crate::ledger::{Broken, Gap, Ledger, locked};
use crate::machine_clock::MovedClock;
use crate::origin::Origin;
use crate::pages::{Page, Pattern, below};
use crate::storm::storm;
use crate::support::black_box::{BlackBox, binary};
use foxy_base::clock;
use foxy_base::random::Random;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;
use tempfile::TempDir;

/// Number of kills, seed and size of storms of a soak test.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub kills: u64,
    pub seed: u64,
    pub storm_urls: usize,
}

const CLIENTS: u64 = 8;
/// Number of pages that clients request outside storms.
const PAGES: usize = 48;
/// Number of pages whose fetches are slow during a storm. More pages find an error with higher
/// probability.
const SLOW: usize = 16;
/// Number of kills after which the test continues with a new store, perhaps of another scheme.
const ROUND: u64 = 25;
/// Number of kills from one storm to the next. A storm is a burst of thousands of requests.
const STORMS: u64 = 40;
/// The test ends after this many findings, because further findings give no new information.
const ENOUGH: usize = 100;
/// Time limit for foxy to start and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running soak test.
pub struct Soak {
    pub shared: Arc<Shared>,
}

/// A store, and the clock that foxy sees while it uses the store.
struct Round {
    folder: TempDir,
    scheme: &'static str,
    size: &'static str,
    clock: Option<MovedClock>,
}

impl Round {
    fn new(random: &mut Random) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // With a short timeout, foxy would not wait for a slow store but fetch the page. So an
        // outdated response in the store would not be noticed.
        std::fs::write(folder.path().join("foxy.toml"), "[timeouts]\nstore = \"20s\"\n")
            .expect("written");
        let scheme = ["webcosm", "webcosm", "webcosm", "stream-packetizer", "webcosm", "ufs"]
            [below(random, 6)];
        let size = ["16M", "24M", "64M"][below(random, 3)];
        let clock = MovedClock::new(folder.path());
        Self { folder, scheme, size, clock }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.env_clear().args([
            "serve",
            "--workers",
            "2",
            "--memory",
            "8M",
            "--access-log",
            "off",
        ]);
        command.args(["--allow-destination", "127.0.0.0/8", "--purge-from", "127.0.0.0/8"]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--stop-after", "2s"]);
        command.args(["--scheme", self.scheme, "--size", self.size]);
        let path = |name: &str| Path::join(self.folder.path(), name);
        command.arg("--store").arg(path("store")).arg("--config").arg(path("foxy.toml"));
        if let Some(clock) = &self.clock {
            clock.show_to(&mut command);
        }
        command
    }

    fn is_behind(&self) -> bool {
        self.clock.as_ref().is_some_and(MovedClock::is_behind)
    }
}

/// The way in which a run of foxy ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Kill,
    Stop,
    /// The test sends a second signal while foxy stops.
    StopTwice,
    /// The test kills foxy while foxy stops.
    KillWhileStopping,
}

/// Counters of the events of a soak test so far.
#[derive(Default)]
struct Course {
    run: u64,
    ends: [u64; 4],
    during_start: u64,
    clock_moves: u64,
    storms: u64,
    rounds: u64,
}

impl Soak {
    pub fn new(plan: &Plan) -> Self {
        let storms = storms(plan);
        let mut pages: Vec<Page> = (0..PAGES).map(|number| Page::new(plan.seed, number)).collect();
        pages.extend((PAGES..PAGES + SLOW * storms).map(Page::plain));
        let (ledger, pattern) = (Arc::new(Ledger::new(pages, PAGES)), Arc::new(Pattern::new()));
        let origin = Origin::start(&ledger, &pattern);
        let place = Mutex::new(Place::default());
        let over = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { ledger, pattern, origin, place, over, pages: PAGES }) }
    }

    /// Runs the soak test. Returns the counters of its events, with their names.
    pub fn run(&self, plan: &Plan) -> Vec<(&'static str, u64)> {
        let mut random = Random::new(plan.seed);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| Client::new(&self.shared, random.next_u64()))
            .map(|client| spawn(move || client.run()))
            .collect();
        let mut course = Course::default();
        let mut round = Round::new(&mut random);
        let every = plan.kills.div_ceil(storms(plan) as u64);
        while course.run < plan.kills && self.shared.ledger.total() < ENOUGH {
            if course.run.is_multiple_of(ROUND) && course.run > 0 {
                round = Round::new(&mut random);
            }
            course.rounds += u64::from(course.run.is_multiple_of(ROUND));
            let stormy = course.run % every == every / 2;
            course.run += 1;
            self.one(&mut round, &mut course, plan, stormy, &mut random);
        }
        self.shared.over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().expect("a client ends with the soak");
        }
        let [killed, stopped, twice, killed_stopping] = course.ends;
        vec![
            ("kills", course.run + course.during_start),
            ("sigkills", killed + course.during_start + killed_stopping),
            ("sigkills_during_start", course.during_start),
            ("sigkills_during_stop", killed_stopping),
            ("clean_stops", stopped),
            ("double_stops", twice),
            ("clock_moves", course.clock_moves),
            ("storms", course.storms),
            ("stores", course.rounds),
        ]
    }

    /// Runs foxy once, from its start to its end.
    fn one(
        &self,
        round: &mut Round,
        course: &mut Course,
        plan: &Plan,
        stormy: bool,
        random: &mut Random,
    ) {
        let died = clock::monotonic();
        let ledger = &self.shared.ledger;
        if random.chance(0.15) {
            // Kills foxy while it starts. Then the test starts foxy again at once.
            let mut early = BlackBox::spawn(&mut round.command()).expect("the binary runs");
            sleep(Duration::from_millis(random.below(60)));
            early.kill();
            course.during_start += 1;
        }
        let mut foxy = BlackBox::spawn(&mut round.command()).expect("the binary runs");
        let addresses = match foxy.ready(PATIENCE) {
            Ok(addresses) => addresses,
            Err(why) => {
                return ledger.found_elsewhere(Broken::Dead, format!("did not start: {why}"));
            }
        };
        let back = clock::monotonic();
        if round.is_behind() {
            ledger.gap(Gap { died, back });
        }
        *locked(&self.shared.place) =
            Place { run: course.run, addresses: Some(addresses), ending: false };
        if stormy {
            self.clock_back(round, course, 86_400);
        }
        if stormy && plan.storm_urls == 0 {
            // Waits longer than the shortest lifetime and the tolerance together, so that some
            // responses become stale.
            sleep(Duration::from_secs(4));
        } else if stormy {
            let first = PAGES + SLOW * usize::try_from(course.storms).expect("few");
            storm(&self.shared, first..first + SLOW, plan.storm_urls);
            course.storms += 1;
        } else {
            sleep(Duration::from_millis(200 + random.below(1500)));
            self.move_clock(round, course, random);
            sleep(Duration::from_millis(random.below(1800)));
        }
        self.end(&mut foxy, course, random);
    }

    fn end(&self, foxy: &mut BlackBox, course: &mut Course, random: &mut Random) {
        if !foxy.is_running() {
            let text = format!("ended by itself: {}", foxy.said());
            self.shared.ledger.found_elsewhere(Broken::Dead, text);
        }
        let ends =
            [End::Kill, End::Kill, End::Kill, End::Stop, End::StopTwice, End::KillWhileStopping];
        let end = ends[below(random, ends.len())];
        course.ends[end as usize] += 1;
        locked(&self.shared.place).ending = true;
        let pause = Duration::from_millis(random.below(300));
        match end {
            End::Kill => foxy.kill(),
            End::Stop => {
                foxy.signal("TERM");
                let status = foxy.ended(PATIENCE);
                if status.is_none_or(|status| !status.success()) {
                    let text = format!("a stop ended with {status:?}: {}", foxy.said());
                    self.shared.ledger.found_elsewhere(Broken::Dead, text);
                }
            }
            End::StopTwice | End::KillWhileStopping => {
                foxy.signal("TERM");
                sleep(pause);
                if matches!(end, End::StopTwice) && foxy.is_running() {
                    foxy.signal("TERM");
                    if foxy.ended(PATIENCE).is_none() {
                        let text = format!("a double stop did not end: {}", foxy.said());
                        self.shared.ledger.found_elsewhere(Broken::Dead, text);
                    }
                }
                foxy.kill();
            }
        }
        locked(&self.shared.place).addresses = None;
    }

    fn clock_back(&self, round: &mut Round, course: &mut Course, seconds: i64) {
        if let Some(clock) = &mut round.clock {
            clock.set(-seconds);
            course.clock_moves += 1;
        }
    }

    fn move_clock(&self, round: &mut Round, course: &mut Course, random: &mut Random) {
        let Some(clock) = round.clock.as_mut().filter(|_| random.chance(0.4)) else { return };
        clock.set([0, 0, -86_400, -30, -3_600, 20, 5][below(random, 7)]);
        course.clock_moves += 1;
    }
}

/// Returns the number of storms in a soak test.
fn storms(plan: &Plan) -> usize {
    usize::try_from(plan.kills.div_ceil(STORMS)).expect("few")
}
