//! The replay: begins requests at their times on one thread, and judges them as they end.

use super::exchange;
use super::group::{self, Group, Noise, Numbers};
use super::line::{Line, Result as Said};
use super::past::Past;
use super::report::LeapReport;
use super::verdict::{Detail, Reference, Verdict, judge};
use super::{Asked, LeapRun, Pace};
use foxy_base::{Instant, clock};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

/// How long at most until a signal is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Runs to the end. `probe` is asked twice on every path beforehand, to learn which fields change by themselves; `log` gets a
/// line for each answer; `progress` the number of requests begun.
///
/// # Errors
/// When the runtime cannot be had. What goes wrong on a path is counted, not an error.
pub fn run(
    run: &LeapRun,
    probe: &Asked,
    requests: &mut dyn Iterator<Item = Asked>,
    log: &mut dyn FnMut(&Line),
    progress: &mut dyn FnMut(u64),
) -> io::Result<LeapReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let used = clock::thread_processor_time();
    let run = Rc::new(run.clone());
    let noise = Noise(vec![BTreeSet::new(); run.paths.len()]);
    let mut judging = Judging {
        report: LeapReport::new(&run),
        past: Past::default(),
        noise: Rc::new(RefCell::new(noise)),
        numbers: Numbers::new(run.paths.len()),
        run,
    };
    LocalSet::new().block_on(&runtime, async {
        judging.learn(probe).await;
        judging.drive(requests, log, progress).await;
    });
    let mut report = judging.report;
    report.generator = clock::thread_processor_time().saturating_sub(used);
    report.noise = judging.noise.borrow().0.iter().map(|names| names.iter().cloned().collect()).collect();
    Ok(report)
}

struct Judging {
    run: Rc<LeapRun>,
    numbers: Numbers,
    report: LeapReport,
    past: Past,
    noise: Rc<RefCell<Noise>>,
}

impl Judging {
    /// Asks everyone twice, all at once.
    async fn learn(&mut self, probe: &Asked) {
        let start = |path: usize| {
            let (run, probe) = (Rc::clone(&self.run), probe.clone());
            let [first, second] = self.numbers.probes(path);
            tokio::task::spawn_local(async move {
                let first = exchange::ask(&run, &run.paths[path], &probe, first).await;
                let first = first.outcome.ok()?;
                let second = exchange::ask(&run, &run.paths[path], &probe, second).await;
                Some((first, second.outcome.ok()?))
            })
        };
        let tasks: Vec<_> = (0..self.run.paths.len()).map(start).collect();
        for (path, task) in tasks.into_iter().enumerate() {
            if let Ok(Some((first, second))) = task.await {
                let manner = self.run.paths[path].manner;
                self.noise.borrow_mut().learn(path, manner, &first, &second);
            }
        }
    }

    async fn drive(
        &mut self,
        requests: &mut dyn Iterator<Item = Asked>,
        log: &mut dyn FnMut(&Line),
        progress: &mut dyn FnMut(u64),
    ) {
        let (ends, mut ended) = mpsc::unbounded_channel();
        let started = clock::monotonic();
        let (mut number, mut in_flight, mut next) = (0, 0, requests.next());
        loop {
            next = next.filter(|_| !self.run.interrupted.load(Ordering::Relaxed));
            let wait = match &next {
                None if in_flight == 0 => break,
                None => TICK,
                Some(asked) => self.wait(started, asked, number, in_flight),
            };
            if let Some(asked) = next.take_if(|_| wait.is_zero()) {
                self.late(started, &asked, number);
                if in_flight < self.run.most_in_flight {
                    let (run, noise, ends) = (Rc::clone(&self.run), Rc::clone(&self.noise), ends.clone());
                    let numbers = self.numbers;
                    tokio::task::spawn_local(async move {
                        let group = group::ask(run, numbers, asked, number, noise).await;
                        // The receiver lives until every group has come.
                        let _ = ends.send(group);
                    });
                    in_flight += 1;
                } else {
                    self.report.refused += 1;
                }
                number += 1;
                progress(number);
                next = requests.next();
                tokio::task::yield_now().await;
            } else {
                tokio::select! {
                    biased;
                    Some(group) = ended.recv() => {
                        in_flight -= 1;
                        self.take(&group, log);
                    }
                    () = tokio::time::sleep(wait.min(TICK)) => {}
                }
            }
            while let Ok(group) = ended.try_recv() {
                in_flight -= 1;
                self.take(&group, log);
            }
        }
        self.report.elapsed = clock::monotonic().since(started);
    }

    /// When a request should begin; none when it begins as soon as there is room.
    fn due(&self, started: Instant, asked: &Asked, number: u64) -> Option<Instant> {
        match self.run.pace {
            Pace::Closed(_) => None,
            #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
            Pace::Rate(rate) => Some(started + Duration::from_secs_f64(number as f64 / rate)),
            Pace::Recorded(times) => Some(started + asked.at.div_f64(times)),
        }
    }

    /// How long until a request may begin.
    fn wait(&self, started: Instant, asked: &Asked, number: u64, in_flight: usize) -> Duration {
        match (self.due(started, asked, number), self.run.pace) {
            (Some(due), _) => due.since(clock::monotonic()),
            (None, Pace::Closed(most)) if in_flight >= most.min(self.run.most_in_flight) => TICK,
            (None, _) => Duration::ZERO,
        }
    }

    fn late(&mut self, started: Instant, asked: &Asked, number: u64) {
        if let Some(due) = self.due(started, asked, number) {
            self.report.late.add(clock::monotonic().since(due));
        }
    }

    /// Judges a request that has ended on all paths.
    fn take(&mut self, group: &Group, log: &mut dyn FnMut(&Line)) {
        let paths = &self.run.paths;
        if let (Some(direct), Some(again)) = (group::direct(paths), &group.again)
            && let (Ok(first), Ok(second)) = (&group.copies[direct].outcome, &again.outcome)
        {
            self.noise.borrow_mut().learn(direct, paths[direct].manner, first, second);
        }
        let noise = self.noise.borrow();
        let key = group.asked.key();
        let chosen = group::reference(paths, group, &noise);
        let right = chosen.and_then(|(path, fields)| {
            let answer = group.copies[path].outcome.as_ref().ok()?;
            Some((path, Reference { answer, fields, earlier: self.past.earlier(&key) }))
        });
        self.report.begin(group);
        for (path, copy) in group.copies.iter().enumerate() {
            let ignored = |name: &str| {
                right.as_ref().is_some_and(|(reference, _)| noise.covers(path, *reference, name))
            };
            let reference = right.as_ref().map(|(_, reference)| reference);
            let mut finding = judge(&copy.outcome, reference, &ignored);
            if let (Some(finding), Ok(answer)) = (&mut finding, &copy.outcome)
                && finding.verdict == Verdict::BodyMismatch
                && let Some(owner) = self.past.owner(answer.digest, &key)
            {
                finding.detail = Detail::BodyOf(owner.trim_end().to_owned());
            }
            self.report.take(path, &group.asked, copy, finding.as_ref());
            let own = copy.outcome.as_ref().map_or(0, |answer| answer.status);
            let expected = right.as_ref().map_or(0, |(_, reference)| reference.answer.status);
            let is_reference = right.as_ref().is_some_and(|(reference, _)| *reference == path);
            log(&Line {
                at: group.at,
                process: u64::from(std::process::id()),
                number: group.number,
                path: paths[path].name.clone(),
                first_byte: copy.times.first_byte,
                transfer: copy.times.transfer,
                size: copy.bytes,
                result: match &finding {
                    Some(finding) if !is_reference => Said::Judged(expected, own, finding.verdict),
                    _ => Said::Reference,
                },
                client: "127.0.0.1".into(),
                validation: false,
                method: "GET".into(),
                url: group.asked.url(),
            });
        }
        if let Some(print) = right.map(|(_, reference)| reference.answer.fingerprint()) {
            self.past.remember(&key, print);
        }
    }
}
