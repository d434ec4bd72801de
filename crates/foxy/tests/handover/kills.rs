//! Kills the old or the new process in the middle of an upgrade. Afterwards one of the two
//! processes must serve all stored pages, and the store must be intact.

use crate::clients::{Connection, Load};
use crate::origin::Origin;
use crate::subject::Subject;
use crate::support::black_box::{binary, number, variable};
use crate::support::run_record::RunRecord;
use crate::tally::{Kind, Tally};
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_testkit::wait::until;
use std::process::Command;
use std::time::Duration;

/// Number of kills if the test runs together with all other tests. `docs/proofs.md` gives the
/// number for a full run.
const FEW: u64 = 4;
/// Number of kills on one store. Then the test checks the store and continues with a new store.
const KILLS_OF_A_STORE: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Old,
    New,
}

#[derive(Default)]
struct Outcome {
    old: u64,
    new: u64,
    upgrades_that_succeeded: u64,
    stores: u64,
    pages: u64,
    hits: u64,
    longest: Duration,
    wrong: Vec<String>,
}

#[test]
fn a_kill_during_an_upgrade_leaves_a_server_and_a_whole_store() {
    let (kills, seed) = (number("FOXY_HANDOVER_KILLS", FEW), number("FOXY_HANDOVER_SEED", 1));
    let mut random = Random::new(seed ^ 2);
    let mut outcome = Outcome::default();
    while outcome.old + outcome.new < kills {
        outcome.with_one_store(kills, &mut random);
    }
    let mut record = RunRecord::new("cargo test --test handover", seed, 1.0);
    for (name, value, unit) in [
        ("kills_of_the_old_process", outcome.old as f64, "count"),
        ("kills_of_the_new_process", outcome.new as f64, "count"),
        ("upgrades_that_succeeded", outcome.upgrades_that_succeeded as f64, "count"),
        ("checked_stores", outcome.stores as f64, "count"),
        ("pages_requested_after_kills", outcome.pages as f64, "count"),
        ("hits_after_kills", outcome.hits as f64, "count"),
        ("longest_time_to_an_answer", outcome.longest.as_secs_f64(), "s"),
        ("wrong", outcome.wrong.len() as f64, "count"),
    ] {
        crate::say(&format!("handover kills: {name} {value}"));
        record.measure(name, "foxy", value, unit);
    }
    record.write(variable("FOXY_HANDOVER_KILLS_RECORD").as_deref(), outcome.wrong.is_empty());
    assert!(outcome.wrong.is_empty(), "seed {seed}:\n{}", outcome.wrong.join("\n"));
}

impl Outcome {
    fn with_one_store(&mut self, kills: u64, random: &mut Random) {
        let origin = Origin::start(1);
        let mut subject = Subject::start("64M", origin.echo.port());
        let load =
            Load { to: subject.to, origin, tally: Tally::new(), body_time: Duration::from_secs(1) };
        load.store_pages();
        for _ in 0..KILLS_OF_A_STORE.min(kills - self.old - self.new) {
            let victim = if random.chance(0.5) { Victim::Old } else { Victim::New };
            // A successful upgrade takes about 300 ms with a debug build. So the kill comes at any
            // time during the upgrade or shortly after it.
            let pause = Duration::from_micros(random.below(400_000));
            self.kill_during_an_upgrade(&mut subject, &load, victim, pause);
        }
        self.check(&mut subject);
    }

    fn kill_during_an_upgrade(
        &mut self,
        subject: &mut Subject,
        load: &Load,
        victim: Victim,
        pause: Duration,
    ) {
        let old = subject.newest();
        // If the new process dies, the old process serves again only while it has an open
        // connection. The tunnel is this connection.
        let tunnel = load.open_tunnel().expect("a tunnel");
        let upgrade = subject.begin_upgrade();
        let is_new = |child: &u32| !subject.knows(*child);
        let new = until("a new process", || children(old).into_iter().find(is_new));
        subject.add(new);
        std::thread::sleep(pause);
        subject.kill(if victim == Victim::Old { old } else { new });
        match victim {
            Victim::Old => self.old += 1,
            Victim::New => self.new += 1,
        }
        self.request_pages(load, &format!("{victim:?} killed after {pause:?}"));
        let output = upgrade.wait_with_output().expect("it ends");
        self.upgrades_that_succeeded += u64::from(output.status.success());
        drop(tunnel);
        // The process that was not killed now serves. The old process may first finish its open
        // connections.
        until("one process", || (subject.running().len() == 1).then_some(()));
        let survivor = subject.running()[0];
        let expected = if victim == Victim::Old { new } else { old };
        if survivor != expected {
            self.wrong.push(format!("{victim:?} killed after {pause:?}, but {survivor} runs"));
        }
        subject.serves_from(survivor);
    }

    /// Requests each page on a new connection.
    fn request_pages(&mut self, load: &Load, after: &str) {
        for number in 0..crate::clients::PAGES {
            let began = clock::monotonic();
            let path = format!("/page/{number}");
            let answer = Connection::open(load.to.proxy)
                .and_then(|mut connection| connection.ask(&load.get(&path)));
            self.pages += 1;
            self.longest = self.longest.max(clock::monotonic().since(began));
            match answer {
                Ok(answer) if answer.is_ok() && answer.body == crate::origin::page(&path) => {
                    load.tally.finished(Kind::Page);
                    self.hits += u64::from(answer.is_hit());
                }
                Ok(answer) => self.wrong.push(format!("{after}: {}", answer.head)),
                Err(error) => self.wrong.push(format!("{after}: {path}: {error}")),
            }
        }
    }

    /// Stops foxy, and checks the store.
    fn check(&mut self, subject: &mut Subject) {
        let newest = subject.newest();
        crate::support::commands::signal(newest, "TERM");
        until("the end of foxy", || (!subject.is_running(newest)).then_some(()));
        let mut fsck = Command::new(binary());
        let output = fsck.arg("fsck").arg(subject.store()).output().expect("it runs");
        self.stores += 1;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            self.wrong.push(format!("fsck: {}", String::from_utf8_lossy(&said)));
        }
    }
}

/// Returns the child processes of a process.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let children: String = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .collect();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}
